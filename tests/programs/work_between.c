// work_between COUNT: reads one byte so often, and does some microseconds of its own work after each.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long sum;

static void work(void) {
    for (unsigned long i = 0; i < 1000; i++)
        sum += i;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    int zeros = open("/dev/zero", O_RDONLY);
    char byte;
    for (long i = 0; i < count && read(zeros, &byte, 1) == 1; i++)
        work();
    return 0;
}
