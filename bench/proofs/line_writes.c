/* tiny-writes: a write for each line. Fast: collected. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char buffer[1 << 16];
static size_t filled;

static void flush(void)
{
    if (filled && write(1, buffer, filled) != (ssize_t)filled)
        _exit(1);
    filled = 0;
}

int main(void)
{
    unsigned x = 1;
    for (int line = 0; line < 150000; line++) {
        char text[40];
        x = x * 1664525u + 1013904223u;
        size_t length = snprintf(text, sizeof text, "%d %u\n", line, x);
        if (filled + length > sizeof buffer)
            flush();
        memcpy(buffer + filled, text, length);
        filled += length;
        if (!FAST)
            flush();
    }
    flush();
    return 0;
}
