/* Opens a file so that each write waits; says whether it still does, and its mode. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *waits(int fd)
{
    return fcntl(fd, F_GETFL) & O_DSYNC ? "waits" : "returns";
}

int main(int argc, char **argv)
{
    struct stat status;
    umask(0);
    int first = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_SYNC, 0640);
    int second = openat(AT_FDCWD, argv[1], O_WRONLY | O_DSYNC);
    if (argc != 2 || write(second, "row", 3) != 3 || fstat(first, &status) != 0)
        return 1;
    printf("%s %s %o\n", waits(first), waits(second), status.st_mode & 0777);
    return 0;
}
