/* As little as a program can do: linked statically, it runs for about a millisecond. */
#include <unistd.h>

int main(void)
{
    static const char hello[] = "hello\n";
    return write(STDOUT_FILENO, hello, sizeof hello - 1) == sizeof hello - 1 ? 0 : 1;
}
