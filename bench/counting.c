/* counting COMMAND...: peer of `bench/high_rate.py`, user-space part. Prints the sums of `counting.bpf.c` to stderr; exits
 * with 1 if they are not available. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/types.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "counting.skel.h"

struct key { int nr, fd; unsigned kind, task; };
struct sums { unsigned long long calls, on, blocked, runnable; };

int main(int argc, char **argv)
{
    int go[2];
    char byte;
    if (argc < 2 || pipe(go) != 0)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) != 0)
            _exit(127);
        close(go[0]);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    close(go[0]);
    struct counting_bpf *ours = counting_bpf__open();
    if (!ours)
        return 1;
    ours->rodata->root = child;
    if (counting_bpf__load(ours) || counting_bpf__attach(ours))
        return 1;
    close(go[1]);
    int status, all = bpf_map__fd(ours->maps.summed);
    waitpid(child, &status, 0);
    counting_bpf__detach(ours);
    struct key key, *last = NULL;
    struct sums sums;
    for (struct key next; bpf_map_get_next_key(all, last, &next) == 0; last = &key) {
        key = next;
        if (bpf_map_lookup_elem(all, &key, &sums) == 0 && sums.calls > 100)
            fprintf(stderr, "task %u call %d fd %d kind %u: %llu calls, %llu ns\n", key.task, key.nr, key.fd,
                    key.kind, sums.calls, sums.on);
    }
    return 0;
}
