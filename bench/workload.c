/* workload KIND COUNT: one kind of load, COUNT times; what the bench runs under each tool.
 *   reads     1-byte reads of /dev/zero
 *   pingpong  a byte to a child and back through two pipes
 *   faults    first touches of fresh pages
 *   cpu       steps of arithmetic, in thousands
 *   forks     fork, exec of /bin/true, wait */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int reads(long count)
{
    char byte;
    int zero = open("/dev/zero", O_RDONLY);
    while (count-- > 0)
        if (read(zero, &byte, 1) != 1)
            return 1;
    return 0;
}

static int pingpong(long count)
{
    int there[2], back[2];
    char byte = 'x';
    if (pipe(there) != 0 || pipe(back) != 0)
        return 1;
    if (fork() == 0) {
        close(there[1]);
        while (read(there[0], &byte, 1) == 1)
            if (write(back[1], &byte, 1) != 1)
                _exit(1);
        _exit(0);
    }
    while (count-- > 0)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            return 1;
    close(there[1]);
    return wait(NULL) < 0;
}

static int faults(long count)
{
    size_t size = (size_t)count * 4096;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    madvise(memory, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += 4096)
        memory[at] = 1;
    return 0;
}

static int cpu(long count)
{
    volatile unsigned x = 1;
    for (long i = count * 1000; i > 0; i--)
        x = x * 1664525u + 1013904223u;
    return 0;
}

static int forks(long count)
{
    while (count-- > 0) {
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        if (waitpid(child, NULL, 0) < 0)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    long count = atol(argv[2]);
    switch (argv[1][0]) {
    case 'r': return reads(count);
    case 'p': return pingpong(count);
    case 'f': return strcmp(argv[1], "forks") == 0 ? forks(count) : faults(count);
    case 'c': return cpu(count);
    default: return 2;
    }
}
