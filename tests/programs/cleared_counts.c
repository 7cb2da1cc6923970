/* Counts the words of each block in a table that must be cleared before: the clearing is needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 14, WORDS = 300 };

__attribute__((noinline)) static unsigned busiest(unsigned *counts, unsigned block)
{
    unsigned most = 0;
    memset(counts, 0, BUCKETS * sizeof *counts); /* the line to name */
    for (unsigned word = 0; word < WORDS; word++) {
        unsigned *count = &counts[(word * block * 2654435761u) % BUCKETS];
        if (++*count > most)
            most = *count;
    }
    return most;
}

int main(int argc, char **argv)
{
    int blocks = argc > 1 ? atoi(argv[1]) : 60000;
    unsigned *counts = malloc(BUCKETS * sizeof *counts);
    unsigned long sum = 0;
    for (int block = 1; block <= blocks; block++)
        sum = sum * 31 + busiest(counts, block);
    printf("%lu\n", sum);
}
