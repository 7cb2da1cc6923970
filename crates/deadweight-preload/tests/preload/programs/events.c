/* Waits for what another thread does within the time-out, or has done. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int ends[2], ready;
static sem_t given;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *other(void *unused)
{
    volatile unsigned x = 1;
    for (int i = 0; i < 30000000; i++)
        x = x * 1664525u + 1013904223u;
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    sem_post(&given);
    if (write(ends[1], "a", 1) != 1)
        return NULL;
    return unused;
}

int main(void)
{
    pthread_t thread;
    if (pipe(ends) != 0 || sem_init(&given, 0, 0) != 0)
        return 2;
    pthread_create(&thread, NULL, other, NULL);
    pthread_mutex_lock(&mutex);
    while (!ready) { /* again and again, until it is there */
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
        pthread_cond_timedwait(&changed, &mutex, &until);
    }
    pthread_mutex_unlock(&mutex);
    puts("the change came");
    struct timespec until;
    do {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
    } while (sem_timedwait(&given, &until) != 0);
    puts("the semaphore came");
    struct pollfd descriptor = {ends[0], POLLIN, 0};
    while (poll(&descriptor, 1, 1000) == 0)
        ;
    puts(poll(&descriptor, 1, -1) == 1 ? "the byte came" : "nothing");
    pthread_join(thread, NULL);
    return 0;
}
