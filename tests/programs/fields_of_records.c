// Adds up one number of each of many large records, again and again.
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int price;
    char text[252];
} Record;

static long total(const Record *records, long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += records[i].price; // the line to name
    return sum;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 200, count = 200 * 1000, sum = 0;
    Record *records = malloc(count * sizeof *records);
    if (!records)
        return 1;
    for (long i = 0; i < count; i++)
        records[i].price = (int)i;
    for (long round = 0; round < rounds; round++) {
        records[round].price++;
        sum += total(records, count);
    }
    printf("%ld\n", sum);
    free(records);
    return 0;
}
