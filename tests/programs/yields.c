/* yields THREADS ROUNDS: threads compute, and meet by yielding until all have arrived; ROUNDS times. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 };

static atomic_long arrived;
static long threads, rounds;

static void *worker(void *number)
{
    unsigned long seed = (unsigned long)number;
    for (long round = 1; round <= rounds; round++) {
        /* The parts differ: who is done first waits. */
        long steps = 20000 * (1 + (long)(unsigned long)number % threads);
        for (volatile long i = 0; i < steps; i++)
            seed = seed * 6364136223846793005u + 1u;
        atomic_fetch_add(&arrived, 1);
        while (atomic_load(&arrived) < round * threads)
            sched_yield(); /* the line to name */
    }
    return (void *)seed;
}

int main(int argc, char **argv)
{
    pthread_t started[MOST];
    unsigned long sum = 0;
    if (argc != 3 || (threads = atol(argv[1])) > MOST)
        return 2;
    rounds = atol(argv[2]);
    for (long i = 0; i < threads; i++)
        pthread_create(&started[i], NULL, worker, (void *)i);
    for (long i = 0; i < threads; i++) {
        void *result;
        pthread_join(started[i], &result);
        sum += (unsigned long)result;
    }
    printf("%lu\n", sum);
    return 0;
}
