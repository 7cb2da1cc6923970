/* Waits 100 ms by each call that has a time-out or sleeps. Nothing comes. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const struct timespec tenth = {0, 100000000};

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct timespec later(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += tenth.tv_nsec;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void check(const char *what, int expected)
{
    static double start;
    static struct timeval of_day;
    struct timeval today;
    double took = now(CLOCK_MONOTONIC) - start;
    gettimeofday(&today, NULL);
    double by_day = (double)(today.tv_sec - of_day.tv_sec) + (double)(today.tv_usec - of_day.tv_usec) / 1e6;
    if (start > 0)
        printf("%s: %s\n", what, expected && took > 0.099 && took < 2 && by_day > 0.099 ? "over in time" : "wrong");
    gettimeofday(&of_day, NULL);
    start = now(CLOCK_MONOTONIC);
}

int main(void)
{
    int ends[2], word = 7, epoll = epoll_create1(0);
    if (pipe(ends) != 0 || epoll < 0)
        return 2;
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    struct pollfd descriptor = {ends[0], POLLIN, 0};
    fd_set set;
    struct timeval tenth_us = {0, 100000};
    struct timespec until;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER, by_monotonic;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&by_monotonic, &attributes);
    sem_t taken;
    sem_init(&taken, 0, 0);
    pthread_mutex_lock(&mutex);

    check("", 1);
    check("poll", poll(&descriptor, 1, 100) == 0);
    check("ppoll", ppoll(&descriptor, 1, &tenth, NULL) == 0);
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    check("select", select(ends[0] + 1, &set, NULL, NULL, &tenth_us) == 0 && tenth_us.tv_usec == 0);
    FD_SET(ends[0], &set);
    check("pselect", pselect(ends[0] + 1, &set, NULL, NULL, &tenth, NULL) == 0);
    check("epoll_wait", epoll_wait(epoll, &event, 1, 100) == 0);
    until = later(CLOCK_REALTIME);
    check("pthread_cond_timedwait", pthread_cond_timedwait(&never, &mutex, &until) == ETIMEDOUT);
    until = later(CLOCK_MONOTONIC);
    check("with its clock", pthread_cond_timedwait(&by_monotonic, &mutex, &until) == ETIMEDOUT);
    until = later(CLOCK_MONOTONIC);
    check("pthread_cond_clockwait", pthread_cond_clockwait(&never, &mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
    until = later(CLOCK_REALTIME);
    check("sem_timedwait", sem_timedwait(&taken, &until) == -1 && errno == ETIMEDOUT);
    until = later(CLOCK_MONOTONIC);
    check("sem_clockwait", sem_clockwait(&taken, CLOCK_MONOTONIC, &until) == -1 && errno == ETIMEDOUT);
    check("futex", syscall(SYS_futex, &word, FUTEX_WAIT, 7, &tenth, NULL, 0) == -1 && errno == ETIMEDOUT);
    until = later(CLOCK_MONOTONIC);
    check("futex until", syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 7, &until, NULL, ~0u) == -1 && errno == ETIMEDOUT);
    check("nanosleep", nanosleep(&tenth, NULL) == 0);
    until = later(CLOCK_MONOTONIC);
    check("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0);
    check("usleep", usleep(100000) == 0);
    for (double end = now(CLOCK_REALTIME) + 0.6; now(CLOCK_REALTIME) < end;)
        usleep(1000);
    check("a loop of usleep", 1);
    check("sleep", sleep(1) == 0);
    return 0;
}
