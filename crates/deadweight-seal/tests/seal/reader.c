/* One system call from a line of its own, for call sites. */
#include <unistd.h>

static int next_byte(int fd, char *byte) {
    return (int)read(fd, byte, 1);
}

int main(void) {
    char byte;
    long sum = 0;
    while (next_byte(0, &byte) == 1) sum += byte;
    return sum == 0;
}
