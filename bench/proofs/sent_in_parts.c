/* sent_in_parts: a client sends each request's head and body by two writes and waits for the reply. FAST sends both by one. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD = 8, BODY = 200, REQUESTS = 20 };

static void all(int fd, char *into, size_t size)
{
    for (size_t got = 0; got < size;) {
        ssize_t more = read(fd, into + got, size - got);
        if (more <= 0)
            exit(3);
        got += (size_t)more;
    }
}

static void *serve(void *listening)
{
    int fd = accept(*(int *)listening, NULL, NULL);
    char text[HEAD + BODY];
    for (int i = 0; i < REQUESTS; i++) {
        unsigned sum = 1;
        all(fd, text, HEAD);
        all(fd, text + HEAD, BODY);
        for (int turn = 0; turn < 20000; turn++)
            sum = sum * 31 + (unsigned char)text[turn % (HEAD + BODY)];
        if (write(fd, &sum, sizeof sum) != sizeof sum)
            exit(4);
    }
    close(fd);
    return NULL;
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listening = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t server;
    unsigned long total = 0;
    char text[HEAD + BODY];
    if (bind(listening, (struct sockaddr *)&at, size) != 0 || listen(listening, 1) != 0 ||
        getsockname(listening, (struct sockaddr *)&at, &size) != 0 || connect(fd, (struct sockaddr *)&at, size) != 0)
        return 1;
    pthread_create(&server, NULL, serve, &listening);
    memset(text, 'x', sizeof text);
    for (int i = 0; i < REQUESTS; i++) {
        unsigned sum;
#if FAST
        if (write(fd, text, HEAD + BODY) != HEAD + BODY)
            return 2;
#else
        if (write(fd, text, HEAD) != HEAD || write(fd, text + HEAD, BODY) != BODY)
            return 2;
#endif
        all(fd, (char *)&sum, sizeof sum);
        total += sum;
    }
    pthread_join(server, NULL);
    printf("%lu\n", total);
}
