// Counts numbers by their remainder.
#include <stdio.h>
#include <stdlib.h>

static unsigned long spread(const unsigned long *numbers, long count, unsigned long buckets)
{
    unsigned long sum = 0;
    for (long i = 0; i < count; i++)
        sum += numbers[i] % buckets; // the line to name
    return sum;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 60000;
    unsigned long numbers[2000], sum = 0, random = 88172645463325252u;
    for (int i = 0; i < 2000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        numbers[i] = random;
    }
    for (long round = 0; round < rounds; round++)
        sum += spread(numbers, 2000, 1000 + (unsigned long)(round & 15));
    printf("%lu\n", sum);
    return 0;
}
