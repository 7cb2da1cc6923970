/* Programs that tracing may disturb, by the first argument: each prints what it saw and ends with 7. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void work(void)
{
    for (int i = 0; i < 2000; i++)
        syscall(SYS_getppid);
}

/* Not dumpable: other processes must not read its memory. */
static int hidden(void)
{
    prctl(PR_SET_DUMPABLE, 0);
    work();
    printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
    return 7;
}

/* Its parent traces it, at its own request. */
static int traced(void)
{
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(9);
        work();
        _exit(3);
    }
    int status = 0, stops = 0;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status) && ++stops < 100)
        ptrace(PTRACE_CONT, child, 0, 0);
    printf("exited %d with %d after %d stops\n", WIFEXITED(status), WEXITSTATUS(status), stops);
    return 7;
}

/* A filter allows only read, write, exit and return from a signal. */
static int strict(void)
{
    write(1, "strict\n", 7);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    for (int i = 0; i < 1000; i++)
        write(1, "", 0);
    syscall(SYS_exit, 7);
    return 1;
}

/* A filter of its own refuses one call. */
static int filtered(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    work();
    long said = syscall(SYS_getppid);
    printf("refused %d\n", said == -1 && errno == EXDEV);
    return 7;
}

static void *nothing(void *argument)
{
    return argument;
}

/* This many threads, one after the other. */
static int in_turn(void)
{
    int ended = 0;
    for (int i = 0; i < 10000; i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, nothing, 0) == 0 && pthread_join(thread, 0) == 0)
            ended++;
    }
    printf("%d threads\n", ended);
    return 7;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *pass(void *argument)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return argument;
}

/* This many threads alive at once. */
static int at_once(void)
{
    static pthread_t threads[10000];
    pthread_attr_t small;
    int born = 0, ended = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_mutex_lock(&gate);
    while (born < 10000 && pthread_create(&threads[born], &small, pass, 0) == 0)
        born++;
    pthread_mutex_unlock(&gate);
    while (ended < born && pthread_join(threads[ended], 0) == 0)
        ended++;
    printf("%d of %d threads\n", ended, born);
    return 7;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } habits[] = {{"hidden", hidden}, {"traced", traced},   {"strict", strict},
                  {"filtered", filtered}, {"in-turn", in_turn}, {"at-once", at_once}};
    setvbuf(stdout, 0, _IONBF, 0);
    for (unsigned i = 0; argc > 1 && i < sizeof habits / sizeof *habits; i++)
        if (strcmp(argv[1], habits[i].name) == 0)
            return habits[i].run();
    return 2;
}
