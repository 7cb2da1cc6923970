/* neighbours: two threads count in variables of one cache line. FAST keeps them on lines of their own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 30000000, LINE = 64 };

static struct {
    _Alignas(FAST ? LINE : 8) _Atomic unsigned long count;
} counts[2];

static void *work(void *of)
{
    size_t own = (size_t)of;
    unsigned x = 1;
    for (int i = 0; i < ROUNDS; i++) {
        x = x * 1664525u + 1013904223u;
        if (x & 1u)
            __atomic_fetch_add((unsigned long *)&counts[own].count, x & 2u, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%lu %lu\n", counts[0].count, counts[1].count);
}
