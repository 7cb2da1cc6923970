/* small_loops: smooths many short rows, each by a team of threads. FAST has one thread for each row. */
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 400, ROWS = 60000 };

int main(void)
{
    static float row[WIDTH + 2], next[WIDTH + 2];
    for (int i = 0; i < WIDTH + 2; i++)
        row[i] = (float)(i % 17);
    for (int turn = 0; turn < ROWS; turn++) {
#if !FAST
#pragma omp parallel for
#endif
        for (int i = 1; i <= WIDTH; i++)
            next[i] = (row[i - 1] + 2 * row[i] + row[i + 1]) / 4;
#if !FAST
#pragma omp parallel for
#endif
        for (int i = 1; i <= WIDTH; i++)
            row[i] = next[i];
    }
    printf("%.4f\n", (double)row[WIDTH / 2]);
}
