/* A program that traces its own child, as a debugger does: the child asks to be traced and stops;
 * the parent reads its number, resumes it, and prints how it ended. */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(9);
        raise(SIGSTOP);
        _exit(7);
    }
    int status;
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) {
        printf("not stopped: %d\n", WEXITSTATUS(status));
        return 1;
    }
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    printf("the child ended with %d\n", WEXITSTATUS(status));
    return 0;
}
