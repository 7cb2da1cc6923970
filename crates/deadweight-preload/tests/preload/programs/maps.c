/* Maps and unmaps memory in many ways, and prints what it finds there: fresh memory is zero. With an argument: the same size
 * again and again, so many times. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1 << 18, PAGE = 4096 };

static unsigned char *map(void *at, size_t len, int protection, int flags)
{
    unsigned char *got = mmap(at, len, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (got == MAP_FAILED)
        exit(2);
    return got;
}

static unsigned long sum(const unsigned char *at, size_t len)
{
    unsigned long all = 0;
    for (size_t i = 0; i < len; i++)
        all += at[i];
    return all;
}

int main(int argc, char **argv)
{
    int both = PROT_READ | PROT_WRITE;
    unsigned long all = 0;
    if (argc > 1) {
        for (int i = 0; i < atoi(argv[1]); i++) {
            unsigned char *at = map(NULL, SIZE, both, 0);
            for (size_t page = 0; page < SIZE; page += PAGE)
                all += at[page]++ + (i & 1u);
            munmap(at, SIZE);
        }
        printf("%lu\n", all);
        return 0;
    }
    for (size_t len = 1; len < 200 * PAGE; len += 3 * PAGE) {
        unsigned char *one = map(NULL, len, both, 0), *other = map(NULL, len, both, MAP_NORESERVE);
        memset(one, 1, len);
        memset(other, 2, len);
        munmap(one, len);
        one = map(NULL, len, both, 0);
        all += sum(one, len) + sum(other, len);
        munmap(one, len);
        munmap(other, len);
    }
    printf("sizes %lu\n", all);

    unsigned char *at = map(NULL, SIZE, both, 0);
    memset(at, 3, SIZE);
    munmap(at + PAGE, SIZE - PAGE); /* a part; then the rest */
    printf("part %lu\n", sum(at, PAGE));
    munmap(at, PAGE);

    at = map(NULL, SIZE, both, 0);
    memset(at, 4, SIZE);
    mprotect(at, SIZE, PROT_READ);
    munmap(at, SIZE);
    at = map(NULL, SIZE, both, 0);
    at[5] = 1; /* can be written */
    printf("protected %lu\n", sum(at, SIZE));

    at = mremap(at, SIZE, 2 * SIZE, MREMAP_MAYMOVE);
    printf("moved %lu\n", sum(at, 2 * SIZE));
    munmap(at, 2 * SIZE);

    at = map(NULL, SIZE, both, 0);
    memset(at, 6, SIZE);
    munmap(at, SIZE);
    unsigned char *fixed = map(at, PAGE, both, MAP_FIXED); /* where memory was */
    memset(fixed, 7, PAGE);
    unsigned char *again = map(NULL, SIZE, both, 0);
    printf("fixed %lu %lu\n", sum(fixed, PAGE), sum(again, SIZE));

    memset(again, 8, SIZE);
    madvise(again, SIZE, MADV_DONTNEED);
    printf("advised %lu\n", sum(again, SIZE));
    memset(again, 9, SIZE);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        munmap(again, SIZE);
        unsigned char *mine = map(NULL, SIZE, both, 0);
        printf("child %lu\n", sum(mine, SIZE));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("parent %lu\n", sum(again, SIZE));
    munmap(again, SIZE);
    printf("no such mapping %d %d\n", munmap((void *)1, PAGE), munmap(NULL, 0));
    printf("no length %d\n", mmap(NULL, 0, both, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
}
