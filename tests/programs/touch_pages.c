/* touch_pages PAGES: writes one byte to each page of fresh memory. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static void touch(volatile char *memory, long pages)
{
    for (long i = 0; i < pages; i++)
        memory[i * 4096] = 1; /* the first touch */
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    long pages = atol(argv[1]);
    char *memory = mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    madvise(memory, (size_t)pages * 4096, MADV_NOHUGEPAGE);
    touch(memory, pages);
    printf("%d\n", memory[4096]);
    return 0;
}
