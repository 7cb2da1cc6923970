/* tiny-reads: one byte a call. Fast: 64 KiB a call. */
#include <stdio.h>
#include <unistd.h>

static int next_byte(void)
{
    static unsigned char buffer[1 << 16];
    static ssize_t at, end;
    if (at == end) {
        end = read(0, buffer, FAST ? sizeof buffer : 1);
        at = 0;
        if (end <= 0)
            return -1;
    }
    return buffer[at++];
}

int main(void)
{
    unsigned sum = 1;
    for (int byte; (byte = next_byte()) >= 0;)
        for (int i = 0; i < 60; i++)
            sum = sum * 31 + byte;
    printf("%u\n", sum);
    return 0;
}
