/* Sleeps and works alternately for the given number of seconds. Linked statically: it runs alone in a container without a library. */
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void work_a_little(void)
{
    for (long i = 0; i < 2000000; i++)
        sink += i * i;
}

__attribute__((noinline)) static void nap_a_while(void)
{
    struct timespec time = {0, 20000000};
    nanosleep(&time, NULL); /* here */
}

int main(int count, char **words)
{
    time_t end = time(NULL) + (count > 1 ? atoi(words[1]) : 1);
    while (time(NULL) < end) {
        work_a_little();
        nap_a_while();
    }
    return 5;
}
