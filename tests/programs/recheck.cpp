// recheck FILE ITEMS: before each item, checks whether FILE has changed, which it never has.
#include <cstdio>
#include <cstdlib>
#include <sys/stat.h>

static time_t settings_age(const char *file)
{
    struct stat status;
    return stat(file, &status) == 0 ? status.st_mtime : 0; // the same question each time
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    unsigned sum = 0;
    const time_t at_start = settings_age(argv[1]);
    for (long item = std::atol(argv[2]); item > 0; item--) {
        if (settings_age(argv[1]) != at_start)
            return 1;
        sum = sum * 31u + static_cast<unsigned>(item);
    }
    std::printf("%u\n", sum);
    return 0;
}
