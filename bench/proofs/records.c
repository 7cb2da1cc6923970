/* A control: writes large blocks, syncs once, and reads them again. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static unsigned block[1 << 14];
    int file = open(argc > 1 ? argv[1] : "records.out", O_CREAT | O_TRUNC | O_RDWR, 0600);
    unsigned x = 1;
    for (int n = 0; n < 400; n++) {
        for (size_t i = 0; i < sizeof block / sizeof *block; i++)
            block[i] = x = x * 1664525u + 1013904223u;
        if (write(file, block, sizeof block) != sizeof block)
            return 1;
    }
    fdatasync(file);
    printf("%u\n", x);
    return 0;
}
