/* Marks the same places of a map again and again, and counts what is marked. The map is fresh from
   the kernel, and so happens to be zero: without the clearing the count is right only because of that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1 << 16, STEP = 256 };

__attribute__((noinline)) static unsigned mark(unsigned char *map)
{
    unsigned marked = 0;
    memset(map, 0, SIZE); /* the line to name */
    for (unsigned i = 0; i < 100; i++)
        map[i * 40503u % SIZE / STEP * STEP] = 1;
    for (unsigned at = 0; at < SIZE; at += STEP)
        marked += map[at];
    return marked;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60000;
    unsigned char *map = malloc(SIZE);
    unsigned long sum = 0;
    for (int i = 1; i <= rounds; i++)
        sum = sum * 31 + mark(map);
    printf("%lu\n", sum);
}
