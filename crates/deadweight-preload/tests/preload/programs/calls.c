// Does input and output in the way that its first argument names. Standard error gets the number of system
// calls that read and wrote, if the second argument is there.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
// A template for mkstemp, which fills in the name of a new file.
static char path[] = "calls.XXXXXX";

static void put(int fd, const char *text) {
    for (; *text; text++)
        if (write(fd, text, 1) != 1) _exit(9);
}

static void bytes(void) {
    for (int i = 0; i < 20000; i++) {
        char byte = 'a' + i % 26;
        write(1, &byte, 1);
    }
}

static void copy(void) {
    char byte;
    while (read(0, &byte, 1) == 1) write(1, &byte, 1);
}

static void records(void) {
    char record[100];
    ssize_t got;
    for (int i = 1; (got = read(0, record, i % 99 + 1)) > 0; i++) write(1, record, got);
}

static int scratch(void) {
    int fd = mkstemp(path);
    unlink(path);
    return fd;
}

static void seeks(void) {
    int fd = scratch();
    char text[64];
    unsigned seed = 1;
    for (int i = 0; i < 5000; i++) {
        int len = snprintf(text, sizeof text, "%06d,", i);
        write(fd, text, len);
    }
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1103515245 + 12345;
        off_t at = seed / 65536 % 35000;
        switch (seed / 1024 % 6) {
        case 0: at = lseek(fd, at, SEEK_SET); break;
        case 1: at = lseek(fd, (int)(seed / 4096 % 200) - 100, SEEK_CUR); break;
        case 2: at = lseek(fd, -at, SEEK_END); break;
        case 3: write(fd, text, seed / 4096 % 20); break;
        case 4: at = pread(fd, text, 20, at); break;
        default: break;
        }
        int got = read(fd, text, seed / 4096 % 40);
        printf("%ld %d %.*s %ld\n", (long)at, got, got, text, (long)lseek(fd, 0, SEEK_CUR));
    }
    struct stat stat;
    write(fd, "end", 3);
    fstat(fd, &stat);
    printf("%ld\n", (long)stat.st_size);
    ftruncate(fd, 10);
    lseek(fd, 0, SEEK_SET);
    printf("%zd\n", read(fd, text, 60));
    close(fd);
}

static void twice(void) {
    int out = mkstemp(path);
    char text[64];
    put(out, "first");
    int in = open(path, O_RDONLY);
    printf("%zd\n", read(in, text, 60));
    put(out, "second");
    printf("%zd\n", read(in, text, 60));
    int third = dup(in);
    lseek(third, 2, SEEK_SET);
    put(out, "third");
    printf("%zd %.3s\n", read(in, text, 3), text);
    printf("%zd %.3s\n", read(third, text, 3), text);
    FILE *stream = fopen(path, "a");
    fprintf(stream, "fourth");
    fflush(stream);
    struct stat stat_;
    stat(path, &stat_);
    printf("%ld\n", (long)stat_.st_size);
    fprintf(stream, "fifth");
    fflush(stream);
    write(fileno(stream), "sixth", 5);
    fprintf(stream, "seventh");
    fclose(stream);
    int got = pread(in, text, 60, 10);
    printf("%.*s\n", got, text);
    unlink(path);
}

