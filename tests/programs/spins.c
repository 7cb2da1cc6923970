// Two threads compute on two CPUs; the main thread waits for them in a loop that reads a counter.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int done;
static long turns;

static void *work(void *sum)
{
    for (long i = 0; i < turns; i++)
        *(unsigned *)sum = *(unsigned *)sum * 1664525u + 1013904223u;
    atomic_fetch_add(&done, 1);
    return NULL;
}

int main(int argc, char **argv)
{
    turns = argc > 1 ? atol(argv[1]) : 200000000;
    pthread_t threads[2];
    unsigned sums[2] = {1, 2};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &sums[i]))
            return 1;
    while (atomic_load(&done) < 2) // the line to name
        ;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%u\n", sums[0] + sums[1]);
    return 0;
}
