/* Counts the signals that reach it, each of which is queued, and says how many at a hang-up:
   none may be lost or come twice, with or without a recorder. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t counted, hung_up;

static void count(int signal) { (void)signal; counted++; }
static void hang_up(int signal) { (void)signal; hung_up = 1; }

int main(void) {
    struct sigaction counts = {.sa_handler = count}, hangs = {.sa_handler = hang_up};
    sigaction(SIGRTMIN, &counts, NULL);
    sigaction(SIGHUP, &hangs, NULL);
    FILE *ready = fopen("ready", "w");
    fprintf(ready, "%d\n", getpid());
    fclose(ready);
    while (!hung_up) {
        struct timespec moment = {0, 3000000};
        /* Sleep the rest if a signal interrupted the sleep; after a stop it continues by itself. */
        while (nanosleep(&moment, &moment) != 0)
            if (errno != EINTR) return 1;
    }
    printf("%d\n", (int)counted);
    return 7;
}
