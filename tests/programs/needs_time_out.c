/* Polls a pipe without a writer twenty times for 10 ms, and says how long that took by another clock than the C library's: the
 * time-outs must not come sooner. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

static double uptime(void)
{
    double seconds = 0;
    FILE *file = fopen("/proc/uptime", "r");
    if (!file || fscanf(file, "%lf", &seconds) != 1)
        return -1;
    fclose(file);
    return seconds;
}

int main(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        return 2;
    struct pollfd descriptor = {.fd = ends[0], .events = POLLIN};
    double start = uptime();
    for (int i = 0; i < 20; i++)
        if (poll(&descriptor, 1, 10) != 0) /* the time-out */
            return 1;
    puts(uptime() - start > 0.15 ? "in time" : "too soon");
    return 0;
}
