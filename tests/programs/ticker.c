/* ticker STEPS: the main thread computes; a background thread sleeps ten milliseconds at a time
 * until a flag stops it, and is joined. Of its sleeps only the last one costs time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int stop;

static void *tick(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "ticker");
    while (!atomic_load(&stop))
        usleep(10000);
    return NULL;
}

static unsigned main_work(long steps)
{
    volatile unsigned x = 1;
    while (steps--)
        x = x * 1664525u + 1013904223u;
    return x;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    pthread_t ticker;
    pthread_create(&ticker, NULL, tick, NULL);
    unsigned result = main_work(atol(argv[1]));
    atomic_store(&stop, 1);
    pthread_join(ticker, NULL);
    printf("%u\n", result);
    return 0;
}
