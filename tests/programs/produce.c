/* produce BLOCKS STEPS: writes BLOCKS blocks of 4096 bytes and computes STEPS before each. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned make_block(char *block, long steps)
{
    volatile unsigned x = 1;
    while (steps--)
        x = x * 1664525u + 1013904223u;
    memset(block, (int)(x & 127), 4096);
    return x;
}

int main(int argc, char **argv)
{
    char block[4096];
    if (argc != 3)
        return 2;
    for (long i = atol(argv[1]); i > 0; i--) {
        make_block(block, atol(argv[2]));
        if (write(STDOUT_FILENO, block, sizeof block) != sizeof block) /* the blocking write */
            return 1;
    }
    return 0;
}
