/* unlike STEPS STEPS: two parallel workers of different kind and length; the longer one is the
 * wall time, but removing it leaves the shorter one. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

static void spin(long steps)
{
    volatile unsigned x = 1;
    while (steps--)
        x = x * 1664525u + 1013904223u;
}

static void *alpha(void *steps)
{
    pthread_setname_np(pthread_self(), "alpha");
    spin(*(long *)steps);
    return NULL;
}

static void *beta(void *steps)
{
    pthread_setname_np(pthread_self(), "beta");
    spin(*(long *)steps);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    long for_alpha = atol(argv[1]), for_beta = atol(argv[2]);
    pthread_t a, b;
    pthread_create(&a, NULL, alpha, &for_alpha);
    pthread_create(&b, NULL, beta, &for_beta);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
