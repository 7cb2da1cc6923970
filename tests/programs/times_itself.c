/* times_itself: pauses, and takes a pause that was too short for a fault of the machine. Without its sleeps it ends otherwise. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    struct timespec from, to;
    for (int step = 0; step < 20; step++) {
        clock_gettime(CLOCK_MONOTONIC, &from);
        usleep(10000);
        clock_gettime(CLOCK_MONOTONIC, &to);
        if ((to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec < 10000000L) {
            puts("the clock is broken");
            return 1;
        }
    }
    puts("done");
}
