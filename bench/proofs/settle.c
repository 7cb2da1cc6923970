/* wait-sleep: lets each of twenty steps settle for 10 ms, although nothing has to. Fast: without. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    unsigned x = 1;
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < 3000000; i++)
            x = x * 1664525u + 1013904223u;
#if !FAST
        usleep(10000);
#endif
    }
    printf("%u\n", x);
    return 0;
}
