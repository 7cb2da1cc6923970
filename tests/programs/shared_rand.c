/* shared_rand: two threads take numbers from rand(), which takes one lock for all threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS = 3000000 };

static double coordinate(void)
{
    return rand() / (double)RAND_MAX; /* the lock to name */
}

static void *throw(void *hits)
{
    for (int i = 0; i < NUMBERS; i++) {
        double x = coordinate(), y = coordinate();
        *(long *)hits += x * x + y * y < 1;
    }
    return NULL;
}

int main(void)
{
    pthread_t other;
    long hits[32] = {0};
    pthread_create(&other, NULL, throw, &hits[0]);
    throw(&hits[16]);
    pthread_join(other, NULL);
    printf("%.2f\n", 4.0 * (hits[0] + hits[16]) / (2.0 * NUMBERS));
    return 0;
}
