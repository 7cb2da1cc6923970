/* durable_rows FILE ROWS: each row is stored before the next is written, because the file was opened with O_DSYNC. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_DSYNC, 0644);
    if (fd < 0)
        return 1;
    char row[256];
    for (long i = 0; i < atol(argv[2]); i++) {
        int size = snprintf(row, sizeof row, "%200ld\n", i);
        if (write(fd, row, (size_t)size) != size) /* the line to name */
            return 1;
    }
    printf("%s rows\n", argv[2]);
    return close(fd);
}
