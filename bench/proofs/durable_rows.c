/* durable_rows: a file that is opened so that each write waits for the disk. FAST waits once, at the end. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    int fd = open("rows", O_WRONLY | O_CREAT | O_TRUNC | (FAST ? 0 : O_DSYNC), 0600);
    unsigned long sum = 1;
    char row[256];
    for (unsigned i = 0; i < 2000; i++) {
        for (int turn = 0; turn < 20000; turn++)
            sum = sum * 31 + i;
        memset(row, (int)('a' + sum % 26), sizeof row);
        if (write(fd, row, sizeof row) != sizeof row)
            return 1;
    }
    if (FAST && fdatasync(fd) != 0)
        return 2;
    close(fd);
    printf("%lu\n", sum);
}
