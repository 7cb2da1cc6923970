// Runs a command on a terminal that goes away once a file has been written: hang_up FILE COMMAND...
// Prints how the command ended, as a shell reports it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ours < 0 || grantpt(ours) != 0 || unlockpt(ours) != 0) return 3;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        int theirs = open(ptsname(ours), O_RDWR);
        ioctl(theirs, TIOCSCTTY, 0);
        for (int fd = 0; fd < 3; fd++) dup2(theirs, fd);
        if (theirs > 2) close(theirs);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    struct stat there;
    for (int i = 0; i < 30000 && (stat(argv[1], &there) != 0 || there.st_size == 0); i++) usleep(1000);
    close(ours);
    int status;
    waitpid(child, &status, 0);
    printf("%d\n", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    return 0;
}
