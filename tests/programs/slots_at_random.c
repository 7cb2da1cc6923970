// A table of 8 million slots (512 MiB) for 80 000 keys: nearly each key costs a page of its own.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BITS = 23, KEYS = 80000 };

struct slot {
    uint64_t key, count, more[6];
};

static struct slot *table;

static struct slot *slot_of(uint64_t key) {
    return &table[key * 0x9E3779B97F4A7C15ull >> (64 - BITS)];
}

int main(void) {
    uint64_t state = 88172645463325252ull, sum = 0;
    static uint64_t keys[KEYS];
    table = calloc(1ull << BITS, sizeof *table);
    for (int i = 0; i < KEYS; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        keys[i] = state;
    }
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < KEYS; i++) {
            struct slot *slot = slot_of(keys[i]);
            slot->key = keys[i];
            sum += ++slot->count;
        }
    printf("%lu\n", (unsigned long)sum);
    free(table);
}
