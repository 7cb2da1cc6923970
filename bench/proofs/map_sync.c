/* wait-disk: a mapped table that is stored after each change. Fast: at the end. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    enum { SIZE = 1 << 20 };
    int file = open(argc > 1 ? argv[1] : "map_sync.out", O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, SIZE) != 0)
        return 1;
    unsigned char *table = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    unsigned at = 1;
    for (int change = 0; change < 150; change++) {
        for (int i = 0; i < 100000; i++)
            at = at * 1664525u + 1013904223u;
        table[at % SIZE]++;
#if !FAST
        msync(table, SIZE, MS_SYNC);
#endif
    }
    msync(table, SIZE, MS_SYNC);
    printf("%u\n", at);
    return 0;
}
