/* many_threads THREADS: THREADS threads exist at once, compute a little, meet at a barrier and end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 2000, STACK = 65536 };

static pthread_barrier_t meeting;

static void *compute(void *seed)
{
    volatile unsigned x = (unsigned)(size_t)seed;
    for (int i = 0; i < STEPS; i++)
        x = x * 1664525u + 1013904223u;
    pthread_barrier_wait(&meeting);
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned threads = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
    pthread_t *each = calloc(threads + 1, sizeof *each);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    pthread_barrier_init(&meeting, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&each[i], &small, compute, (void *)(size_t)i) != 0) {
            perror("many_threads");
            exit(1);
        }
    pthread_barrier_wait(&meeting);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(each[i], NULL);
    printf("%u\n", threads);
    return 0;
}
