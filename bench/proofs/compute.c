/* A control: nothing can be left out. */
#include <stdio.h>

int main(void)
{
    unsigned x = 1;
    for (int i = 0; i < 300000000; i++)
        x = x * 1664525u + 1013904223u;
    printf("%u\n", x);
    return 0;
}