static void maps(void) {
    int fd = scratch();
    char text[8] = {0};
    write(fd, "abc", 3);
    char *memory = mmap(NULL, 3, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    printf("%.3s\n", memory);
    for (int i = 0; i < 3; i++) {
        memory[i] = 'X';
        lseek(fd, 0, SEEK_SET);
        read(fd, text, 3);
        printf("%s\n", text);
        pwrite(fd, "y", 1, i);
        printf("%.3s\n", memory);
    }
}

static void forks(void) {
    for (int i = 0; i < 50; i++) {
        put(1, "parent before\n");
        pid_t child = fork();
        if (child == 0) {
            put(1, "child\n");
            if (i % 2) exit(0);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        put(1, "parent after\n");
        child = vfork();
        if (child == 0) {
            execl("/bin/echo", "echo", "from", "vfork", NULL);
            _exit(1);
        }
        waitpid(child, NULL, 0);
    }
    put(1, "before system\n");
    system("echo system");
    put(1, "before popen\n");
    FILE *command = popen("cat", "w");
    fprintf(command, "popen\n");
    pclose(command);
    char *arguments[] = {"echo", "spawned", NULL};
    pid_t child;
    put(1, "before spawn\n");
    posix_spawnp(&child, "echo", NULL, NULL, arguments, environ);
    waitpid(child, NULL, 0);
    put(1, "before exec\n");
    execlp("sh", "sh", "-c", "echo $0 $1; exit 7", "one", "two", NULL);
}

static void redirects(void) {
    int saved = dup(1), file = scratch();
    put(1, "to standard output\n");
    dup2(file, 1);
    put(1, "to the file\n");
    system("echo and the child");
    dup2(saved, 1);
    put(1, "to standard output again\n");
    lseek(file, 0, SEEK_SET);
    char byte;
    while (read(file, &byte, 1) == 1) write(1, &byte, 1);
    printf("printed\n");
    fflush(stdout);
    dup2(2, 1);
    dup2(saved, 1);
    printf("printed again\n");
}

static void rest_for_another(void) {
    char line[16] = {0};
    for (int i = 0; i < 10; i++) read(0, line + i, 1);
    write(1, line, 10);
    system("head -c 10");
    for (int i = 0; i < 10; i++) read(0, line + i, 1);
    write(1, line, 10);
    execlp("cat", "cat", NULL);
}

static void unbuffered(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 10000; i++) putchar('a' + i % 26);
    write(1, "direct", 6);
    printf("formatted %d\n", 5);
    if (fork() == 0) {
        puts("child");
        _exit(0);
    }
    wait(NULL);
    puts("parent");
    setlinebuf(stdout);
    puts("line");
    setvbuf(stdout, NULL, _IOFBF, 4096);
    puts("full");
}

// Functions that glibc has in two versions: the old one gives such a file to a shell.
static void versions(void) {
    int file = mkstemp(path);
    char *arguments[] = {path, NULL};
    pid_t child;
    put(file, "echo a shell ran\n");
    fchmod(file, 0700);
    close(file);
    printf("%s\n", posix_spawn(&child, path, NULL, NULL, arguments, environ) ? "refused" : "ran");
    unlink(path);
}

static void mixes(void) {
    put(1, "first ");
    for (int i = 0; i < 3000; i++) printf("%d %.3f %g, ", i, i / 7.0, 1e9 * i);
    put(1, "last\n");
    dprintf(1, "%f %s\n", 2.5, "at once");
    put(1, "very last\n");
}

static void joins(void) {
    setlinebuf(stdout);
    printf("line\n");
    dup2(1, 2);
    printf("to standard output\n");
    fprintf(stderr, "to standard error\n");
    printf("again\n");
    fflush(stdout);
    fprintf(stderr, "to standard error again\n");
}

static void flushes(void) {
    for (int i = 0; i < 10000; i++) {
        printf("line %d\n", i);
        fflush(stdout);
        if (i == 5000) write(1, "direct\n", 7);
    }
    fprintf(stderr, "");
    fflush(stdout);
}

static void leaves(void) {
    printf("flushed\n");
    fflush(stdout);
    write(1, "direct\n", 7);
    _exit(3);
}

static void dies(void) {
    put(1, "pending");
    kill(getpid(), SIGTERM);
}

static void aborts(void) {
    printf("flushed");
    fflush(stdout);
    abort();
}

static void conversation(void) {
    int to[2], from[2];
    char line[64];
    pipe(to);
    pipe(from);
    if (fork() == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        setlinebuf(stdout);
        while (fgets(line, sizeof line, stdin)) printf("answer to %s", line);
        exit(0);
    }
    close(to[0]);
    close(from[1]);
    FILE *out = fdopen(to[1], "w"), *in = fdopen(from[0], "r");
    for (int i = 0; i < 100; i++) {
        fprintf(out, "question %d\n", i);
        fflush(out);
        fgets(line, sizeof line, in);
        fputs(line, stdout);
    }
    fclose(out);
    wait(NULL);
}

static int channel[2];

static void *answer(void *unused) {
    (void)unused;
    char byte;
    while (read(channel[0], &byte, 1) == 1 && byte != '.') put(1, &(char[]){byte, 0}[0]);
    return NULL;
}

static void threads(void) {
    pthread_t thread;
    put(1, "before\n");
    pipe(channel);
    pthread_create(&thread, NULL, answer, NULL);
    put(channel[1], "to the other thread\n.");
    pthread_join(thread, NULL);
    put(1, "after\n");
}

static void fails(void) {
    struct rlimit limit = {1000, 1000};
    int fd = scratch(), failed = 0;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 2000; i++) failed |= write(fd, "x", 1) < 0 && errno == EFBIG;
    failed |= close(fd) < 0 && errno == EFBIG;
    printf("%s\n", failed ? "failed" : "did not fail");
    printf("%d\n", write(77, "x", 1) < 0 && errno == EBADF);
    fd = open("/dev/null", O_RDONLY);
    printf("%d\n", write(fd, "x", 1) < 0 && errno == EBADF);
}

int main(int count, char **arguments) {
    static const struct { const char *name; void (*run)(void); } ways[] = {
        {"bytes", bytes}, {"copy", copy}, {"records", records}, {"seeks", seeks}, {"twice", twice}, {"maps", maps},
        {"forks", forks}, {"redirects", redirects}, {"rest_for_another", rest_for_another},
        {"unbuffered", unbuffered}, {"flushes", flushes}, {"mixes", mixes}, {"joins", joins}, {"versions", versions},
        {"leaves", leaves}, {"dies", dies},
        {"aborts", aborts}, {"conversation", conversation}, {"threads", threads}, {"fails", fails},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(ways[i].name, arguments[1])) ways[i].run();
    if (count > 2) {
        char line[100];
        FILE *io = fopen("/proc/self/io", "r");
        while (fgets(line, sizeof line, io))
            if (!strncmp(line, "sysc", 4)) fputs(line, stderr);
    }
    return 5;
}
