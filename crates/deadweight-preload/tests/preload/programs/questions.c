/* Asks about a file again and again while the program and its children change it, in a folder. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void ask(const char *when)
{
    struct stat status;
    struct statx more;
    long size = -1, again = -1;
    for (int i = 0; i < 3; i++) {
        size = stat("file", &status) == 0 ? (long)status.st_size : -1;
        again = statx(AT_FDCWD, "file", 0, STATX_SIZE, &more) == 0 ? (long)more.stx_size : -1;
    }
    printf("%s: %ld %ld %d %d\n", when, size, again, access("file", R_OK), lstat("link", &status));
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) != 0)
        return 1;
    ask("none");
    if (system("printf abc > file; ln -s file link"))
        return 1;
    ask("made by a child");
    FILE *file = fopen("file", "a");
    ask("opened");
    fputs("defg", file);
    fflush(file);
    ask("written");
    fclose(file);
    if (truncate("file", 2))
        return 1;
    ask("cut off");
    rename("file", "other");
    ask("renamed");
    rename("other", "file");
    ask("and back");
    mkdir("folder", 0755);
    if (chdir("folder"))
        return 1;
    ask("in another folder");
    if (fork() == 0)
        _exit(symlink("nothing", "link"));
    wait(NULL);
    ask("after a child");
    int fd = open("file", O_CREAT | O_WRONLY, 0644);
    if (write(fd, "a", 1) != 1)
        return 1;
    ask("made here");
    return 0;
}
