// Builds a page by appending cell after cell.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char page[1 << 17];

static void append(const char *cell)
{
    strcat(page, cell); // the line to name
}

int main(int argc, char **argv)
{
    int pages = argc > 1 ? atoi(argv[1]) : 10;
    unsigned sum = 0;
    for (int p = 0; p < pages; p++) {
        page[0] = 0;
        for (int i = 0; i < 12000; i++)
            append(i % 3 ? "apples; " : "pears; ");
        for (const char *at = page; *at; at++)
            sum = sum * 31 + (unsigned char)*at;
    }
    printf("%u\n", sum);
    return 0;
}
