// Two threads divide rows by number; a row takes the longer, the later it comes.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    long from, to;
    unsigned sum;
} Half;

static void *work(void *argument)
{
    Half *half = argument;
    for (long row = half->from; row < half->to; row++)
        for (long i = 0; i < row * row / 64; i++)
            half->sum = half->sum * 1664525u + 1013904223u; // the line to name
    return NULL;
}

int main(int argc, char **argv)
{
    long rows = argc > 1 ? atol(argv[1]) : 4000;
    Half halves[2] = {{0, rows / 2, 1}, {rows / 2, rows, 1}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &halves[i]))
            return 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%u\n", halves[0].sum + halves[1].sum);
    return 0;
}
