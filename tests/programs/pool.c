/* pool JOBS STEPS: two workers take jobs from a queue that the main thread fills.
 * The workers wait on a condition variable when the queue is empty: they idle, and wait for no lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 2 };

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static long waiting_jobs, steps;
static int closed;
static unsigned long total;

static unsigned run_job(void)
{
    volatile unsigned x = 1;
    for (long i = 0; i < steps; i++)
        x = x * 1664525u + 1013904223u;
    return x;
}

static void *pool_worker(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&queue_lock);
        while (waiting_jobs == 0 && !closed)
            pthread_cond_wait(&queue_filled, &queue_lock);
        if (waiting_jobs == 0) {
            pthread_mutex_unlock(&queue_lock);
            return NULL;
        }
        waiting_jobs--;
        pthread_mutex_unlock(&queue_lock);
        unsigned result = run_job();
        __atomic_fetch_add(&total, result, __ATOMIC_RELAXED);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    long jobs = atol(argv[1]);
    steps = atol(argv[2]);
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, pool_worker, NULL);
    for (long i = 0; i < jobs; i++) {
        pthread_mutex_lock(&queue_lock);
        waiting_jobs++;
        pthread_cond_signal(&queue_filled);
        pthread_mutex_unlock(&queue_lock);
    }
    pthread_mutex_lock(&queue_lock);
    closed = 1;
    pthread_cond_broadcast(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    printf("%lu\n", total);
    return 0;
}
