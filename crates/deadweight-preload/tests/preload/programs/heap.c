// Uses memory in every way that the C library offers, and prints what it finds. The output is the same with any
// allocator that is right.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int ok, const char *what) {
    if (!ok) {
        printf("wrong: %s\n", what);
        fflush(stdout);
        _exit(1);
    }
}

static uint64_t next(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

// Sizes up to the given one, small ones more often.
static size_t size(uint64_t *seed, size_t most) {
    return next(seed) % (1 + most / (1 + next(seed) % 1024));
}

struct block { unsigned char *at; size_t len; unsigned char fill; };

static int filled(struct block *b, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (b->at[i] != b->fill) return 0;
    return 1;
}

enum { SLOTS = 512 };
static struct block slots[SLOTS];
static pthread_mutex_t locks[SLOTS];

// Takes, resizes and frees blocks that any thread took.
static void *work(void *argument) {
    uint64_t seed = 88172645463325252ull + (uintptr_t)argument * 7919;
    for (int i = 0; i < 30000; i++) {
        int slot = next(&seed) % SLOTS;
        pthread_mutex_lock(&locks[slot]);
        struct block *b = &slots[slot];
        if (b->at) {
            check(filled(b, b->len), "bytes of a block");
            if (next(&seed) % 3 == 0) {
                size_t len = 1 + size(&seed, 300000), kept = len < b->len ? len : b->len;
                b->at = realloc(b->at, len);
                check(filled(b, kept), "bytes after realloc");
                b->len = len;
                memset(b->at, b->fill, len);
            } else {
                free(b->at);
                b->at = NULL;
            }
        } else {
            b->len = size(&seed, 300000);
            b->fill = next(&seed);
            switch (next(&seed) % 4) {
            case 0: {
                size_t align = 16u << next(&seed) % 9;
                check(posix_memalign((void **)&b->at, align, b->len) == 0, "posix_memalign");
                check((uintptr_t)b->at % align == 0, "alignment");
                break;
            }
            case 1: {
                unsigned char fill = b->fill;
                b->at = calloc(1, b->len);
                b->fill = 0;
                check(filled(b, b->len), "calloc is zero");
                b->fill = fill;
                break;
            }
            default: b->at = malloc(b->len);
            }
            check(b->at && (uintptr_t)b->at % 16 == 0, "malloc");
            check(malloc_usable_size(b->at) >= b->len, "malloc_usable_size");
            memset(b->at, b->fill, b->len);
        }
        pthread_mutex_unlock(&locks[slot]);
    }
    return NULL;
}

static void *thread_that_forks(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            for (int k = 0; k < 1000; k++) free(malloc(k * 300));
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        check(status == 0, "memory in the child of a fork");
    }
    return NULL;
}

static void *short_thread(void *unused) {
    void *blocks[100];
    (void)unused;
    for (int i = 0; i < 100; i++) blocks[i] = malloc(i * 50);
    for (int i = 0; i < 100; i++) free(blocks[i]);
    return NULL;
}

static void edges(void) {
    free(NULL);
    void *a = malloc(0), *b = malloc(0);
    check(a && b && a != b, "malloc(0)");
    free(a);
    free(b);
    volatile size_t huge = (size_t)PTRDIFF_MAX + 1;
    errno = 0;
    check(!malloc(huge) && errno == ENOMEM, "malloc of too much");
    check(!calloc(huge, 2) && !calloc(huge / 2, 4) && !realloc(NULL, huge), "too much");
    check(!reallocarray(NULL, huge, 4), "reallocarray of too much");
    check(!memalign(64, -(size_t)32) && !malloc(-(size_t)1), "memalign of too much");
    check(posix_memalign(&a, 3, 8) == EINVAL, "posix_memalign of 3");
    void *big = malloc(100 << 20);
    errno = 77;
    free(big);
    check(errno == 77, "free keeps errno");
    a = malloc(100);
    strcpy(a, "kept");
    check(!realloc(a, huge) && !strcmp(a, "kept"), "a block after realloc failed");
    a = realloc(a, 50 << 20);
    check(!strcmp(a, "kept"), "growth");
    a = realloc(a, 10);
    check(!memcmp(a, "kept", 5), "shrinking");
    check(!realloc(a, 0), "realloc to nothing");
    a = aligned_alloc(4096, 8192);
    check((uintptr_t)a % 4096 == 0, "aligned_alloc");
    memset(a, 1, 8192);
    a = realloc(a, 100000);
    check(((char *)a)[8191] == 1, "realloc of an aligned block");
    free(a);
    a = memalign(1 << 20, 1 << 20);
    check((uintptr_t)a % (1 << 20) == 0, "memalign of a large block");
    free(a);
    a = valloc(10), b = pvalloc(10);
    check((uintptr_t)a % 4096 == 0 && (uintptr_t)b % 4096 == 0, "valloc");
    memset(b, 1, 4096);
    free(a);
    free(b);
    for (int i = 0; i < 50; i++) {
        unsigned char *p = malloc(200000 + i * 1000);
        memset(p, 255, 200000);
        free(p);
        p = calloc(200000 + i * 1000, 1);
        for (int k = 0; k < 200000; k++) check(p[k] == 0, "a large calloc is zero");
        free(p);
    }
}

// One thread takes, the other one frees: memory must not grow with the number of blocks.
static void *ring[1024];
static volatile long put, got;

static void *consume(void *count) {
    for (long i = 0; i < (long)count; i++) {
        while (__atomic_load_n(&put, __ATOMIC_ACQUIRE) == i) sched_yield();
        free(ring[i % 1024]);
        __atomic_store_n(&got, i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void hand_over(void) {
    long count = 2000000;
    pthread_t thread;
    pthread_create(&thread, NULL, consume, (void *)count);
    for (long i = 0; i < count; i++) {
        while (i - __atomic_load_n(&got, __ATOMIC_ACQUIRE) == 1024) sched_yield();
        ring[i % 1024] = memset(malloc(64), 1, 64);
        __atomic_store_n(&put, i + 1, __ATOMIC_RELEASE);
    }
    pthread_join(thread, NULL);
}

static long peak(void) {
    char line[200];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld", &kib);
    fclose(status);
    return kib;
}

int main(void) {
    for (int i = 0; i < SLOTS; i++) pthread_mutex_init(&locks[i], NULL);
    edges();
    hand_over();
    for (int i = 0; i < 2000; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, short_thread, NULL);
        pthread_join(thread, NULL);
    }
    check(peak() < 100 << 10, "memory does not grow");
    pthread_t threads[5];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    pthread_create(&threads[4], NULL, thread_that_forks, NULL);
    for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].at) check(filled(&slots[i], slots[i].len), "bytes at the end");
    puts("all is right");
    return 0;
}
