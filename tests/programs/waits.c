// waits MS: waits for MS ms in many ways at the same time, each in its own thread. Prints which waits
// ended wrongly: a call failed or returned too little, or an unexpected signal came.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_int over, odd;
static atomic_long turns;

static void check(const char *what, int right) {
    turns++;
    if (right) return;
    odd++;
    printf("odd: %s, %s\n", what, strerror(errno));
}

static void *events(void *told) {
    int set = epoll_create1(0), fd = (int)(long)told;
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    while (!over) {
        long count;
        check("epoll_wait for ever", epoll_wait(set, &event, 1, -1) == 1);
        check("read of an eventfd", read(fd, &count, 8) == 8);
    }
    return NULL;
}

static void *event_timeouts(void *none) {
    int set = epoll_create1(0);
    struct epoll_event event;
    while (!over) check("epoll_wait", epoll_wait(set, &event, 1, 30) == 0);
    return none;
}

static void *signals(void *none) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    struct timespec time = {0, 20000000};
    while (!over) check("sigtimedwait", sigtimedwait(&set, NULL, &time) == -1 && errno == EAGAIN);
    return none;
}

static void *semaphores(void *set) {
    struct timespec time = {0, 20000000};
    while (!over) {
        struct sembuf down = {0, -1, 0}, other = {1, -1, 0};
        check("semop", semop((int)(long)set, &down, 1) == 0);
        check("semtimedop", semtimedop((int)(long)set, &other, 1, &time) == -1 && errno == EAGAIN);
    }
    return NULL;
}

static void *naps(void *none) {
    struct timespec time = {0, 5000000};
    struct pollfd nothing = {-1, POLLIN, 0};
    while (!over) {
        struct timeval wait = {0, 5000};
        check("nanosleep", nanosleep(&time, NULL) == 0);
        check("poll", poll(&nothing, 1, 5) == 0);
        check("select", select(0, NULL, NULL, NULL, &wait) == 0);
    }
    return none;
}

static void *packets(void *socket) {
    char byte;
    struct timeval time = {0, 30000};
    setsockopt((int)(long)socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    while (!over) check("recv", recv((int)(long)socket, &byte, 1, 0) == -1 && errno == EAGAIN);
    return NULL;
}

static int pipes[2];

static void *writes(void *none) {
    static char block[300000];
    while (!over) check("write", write(pipes[1], block, sizeof block) == sizeof block);
    close(pipes[1]);
    return none;
}

static void *reads(void *none) {
    static char block[40000];
    for (ssize_t got; (got = read(pipes[0], block, sizeof block)) != 0; usleep(1000)) check("read", got > 0);
    return none;
}

static void *works(void *none) {
    volatile long sum = 0;
    while (!over) sum++;
    return none;
}

static void *brief(void *none) {
    check("usleep", usleep(50000) == 0);
    return none;
}

static void *births(void *none) {
    while (!over) {
        pthread_t thread;
        check("pthread_create", pthread_create(&thread, NULL, brief, NULL) == 0);
        check("pthread_detach", pthread_detach(thread) == 0);
        usleep(30000);
    }
    return none;
}

int main(int argc, char **argv) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    long event = eventfd(0, 0), set = semget(IPC_PRIVATE, 2, 0600);
    int sockets[2];
    if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) return 2;
    struct { void *(*does)(void *); void *with; } all[] = {
        {events, (void *)event}, {event_timeouts, NULL}, {signals, NULL}, {semaphores, (void *)set},
        {naps, NULL}, {packets, (void *)(long)sockets[0]}, {writes, NULL}, {reads, NULL}, {works, NULL},
        {births, NULL},
    };
    enum { COUNT = sizeof all / sizeof *all };
    pthread_t threads[COUNT];
    for (int i = 0; i < COUNT; i++) pthread_create(&threads[i], NULL, all[i].does, all[i].with);
    struct timespec now, until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long ms = argc > 1 ? atol(argv[1]) : 1000;
    until.tv_sec += ms / 1000;
    do {
        long one = 1;
        struct sembuf up = {0, 1, 0};
        check("write to an eventfd", write((int)event, &one, 8) == 8);
        check("semop up", semop((int)set, &up, 1) == 0);
        usleep(40000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
    over = 1;
    long one = 1;
    struct sembuf up = {0, 1, 0};
    if (write((int)event, &one, 8) != 8 || semop((int)set, &up, 1)) odd++;
    for (int i = 0; i < COUNT; i++) pthread_join(threads[i], NULL);
    semctl((int)set, 0, IPC_RMID);
    printf("%s after %ld calls\n", odd ? "odd" : "all as ever", (long)turns);
    return odd != 0;
}
