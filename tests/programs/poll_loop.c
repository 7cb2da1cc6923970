/* poll_loop TIMES MILLISECONDS: polls a pipe without a writer, doing a little work in
 * between: as a program that checks regularly instead of being notified. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned look_around(void)
{
    volatile unsigned x = 1;
    for (int i = 0; i < 20000; i++)
        x = x * 1664525u + 1013904223u;
    return x;
}

int main(int argc, char **argv)
{
    int ends[2];
    if (argc != 3 || pipe(ends) != 0)
        return 2;
    struct pollfd descriptor = {.fd = ends[0], .events = POLLIN};
    unsigned seen = 0;
    for (long i = atol(argv[1]); i > 0; i--) {
        if (poll(&descriptor, 1, atoi(argv[2])) != 0) /* the time-out */
            return 1;
        seen += look_around();
    }
    printf("%u\n", seen);
    return 0;
}
