// work_between COUNT: reads one byte COUNT times, and does some microseconds of its own work after each.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long sum;

// Each step depends on the previous one: the same number of cycles on each processor. A step
// through memory takes one cycle on some processors and five on others.
static void work(void) {
    unsigned long s = sum;
    for (unsigned long i = 0; i < 2000; i++)
        s = s * 6364136223846793005UL + i;
    sum = s;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    int zeros = open("/dev/zero", O_RDONLY);
    char byte;
    for (long i = 0; i < count && read(zeros, &byte, 1) == 1; i++)
        work();
    return 0;
}
