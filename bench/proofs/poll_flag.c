/* wait-sleep: looks for a result every 3 ms. Fast: waits for the result. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int jobs, results;

static void *work(void *nothing)
{
    volatile unsigned x = 1;
    for (int job = 1; job <= 100; job++) {
        pthread_mutex_lock(&lock);
        while (jobs < job)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        for (int i = 0; i < 200000; i++)
            x = x * 1664525u + 1013904223u;
        pthread_mutex_lock(&lock);
        results = job;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return nothing;
}

int main(void)
{
    pthread_t worker;
    pthread_create(&worker, NULL, work, NULL);
    for (int job = 1; job <= 100; job++) {
        pthread_mutex_lock(&lock);
        jobs = job;
        pthread_cond_broadcast(&changed);
        while (results < job) {
#if FAST
            pthread_cond_wait(&changed, &lock);
#else
            pthread_mutex_unlock(&lock);
            nanosleep(&(struct timespec){0, 3000000}, NULL);
            pthread_mutex_lock(&lock);
#endif
        }
        pthread_mutex_unlock(&lock);
    }
    pthread_join(worker, NULL);
    printf("%d\n", results);
    return 0;
}
