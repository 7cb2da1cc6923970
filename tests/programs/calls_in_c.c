// 200 000 calls of `parse` from two threads, each with two allocations: 124 bytes. All memory comes
// from one function, which `render` uses too. `step` is inlined: its calls cannot be counted.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 200000

static volatile unsigned long sum;

static __attribute__((noinline)) char *take(size_t size) {
    return memset(malloc(size), 1, size); // the line to name
}

__attribute__((noinline)) void parse(int i) {
    char *key = take(24), *value = take(100);
    unsigned long x = (unsigned long)(key[i % 24] + value[i % 100]);
    for (int n = 0; n < 200; n++)
        x = x * 6364136223846793005UL + 1442695040888963407UL;
    sum += x;
    free(value);
    free(key);
}

__attribute__((noinline)) void render(int i) {
    char *line = take(50);
    sum += (unsigned long)line[i % 50];
    free(line);
}

static inline __attribute__((always_inline)) unsigned long step(unsigned long x) {
    for (int i = 0; i < 100; i++)
        x = x * 6364136223846793005UL + 1442695040888963407UL;
    return x;
}

static void *work(void *unused) {
    for (int i = 0; i < CALLS / 2; i++) {
        parse(i);
        render(i);
        sum = step(sum);
    }
    return unused;
}

int main(void) {
    pthread_t other;
    pthread_create(&other, NULL, work, NULL);
    work(NULL);
    pthread_join(other, NULL);
    return 0;
}
