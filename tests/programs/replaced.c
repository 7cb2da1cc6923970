/* Computes, replaces its own file by another one, and computes again. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static uint64_t mix(uint64_t hash, long rounds)
{
    for (long i = 0; i < rounds; i++) /* the line to name */
        hash = (hash ^ (uint64_t)i) * 0x9E3779B97F4A7C15u;
    return hash;
}

int main(int argc, char **argv)
{
    uint64_t hash = mix(1, 150000000);
    char other[4096];
    if (argc < 1 || snprintf(other, sizeof other, "%s.other", argv[0]) >= (int)sizeof other)
        return 1;
    FILE *file = fopen(other, "w");
    if (!file || fputs("something else\n", file) < 0 || fclose(file) || rename(other, argv[0]))
        return 1;
    printf("%lu\n", (unsigned long)mix(hash, 150000000));
    return 0;
}
