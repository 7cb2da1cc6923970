// clears_between COUNT: reads one byte COUNT times, and before each read clears 64 KiB, of which it uses one byte.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char buffer[64 << 10];

static void step(int zeros) {
    memset(buffer, 0, sizeof buffer);
    __asm__ volatile("" : : "r"(buffer) : "memory");
    if (read(zeros, buffer, 1) != 1)
        exit(1);
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    int zeros = open("/dev/zero", O_RDONLY);
    for (long i = 0; i < count; i++)
        step(zeros);
    return 0;
}
