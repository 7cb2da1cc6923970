// Sums delayed values of a signal, as the reflections of a room. A remainder says where each lies.
#include <stdio.h>
#include <stdlib.h>

struct line
{
    float *values;
    size_t length, now, delays[48];
    float gains[48];
};

static float delayed(const struct line *line, size_t tap)
{
    size_t before = line->now + line->length - line->delays[tap];
    return line->values[before % line->length]; // the line to name
}

static float feed(struct line *line, float value)
{
    float sum = 0;
    line->values[line->now] = value;
    for (size_t tap = 0; tap < 48; tap++)
        sum += delayed(line, tap) * line->gains[tap];
    if (++line->now == line->length)
        line->now = 0;
    return sum;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 2000000;
    size_t length = argc > 2 ? (size_t)atol(argv[2]) : 20011;
    struct line line = {calloc(length, sizeof(float)), length, 0, {0}, {0}};
    for (int tap = 0; tap < 48; tap++)
        line.delays[tap] = 1 + (size_t)tap * tap * 7, line.gains[tap] = 1.0f / (float)(tap + 2);
    float sum = 0;
    for (long i = 0; i < count; i++)
        sum += feed(&line, (float)(i % 1000) * 0.001f);
    printf("%f\n", sum);
    return 0;
}
