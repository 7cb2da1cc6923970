// Adds up by a key that is made as text for each item. The argument says how often.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static long cells(long count)
{
    static long sums[4096];
    for (long i = 0; i < count; i++) {
        char key[40];
        snprintf(key, sizeof key, "%ld:%.2f", i % 97, (double)(i % 31) / 4); // the key to name
        unsigned number = 0;
        for (const char *c = key; *c; c++)
            number = number * 31 + (unsigned char)*c;
        sums[number % 4096] += i;
    }
    return sums[77];
}

int main(int argc, char **argv)
{
    printf("%ld\n", cells(argc > 1 ? atol(argv[1]) : 1));
}
