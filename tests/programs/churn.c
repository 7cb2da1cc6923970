/* churn ROUNDS: allocates and frees a buffer in each round. It is so large that the allocator takes
 * it from the kernel each time, and the kernel zeroes and maps each page again. */
#include <stdio.h>
#include <stdlib.h>

static unsigned use_buffer(unsigned seed)
{
    size_t size = (size_t)40 << 20;
    volatile unsigned char *buffer = malloc(size); /* the kernel is asked */
    if (buffer == NULL)
        exit(1);
    for (size_t at = 0; at < size / 16; at += 4096)
        buffer[at] = (unsigned char)seed; /* each page anew */
    seed += buffer[4096];
    free((void *)buffer);
    return seed;
}

int main(int argc, char **argv)
{
    unsigned seed = 1;
    if (argc != 2)
        return 2;
    for (long i = atol(argv[1]); i > 0; i--)
        seed = use_buffer(seed);
    printf("%u\n", seed);
    return 0;
}
