/* memory-churn: 33 MiB for each frame, given back after it. Fast: kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    enum { SIZE = 33 << 20 };
    static unsigned char kept[SIZE];
    unsigned sum = 0;
    for (int frame = 0; frame < 40; frame++) {
        unsigned char *plane = FAST ? kept : malloc(SIZE);
        memset(plane, frame, SIZE);
        for (int i = 0; i < SIZE; i += 256)
            sum = sum * 31 + plane[i];
        if (!FAST)
            free(plane);
    }
    printf("%u\n", sum);
    return 0;
}
