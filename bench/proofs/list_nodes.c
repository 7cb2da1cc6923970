/* allocation: a node of a list for each item. Fast: an array that is kept. */
#include <stdio.h>
#include <stdlib.h>

struct node { struct node *next; unsigned value; };

int main(void)
{
    static struct node kept[64];
    unsigned x = 1, sum = 0;
    for (int round = 0; round < 100000; round++) {
        struct node *first = NULL;
        for (int i = 0; i < 64; i++) {
            struct node *node = FAST ? &kept[i] : malloc(sizeof *node);
            x = x * 1664525u + 1013904223u;
            *node = (struct node){first, x};
            first = node;
        }
        for (struct node *next; first; first = next) {
            next = first->next;
            sum += first->value >> 7;
            if (!FAST)
                free(first);
        }
    }
    printf("%u\n", sum);
    return 0;
}
