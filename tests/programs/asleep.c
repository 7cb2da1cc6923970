/* asleep TIMES MICROSECONDS: the main thread sleeps; another thread spins until a flag stops it.
 * The spinning delays nothing: the sleeps are the wall time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int stop;

static void *spin(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "spinner");
    while (!atomic_load(&stop))
        ;
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    pthread_t spinner;
    pthread_create(&spinner, NULL, spin, NULL);
    for (long i = atol(argv[1]); i > 0; i--)
        usleep((useconds_t)atol(argv[2])); /* the sleep */
    atomic_store(&stop, 1);
    pthread_join(spinner, NULL);
    return 0;
}
