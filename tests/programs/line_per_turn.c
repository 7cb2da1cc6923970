// A parent and a worker, connected by two pipes. `line_per_turn LINES BATCH`: the parent sends so many lines before it
// reads the answers. With a batch of 1, each line costs both of them calls, a switch and a wake-up.

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned work(unsigned value) {
    for (unsigned i = 0; i < 300; i++) {
        value = value * 31 + i;
    }
    return value;
}

static void worker(int from, int to, int batch) {
    FILE *in = fdopen(from, "r"), *out = fdopen(to, "w");
    char line[64];
    for (int i = 1; fgets(line, sizeof line, in); i++) {
        fprintf(out, "%u\n", work(strtoul(line, NULL, 10)));
        if (i % batch == 0) {
            fflush(out); // the answer
        }
    }
    fflush(out);
    _exit(0);
}

int main(int argc, char **argv) {
    const int lines = argc > 1 ? atoi(argv[1]) : 20000, batch = argc > 2 ? atoi(argv[2]) : 1;
    int to[2], from[2];
    if (pipe(to) || pipe(from)) {
        return 1;
    }
    if (!fork()) {
        close(to[1]);
        close(from[0]);
        worker(to[0], from[1], batch);
    }
    close(to[0]);
    close(from[1]);
    FILE *out = fdopen(to[1], "w"), *in = fdopen(from[0], "r");
    unsigned sum = 0;
    char line[64];
    for (int i = 0; i + batch <= lines; i += batch) {
        for (int n = 0; n < batch; n++) {
            fprintf(out, "%d\n", i + n);
        }
        fflush(out); // the piece to name
        for (int n = 0; n < batch; n++) {
            if (!fgets(line, sizeof line, in)) {
                return 1;
            }
            sum = sum * 31 + strtoul(line, NULL, 10);
        }
    }
    fclose(out);
    wait(NULL);
    printf("%u\n", sum);
}
