/* Counts the bytes of standard input, one system call per byte.
 * The line with read() is what a finding must name. */
#include <stdio.h>
#include <unistd.h>

static int next_byte(void)
{
    unsigned char byte;
    return read(STDIN_FILENO, &byte, 1) == 1 ? byte : -1; /* the tiny read */
}

int main(void)
{
    long count = 0;
    while (next_byte() >= 0)
        count++;
    printf("%ld bytes\n", count);
    return 0;
}
