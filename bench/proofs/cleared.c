/* zeroing: a buffer is cleared before it is filled. Fast: it is not. */
#include <stdio.h>
#include <string.h>

static unsigned char buffer[1 << 18];

__attribute__((noinline)) static void fill(unsigned seed, size_t used)
{
#if !FAST
    memset(buffer, 0, sizeof buffer);
#endif
    for (size_t i = 0; i < used; i++)
        buffer[i] = (unsigned char)(seed + i * 7);
}

int main(void)
{
    unsigned sum = 0;
    for (unsigned message = 0; message < 20000; message++) {
        size_t used = 4000 + message % 97;
        fill(message, used);
        for (size_t i = 0; i < used; i++)
            sum = sum * 31 + buffer[i];
    }
    printf("%u\n", sum);
    return 0;
}
