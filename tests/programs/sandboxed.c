/* sandboxed: pauses between steps, and then allows itself nothing but reads and writes (seccomp's strict mode), which the kernel
 * refuses where a filter was installed before: the program ends otherwise under any filter. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STRICT = 1 };

int main(void)
{
    const char done[] = "in the sandbox\n";
    for (int step = 0; step < 20; step++)
        usleep(10000);
    if (prctl(PR_SET_SECCOMP, STRICT) != 0) {
        perror("no sandbox");
        return 1;
    }
    syscall(SYS_write, 1, done, sizeof done - 1);
    syscall(SYS_exit, 0);
}
