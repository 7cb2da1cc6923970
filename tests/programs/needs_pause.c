/* needs_pause: trusts that a thread has finished after 100 ms, and fails if it has not. The pause costs
 * time, but the program is wrong without it: it must wait for the thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int finished;

static void *work(void *unused)
{
    volatile unsigned x = 1;
    for (int i = 0; i < 10000000; i++)
        x = x * 1664525u + 1013904223u;
    finished = 1;
    return unused;
}

int main(void)
{
    pthread_t worker;
    if (pthread_create(&worker, NULL, work, NULL) != 0)
        return 2;
    usleep(100000); /* the pause */
    puts(finished ? "finished" : "not finished");
    return finished ? 0 : 1;
}
