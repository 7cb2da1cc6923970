/* follow: reads a file to which a process of its own adds a line each 30 ms, and looks every 10 ms. Looking more often
 * would end no earlier. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = ms * 1000000};
    nanosleep(&time, NULL);
}

static void add_lines(int file)
{
    for (int i = 0; i < 18; i++) {
        pause_ms(30);
        if (write(file, "a line\n", 7) != 7)
            _exit(1);
    }
    _exit(write(file, "END\n", 4) != 4);
}

int main(void)
{
    char name[] = "/tmp/follow.XXXXXX", text[4096];
    int file = mkstemp(name);
    if (file < 0)
        return 2;
    unlink(name);
    if (fork() == 0)
        add_lines(file);
    off_t at = 0;
    for (;;) {
        ssize_t more = pread(file, text, sizeof text, at);
        if (more < 0)
            return 1;
        if (more > 0 && memmem(text, more, "END", 3))
            return wait(NULL) < 0;
        at += more;
        if (more == 0)
            pause_ms(10);
    }
}
