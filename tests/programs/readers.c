/* readers THREADS BYTES FILE: THREADS threads at once read BYTES bytes of the file each, one byte at a time.
 * readers again BYTES FILE: one thread does so and ends; threads are created until one has its number, and that one reads 500 bytes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t meeting;
static const char *path;
static volatile pid_t first;
static volatile int again;

static void read_bytes(int bytes)
{
    char byte;
    int file = open(path, O_RDONLY);
    while (bytes-- > 0 && read(file, &byte, 1) == 1) /* the tiny read */
        ;
    close(file);
}

static void *reads(void *bytes)
{
    pthread_barrier_wait(&meeting);
    first = gettid();
    read_bytes((int)(size_t)bytes);
    return NULL;
}

static void *comes_after(void *bytes)
{
    if (gettid() == first) {
        again = 1;
        usleep(1000000);
        read_bytes((int)(size_t)bytes);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t each[64];
    int threads = argc == 4 ? atoi(argv[1]) : 0;
    if (argc != 4 || threads > 64)
        return 2;
    int reborn = strcmp(argv[1], "again") == 0;
    path = argv[3];
    threads += reborn;
    pthread_barrier_init(&meeting, NULL, threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&each[i], NULL, reads, (void *)(size_t)atoi(argv[2]));
    for (int i = 0; i < threads; i++)
        pthread_join(each[i], NULL);
    if (reborn) {
        printf("%d\n", first);
        fflush(stdout);
    }
    for (int i = 0; reborn && i < 20000 && !again; i++) {
        pthread_create(&each[0], NULL, comes_after, (void *)500);
        pthread_join(each[0], NULL);
    }
    return reborn && !again ? 9 : 0;
}
