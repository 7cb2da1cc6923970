/* parsed_again: takes the numbers of a long line by sscanf, which looks for the end of all that is left each time. FAST: strtol. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 6000 };

int main(void)
{
    char *line = malloc(NUMBERS * 8), *at = line;
    unsigned long sum = 0;
    if (line == NULL)
        return 1;
    for (unsigned i = 0; i < NUMBERS; i++)
        at += sprintf(at, "%u ", 1000 + i * 7919u % 9000);
    for (int pass = 0; pass < 60; pass++) {
        at = line;
        for (unsigned i = 0; i < NUMBERS; i++) {
            long number = 0;
#if FAST
            number = strtol(at, &at, 10);
#else
            int used = 0;
            if (sscanf(at, "%ld%n", &number, &used) != 1)
                return 2;
            at += used;
#endif
            for (int turn = 0; turn < 60; turn++)
                sum = sum * 31 + (unsigned long)number;
        }
    }
    printf("%lu\n", sum);
}
