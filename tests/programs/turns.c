// turns COUNT: two processes pass one byte back and forth COUNT times, through two pipes.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void hand(int to) {
    if (write(to, "x", 1) != 1)
        _exit(1);
}

static void take(int from) {
    char byte;
    if (read(from, &byte, 1) != 1)
        _exit(1);
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    int there[2], back[2];
    if (pipe(there) || pipe(back))
        return 1;
    pid_t other = fork();
    for (long i = 0; i < count; i++) {
        if (other) {
            hand(there[1]);
            take(back[0]);
        } else {
            take(there[0]);
            hand(back[1]);
        }
    }
    if (!other)
        _exit(0);
    return waitpid(other, NULL, 0) != other;
}
