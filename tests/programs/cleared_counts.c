/* Counts the words of each block in a table that must be cleared before: the clearing is needed. The code
   that clears shows this itself; with a second argument only another function does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 14, WORDS = 300 };

static unsigned *count_of(unsigned *counts, unsigned block, unsigned word)
{
    return &counts[(word * block * 2654435761u) % BUCKETS];
}

__attribute__((noinline)) static unsigned busiest(unsigned *counts, unsigned block)
{
    unsigned most = 0;
    memset(counts, 0, BUCKETS * sizeof *counts);
    for (unsigned word = 0; word < WORDS; word++) {
        unsigned *count = count_of(counts, block, word);
        if (++*count > most)
            most = *count;
    }
    return most;
}

__attribute__((noinline)) static unsigned tally(unsigned *counts, unsigned block)
{
    unsigned most = 0;
    for (unsigned word = 0; word < WORDS; word++) {
        unsigned *count = count_of(counts, block, word);
        if (++*count > most)
            most = *count;
    }
    return most;
}

__attribute__((noinline)) static unsigned busiest_apart(unsigned *counts, unsigned block)
{
    memset(counts, 0, BUCKETS * sizeof *counts); /* the line to name */
    return tally(counts, block);
}

int main(int argc, char **argv)
{
    int blocks = argc > 1 ? atoi(argv[1]) : 60000;
    unsigned *counts = malloc(BUCKETS * sizeof *counts);
    unsigned long sum = 0;
    for (int block = 1; block <= blocks; block++)
        sum = sum * 31 + (argc > 2 ? busiest_apart : busiest)(counts, block);
    printf("%lu\n", sum);
}
