// Prints numbers: making text is its work.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int numbers = argc > 1 ? atoi(argv[1]) : 2000000;
    for (int i = 0; i < numbers; i++)
        printf("%d %d\n", i, i * 7);
    return 0;
}
