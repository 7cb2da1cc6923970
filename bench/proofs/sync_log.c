/* wait-disk: a log whose every record is made durable. Fast: the whole log once. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int log = open(argc > 1 ? argv[1] : "sync_log.out", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    unsigned sum = 7;
    for (int record = 0; record < 250; record++) {
        char line[64];
        for (int i = 0; i < 20000; i++)
            sum = sum * 1664525u + 1013904223u;
        int length = snprintf(line, sizeof line, "%d %u a record of a log\n", record, sum);
        if (write(log, line, length) != length)
            return 1;
#if !FAST
        fdatasync(log);
#endif
    }
    fdatasync(log);
    printf("%u\n", sum);
    return 0;
}
