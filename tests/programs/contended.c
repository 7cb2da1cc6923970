/* contended ROUNDS STEPS: four threads take one mutex in turn and compute under it.
 * Only one thread can compute at a time: the mutex makes four threads as slow as one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned table[256];
static long rounds, steps;

static void update_table(unsigned seed)
{
    for (long i = 0; i < steps; i++) {
        seed = seed * 1664525u + 1013904223u;
        table[seed >> 24] += seed;
    }
}

static void *table_worker(void *seed)
{
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&table_lock);
        update_table((unsigned)(unsigned long)seed + (unsigned)i); /* the work under the lock */
        pthread_mutex_unlock(&table_lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    rounds = atol(argv[1]);
    steps = atol(argv[2]);
    pthread_t threads[THREADS];
    for (unsigned long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, table_worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%u\n", table[0]);
    return 0;
}
