/* Typical costs of C programs: the first argument selects one, the second says how often. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct probe {
    unsigned id, kind;
    unsigned readings[126];
};

/* A table for one window, much larger than the window: cleared, then filled. */
__attribute__((noinline)) static unsigned *window(const unsigned *feed, size_t used)
{
    unsigned *table = calloc(30000, sizeof *table); /* the table to name */
    if (!table)
        exit(1);
    memcpy(table, feed, used * sizeof *table);
    return table;
}

static unsigned long windows(long count)
{
    static unsigned feed[4000];
    unsigned long sum = 0;
    for (unsigned i = 0; i < 4000; i++)
        feed[i] = i * 2654435761u;
    free(malloc(400000)); /* the heap reuses this block from now on */
    for (long i = 0; i < count; i++) {
        unsigned *table = window(feed + i % 3000, 900);
        for (unsigned at = 0; at < 900; at += 9)
            sum += table[at];
        free(table);
    }
    return sum;
}

__attribute__((noinline)) static unsigned judge(struct probe probe, unsigned at)
{
    return probe.readings[at % 126] + probe.id;
}

static unsigned long probes(long count)
{
    static struct probe all[64];
    unsigned long sum = 0;
    for (unsigned i = 0; i < 64; i++)
        all[i] = (struct probe){i, i & 3, {i * 7, i * 5}};
    for (long i = 0; i < count; i++)
        sum += judge(all[i & 63], (unsigned)i); /* the probe to name */
    return sum;
}

struct item {
    struct item *next;
    unsigned value;
};

__attribute__((noinline)) static struct item *item(struct item *next, unsigned value)
{
    struct item *item = malloc(sizeof *item); /* the item to name */
    if (!item)
        exit(1);
    *item = (struct item){next, value};
    return item;
}

static unsigned long items(long count)
{
    unsigned long sum = 0;
    for (long i = 0; i < count; i++) {
        struct item *list = 0;
        for (unsigned n = 0; n < 20; n++)
            list = item(list, n + (unsigned)i);
        while (list) {
            struct item *next = list->next;
            sum += list->value;
            free(list);
            list = next;
        }
    }
    return sum;
}

/* Counts with atomic additions, in one thread. */
__attribute__((noinline)) static unsigned long marks(long count)
{
    static unsigned counts[256];
    for (long i = 0; i < count; i++)
        __atomic_fetch_add(&counts[(i * 31) & 255], 1, __ATOMIC_SEQ_CST); /* the mark to name */
    return counts[7];
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    long count = atol(argv[2]);
    unsigned long (*cost)(long) = !strcmp(argv[1], "windows") ? windows
                                  : !strcmp(argv[1], "probes") ? probes
                                  : !strcmp(argv[1], "marks")  ? marks
                                                               : items;
    printf("%lu\n", cost(count));
    return 0;
}
