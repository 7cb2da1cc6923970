// A service that adds numbers, in a process of its own, and a client that asks it 6 000 questions:
// `connects_again again` makes a connection for each, `connects_again kept` asks all on one, and
// `connects_again pool` asks on 40 that are open at once.
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUESTIONS = 6000, POOL = 40 };

static void answer(struct pollfd *client) {
    int numbers[2];
    if (read(client->fd, numbers, sizeof numbers) == sizeof numbers) {
        int sum = numbers[0] + numbers[1];
        if (write(client->fd, &sum, sizeof sum) == sizeof sum) return;
    }
    close(client->fd);
    client->fd = -1;
}

static void serve(int listener) {
    struct pollfd all[POOL + 2];
    for (int i = 0; i < POOL + 2; i++) all[i] = (struct pollfd){i == 0 ? listener : -1, POLLIN, 0};
    while (poll(all, POOL + 2, -1) > 0) {
        for (int i = 1; i < POOL + 2; i++)
            if (all[i].fd >= 0 && all[i].revents) answer(&all[i]);
        int free = 1;
        while (free < POOL + 2 && all[free].fd >= 0) free++;
        if (all[0].revents && free < POOL + 2) all[free].fd = accept(listener, NULL, NULL);
    }
}

static int open_connection(const struct sockaddr_in *service) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (const struct sockaddr *)service, sizeof *service) ? -1 : fd;  // the line to name
}

static long ask(int fd, int question) {
    int numbers[2] = {question, 1}, sum = 0;
    if (write(fd, numbers, sizeof numbers) != sizeof numbers) return 0;
    return read(fd, &sum, sizeof sum) == sizeof sum ? sum : 0;
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "again";
    struct sockaddr_in service = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof service;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&service, length) || listen(listener, 64)) return 1;
    getsockname(listener, (struct sockaddr *)&service, &length);
    pid_t server = fork();
    if (server == 0) serve(listener);

    int connections = strcmp(way, "pool") == 0 ? POOL : 1, pool[POOL];
    for (int i = 0; i < connections; i++) pool[i] = open_connection(&service);
    long sum = 0;
    for (int i = 0; i < QUESTIONS; i++) {
        int *fd = &pool[i % connections];
        sum += ask(*fd, i);
        if (strcmp(way, "again") == 0) {
            close(*fd);
            *fd = open_connection(&service);
        }
    }
    for (int i = 0; i < connections; i++) close(pool[i]);
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    printf("%ld\n", sum);
}
