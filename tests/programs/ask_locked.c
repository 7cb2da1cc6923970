/* ask_locked: six threads ask a service, a process of their own that takes 4 ms for an answer. Each thread has its own
 * connection to it, and holds the lock of the common table meanwhile. */
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 6, QUESTIONS = 15 };
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static int known;

static void serve(int connection)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = 4000000};
    char byte;
    while (read(connection, &byte, 1) == 1) {
        nanosleep(&time, NULL);
        if (write(connection, &byte, 1) != 1)
            break;
    }
    _exit(0);
}

static void look_up(int connection)
{
    char byte = 1;
    pthread_mutex_lock(&table);
    if (write(connection, &byte, 1) == 1 && read(connection, &byte, 1) == 1)
        known++;
    pthread_mutex_unlock(&table); /* the lock to name */
}

static void *ask(void *connection)
{
    for (int i = 0; i < QUESTIONS; i++)
        look_up(*(int *)connection);
    close(*(int *)connection);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int ends[THREADS][2];
    for (int i = 0; i < THREADS; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) != 0)
            return 1;
        if (fork() == 0) {
            for (int other = 0; other <= i; other++)
                close(ends[other][0]);
            serve(ends[i][1]);
        }
        close(ends[i][1]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, ask, &ends[i][0]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    while (wait(NULL) > 0)
        continue;
    printf("%d\n", known);
    return 0;
}
