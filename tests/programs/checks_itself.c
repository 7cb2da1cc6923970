/* checks_itself: clears a frame at full size before it fills a small part, and refuses to go on if its binary is not the
 * one that it was when it started first: it prints the binary's checksum. A changed copy of it says nothing about the clearing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 32768 };

__attribute__((noinline)) static unsigned decode(unsigned char *frame, const unsigned char *in, size_t length)
{
    unsigned sum = 1;
    memset(frame, 0, LARGEST); /* the line to name */
    memcpy(frame, in, length);
    for (size_t i = 0; i < length; i++)
        sum = sum * 31 + frame[i];
    return sum;
}

static unsigned checksum(const char *path)
{
    FILE *file = fopen(path, "rb");
    unsigned sum = 1;
    if (file == NULL)
        exit(2);
    for (int byte = getc(file); byte != EOF; byte = getc(file))
        sum = sum * 31 + (unsigned)byte;
    fclose(file);
    return sum;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200000;
    unsigned char *frame = malloc(LARGEST), input[4096];
    unsigned sum = checksum("/proc/self/exe");
    memset(input, 'x', sizeof input);
    printf("binary %u\n", sum);
    for (int i = 0; i < rounds; i++)
        sum += decode(frame, input, 300 + i % 300);
    printf("%u\n", sum);
}
