// Smooths the rows of a picture again and again with OpenMP. Each short row is shared out; with `whole`, the picture is.
#include <stdio.h>
#include <string.h>

enum { ROWS = 3000, CELLS = 120 };
static float picture[ROWS][CELLS];

static void smooth(float *row)
{
    float before = row[0];
    for (int i = 1; i < CELLS - 1; i++) {
        float here = row[i];
        row[i] = 0.25f * (before + 2 * here + row[i + 1]);
        before = here;
    }
}

static float brightest(float *row)
{
    float most = 0;
#pragma omp parallel for reduction(max : most) // the line to name
    for (int i = 0; i < CELLS; i++)
        if (row[i] > most)
            most = row[i];
    return most;
}

static float row_by_row(void)
{
    float sum = 0;
    for (int r = 0; r < ROWS; r++) {
        smooth(picture[r]);
        sum += brightest(picture[r]);
    }
    return sum;
}

static float all_rows(void)
{
    float sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int r = 0; r < ROWS; r++) {
        float most = 0;
        smooth(picture[r]);
        for (int i = 0; i < CELLS; i++)
            if (picture[r][i] > most)
                most = picture[r][i];
        sum += most;
    }
    return sum;
}

int main(int count, char **words)
{
    int whole = count > 1 && !strcmp(words[1], "whole");
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < CELLS; i++)
            picture[r][i] = (r * 31 + i * 17) % 256;
    float sum = 0;
    for (int pass = 0; pass < (whole ? 400 : 60); pass++)
        sum += whole ? all_rows() : row_by_row();
    printf("%d\n", sum > 0);
}
