// Reads numbers from one long text by sscanf.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int numbers = argc > 1 ? atoi(argv[1]) : 20000;
    char *text = malloc((size_t)numbers * 8 + 1), *at = text;
    for (int i = 0; i < numbers; i++)
        at += sprintf(at, "%07d\n", i);
    long sum = 0;
    for (at = text; *at; at += 8) {
        int number;
        sscanf(at, "%d", &number); // the line to name
        sum += number;
    }
    printf("%ld\n", sum);
    return 0;
}
