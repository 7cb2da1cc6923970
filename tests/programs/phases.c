/* phases ROUNDS STEPS: four threads compute STEPS each, then meet at a barrier; ROUNDS times.
 * The barrier is a futex; the last thread wakes the others. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

static pthread_barrier_t meeting;
static long rounds, steps;

static unsigned compute(unsigned seed)
{
    volatile unsigned x = seed;
    for (long i = 0; i < steps; i++)
        x = x * 1664525u + 1013904223u;
    return x;
}

static void *phase_worker(void *seed)
{
    unsigned long sum = (unsigned long)seed;
    for (long i = 0; i < rounds; i++) {
        sum += compute((unsigned)sum);
        pthread_barrier_wait(&meeting);
    }
    return (void *)sum;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    rounds = atol(argv[1]);
    steps = atol(argv[2]);
    pthread_barrier_init(&meeting, NULL, THREADS);
    pthread_t threads[THREADS];
    for (unsigned long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, phase_worker, (void *)i);
    unsigned long total = 0;
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        total += (unsigned long)sum;
    }
    printf("%lu\n", total);
    return 0;
}
