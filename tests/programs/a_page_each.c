// Wakes items in random order. Each has a small head and a large body: the heads lie on a page each.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Item {
    struct Item *next;
    unsigned long woken;
    char body[4096 + 48];
} Item;

static unsigned long wake_all(Item *item)
{
    unsigned long sum = 0;
    while (item) {
        sum += ++item->woken; // the line to name
        item = item->next;    // or this one
    }
    return sum;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1200, count = 20 * 1000;
    Item *items = malloc(count * sizeof *items);
    long *order = malloc(count * sizeof *order);
    if (!items || !order)
        return 1;
    memset(items, 1, count * sizeof *items);
    for (long i = 0; i < count; i++)
        order[i] = i;
    unsigned long random = 88172645463325252u, sum = 0;
    for (long i = count - 1; i > 0; i--) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        long other = (long)(random % (unsigned long)i), kept = order[i];
        order[i] = order[other], order[other] = kept;
    }
    for (long i = 0; i < count; i++)
        items[order[i]].next = i + 1 < count ? &items[order[i + 1]] : NULL;
    for (long round = 0; round < rounds; round++)
        sum += wake_all(&items[order[0]]);
    printf("%lu\n", sum);
    return 0;
}
