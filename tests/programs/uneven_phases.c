// The main thread and another divide a grid by halves and meet after each step; cells of the upper half take longer.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 4000 };
static double grid[CELLS];
static pthread_barrier_t step_done;
static long steps = 40;

static double relax(int cell)
{
    double value = grid[cell];
    for (int i = 0; i < (cell < CELLS / 2 ? 40 : 400); i++)
        value = value * 0.999 + 1.0 / (1.0 + value);
    return value;
}

static void *sweep(void *argument)
{
    int from = *(int *)argument;
    for (long step = 0; step < steps; step++) {
        for (int cell = from; cell < from + CELLS / 2; cell++)
            grid[cell] = relax(cell); // the line to name
        pthread_barrier_wait(&step_done);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    steps = argc > 1 ? atol(argv[1]) : steps;
    int halves[2] = {0, CELLS / 2};
    pthread_t other;
    pthread_barrier_init(&step_done, NULL, 2);
    if (pthread_create(&other, NULL, sweep, &halves[1]))
        return 1;
    sweep(&halves[0]);
    pthread_join(other, NULL);
    double sum = 0;
    for (int cell = 0; cell < CELLS; cell++)
        sum += grid[cell];
    printf("%g\n", sum);
    return 0;
}
