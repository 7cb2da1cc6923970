/* Collects lines in eight buffers; for each line, a buffer is enlarged to just the needed size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    char *bytes;
    size_t used;
};

static void put(struct buffer *b, const char *line, size_t n)
{
    b->bytes = realloc(b->bytes, b->used + n); /* the line to name */
    memcpy(b->bytes + b->used, line, n);
    b->used += n;
}

int main(int argc, char **argv)
{
    static const char line[] = "GET /items/1234567 HTTP/1.1 200 -\n";
    long rounds = argc > 1 ? atol(argv[1]) : 300;
    unsigned random = 5;
    unsigned long sum = 0;
    for (long round = 0; round < rounds; round++) {
        struct buffer of[8] = {{0}};
        for (int i = 0; i < 12000; i++) {
            random = random * 1664525u + 1013904223u;
            put(&of[random >> 29], line, 20 + (random >> 16) % 14);
        }
        for (int b = 0; b < 8; b++) {
            for (size_t at = 0; at < of[b].used; at += 7)
                sum = sum * 31 + (unsigned char)of[b].bytes[at];
            free(of[b].bytes);
        }
    }
    printf("%lu\n", sum);
    return 0;
}
