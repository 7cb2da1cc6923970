/* consume STEPS: reads blocks of up to 4096 bytes to the end of input and computes STEPS after each. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned use_block(long steps)
{
    volatile unsigned x = 1;
    while (steps--)
        x = x * 1664525u + 1013904223u;
    return x;
}

int main(int argc, char **argv)
{
    char block[4096];
    unsigned sum = 0;
    if (argc != 2)
        return 2;
    while (read(STDIN_FILENO, block, sizeof block) > 0) /* the blocking read */
        sum += use_block(atol(argv[1]));
    printf("%u\n", sum);
    return 0;
}
