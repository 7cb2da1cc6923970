/* asks_again: a router that looks for each request's page in several roots, and asks the file system anew each time. FAST asks once
 * for each page and remembers the answer. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGES = 30, ROOTS = 3 };

static int answers[PAGES];

static int find(unsigned page)
{
    char path[64];
    struct stat about;
    if (FAST && answers[page] != 0)
        return answers[page];
    for (int root = 1; root <= ROOTS; root++) {
        snprintf(path, sizeof path, "site%d/page%u.html", root, page);
        if (stat(path, &about) == 0)
            return answers[page] = root;
    }
    return answers[page] = ROOTS + 1;
}

int main(void)
{
    unsigned long sum = 0, x = 1;
    for (int request = 0; request < 150000; request++) {
        x = x * 6364136223846793005ul + 1442695040888963407ul;
        int root = find((x >> 40) % PAGES);
        for (int i = 0; i < 200; i++)
            sum = sum * 31 + (unsigned)(root + i);
    }
    printf("%lu\n", sum);
}
