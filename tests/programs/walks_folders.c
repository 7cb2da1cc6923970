// Reads each file of a tree once: folders with files of the same names, each opened below its folder's descriptor.
// `walks_folders again` reads one file again and again instead.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDERS = 40, FILES = 50 };

static long sum_file(int folder, const char *name) {
    char text[256];
    long sum = 0;
    int file = openat(folder, name, O_RDONLY);
    ssize_t length = read(file, text, sizeof text);
    for (ssize_t i = 0; i < length; i++) sum += text[i];
    close(file);
    return sum;
}

static int open_folder(int root, int number) {
    char name[16];
    snprintf(name, sizeof name, "d%d", number);
    mkdirat(root, name, 0755);
    return openat(root, name, O_RDONLY | O_DIRECTORY);
}

int main(int argc, char **argv) {
    (void)argv;
    int again = argc > 1;
    char path[] = "/dev/shm/walks-folders-XXXXXX", name[16];
    int root = open(mkdtemp(path), O_RDONLY | O_DIRECTORY);
    for (int d = 0; d < FOLDERS; d++) {
        int folder = open_folder(root, d);
        for (int f = 0; f < FILES; f++) {
            snprintf(name, sizeof name, "%d", f);
            int file = openat(folder, name, O_WRONLY | O_CREAT, 0644);
            if (dprintf(file, "%d %d\n", d, f) < 0) return 1;
            close(file);
        }
        close(folder);
    }
    long sum = 0;
    for (int round = 0; round < (again ? 60 : 10); round++)
        for (int d = 0; d < FOLDERS; d++) {
            int folder = open_folder(root, again ? 0 : d);
            for (int f = 0; f < FILES; f++) {
                snprintf(name, sizeof name, "%d", again ? 0 : f);
                sum += sum_file(folder, name);
            }
            close(folder);
        }
    for (int d = 0; d < FOLDERS; d++) {
        int folder = open_folder(root, d);
        for (int f = 0; f < FILES; f++) {
            snprintf(name, sizeof name, "%d", f);
            unlinkat(folder, name, 0);
        }
        close(folder);
        snprintf(name, sizeof name, "d%d", d);
        unlinkat(root, name, AT_REMOVEDIR);
    }
    rmdir(path);
    printf("%ld\n", sum);
    return 0;
}
