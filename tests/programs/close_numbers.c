/* close_numbers: starts 20 children one after the other, of which each closes all numbers that might be open, and then
 * does its work. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_all(void)
{
    for (int number = 3; number < 20000; number++)
        close(number); /* the call to name */
}

static unsigned work(unsigned seed)
{
    for (int i = 0; i < 200000; i++)
        seed = seed * 1664525u + 1013904223u;
    return seed;
}

int main(void)
{
    for (int i = 0; i < 20; i++) {
        if (fork() == 0) {
            close_all();
            _exit(work(i) == 1);
        }
        wait(NULL);
    }
    return 0;
}
