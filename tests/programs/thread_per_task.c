// Seals pages: each gets a thread of its own, for a few microseconds of work.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *seal(void *page)
{
    unsigned mark = *(unsigned *)page;
    for (int i = 0; i < 3000; i++)
        mark = mark * 1664525u + 1013904223u;
    *(unsigned *)page = mark;
    return NULL;
}

int main(int argc, char **argv)
{
    int pages = argc > 1 ? atoi(argv[1]) : 6000;
    unsigned sum = 0;
    for (int i = 0; i < pages; i++) {
        unsigned page = (unsigned)i;
        pthread_t thread;
        if (pthread_create(&thread, NULL, seal, &page)) // the line to name
            return 1;
        pthread_join(thread, NULL);
        sum += page;
    }
    printf("%u\n", sum);
    return 0;
}
