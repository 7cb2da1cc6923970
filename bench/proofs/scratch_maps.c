/* scratch_maps: maps a scratch buffer for each block and unmaps it. FAST keeps one buffer. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { SCRATCH = 512 << 10, BLOCKS = 2000 };

static unsigned char *scratch(void)
{
    void *at = mmap(NULL, SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

int main(void)
{
    unsigned char *at = FAST ? scratch() : NULL;
    unsigned long sum = 1;
    for (unsigned block = 0; block < BLOCKS; block++) {
        if (!FAST)
            at = scratch();
        if (at == NULL)
            return 1;
        memset(at, (int)block, SCRATCH);
        for (size_t i = 0; i < SCRATCH; i += 8)
            sum = sum * 31 + at[i];
        if (!FAST)
            munmap(at, SCRATCH);
    }
    printf("%lu\n", sum);
}
