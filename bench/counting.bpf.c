/* Peer of `bench/high_rate.py`, kernel part: time and number of system calls by number and descriptor's kind, in
 * maps, as is usual with libbpf. No order, no sizes, no stacks, no records.
 *
 * With IDLE the programs at calls do nothing: this measures the kernel's cost of calling them, the least cost of
 * seeing both ends of each call. */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

/* Where a task is: on a CPU, blocked, runnable. */
enum phase { ON, BLOCKED, RUNNABLE };

struct at {
    u64 since;
    s32 nr, fd;
    u32 kind, phase;
};

struct which {
    s32 nr, fd;
    u32 kind, task;
};

struct sums {
    u64 calls, on, blocked, runnable;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct at);
} states SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, struct which);
    __type(value, struct sums);
} summed SEC(".maps");

const volatile __u32 root;

static __always_inline void add(struct task_struct *task, struct at *state, u64 now, u32 calls)
{
    struct which key = {state->nr, state->fd, state->kind, task->pid};
    struct sums *sums = bpf_map_lookup_elem(&summed, &key);
    u64 took = now - state->since;
    state->since = now;
    if (!sums) {
        struct sums none = {};
        bpf_map_update_elem(&summed, &key, &none, BPF_NOEXIST);
        sums = bpf_map_lookup_elem(&summed, &key);
        if (!sums)
            return;
    }
    if (state->phase == ON)
        sums->on += took;
    else if (state->phase == BLOCKED)
        sums->blocked += took;
    else
        sums->runnable += took;
    sums->calls += calls;
}

/* The kind of file behind a descriptor: the upper bits of its mode. */
static __always_inline u32 kind_of(struct task_struct *task, u32 fd)
{
    struct files_struct *files = task->files;
    struct fdtable *table = files ? files->fdt : 0;
    struct file *file;
    if (!table || fd >= table->max_fds || bpf_probe_read_kernel(&file, sizeof file, table->fd + fd) || !file)
        return 0;
    return BPF_CORE_READ(file, f_inode, i_mode) >> 12;
}

static __always_inline int has_descriptor(long nr)
{
    return nr == 0 || nr == 1 || nr == 3 || nr == 5 || nr == 8 || (nr >= 16 && nr <= 20);
}

SEC("tp_btf/sys_enter") int BPF_PROG(enters, struct pt_regs *regs, long nr)
{
#ifdef IDLE
    return 0;
#endif
    struct task_struct *task = bpf_get_current_task_btf();
    struct at *state = bpf_task_storage_get(&states, task, 0, 0);
    if (!state)
        return 0;
    add(task, state, bpf_ktime_get_ns(), 0);
    state->nr = nr;
    if (has_descriptor(nr)) {
        state->fd = regs->di;
        state->kind = kind_of(task, state->fd);
    }
    return 0;
}

SEC("tp_btf/sys_exit") int BPF_PROG(leaves, struct pt_regs *regs, long result)
{
#ifdef IDLE
    return 0;
#endif
    struct task_struct *task = bpf_get_current_task_btf();
    struct at *state = bpf_task_storage_get(&states, task, 0, 0);
    if (!state)
        return 0;
    add(task, state, bpf_ktime_get_ns(), 1);
    state->nr = -1;
    state->fd = -1;
    state->kind = 0;
    return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switches, bool aside, struct task_struct *task, struct task_struct *next, unsigned int how)
{
    u64 now = bpf_ktime_get_ns();
    struct at *state = bpf_task_storage_get(&states, task, 0, 0);
    if (state) {
        add(task, state, now, 0);
        state->phase = aside || how == 0 ? RUNNABLE : BLOCKED;
    }
    state = bpf_task_storage_get(&states, next, 0, 0);
    if (state) {
        add(next, state, now, 0);
        state->phase = ON;
    }
    return 0;
}

SEC("tp_btf/sched_waking") int BPF_PROG(wakes, struct task_struct *task)
{
    struct at *state = bpf_task_storage_get(&states, task, 0, 0);
    if (state && state->phase == BLOCKED) {
        add(task, state, bpf_ktime_get_ns(), 0);
        state->phase = RUNNABLE;
    }
    return 0;
}

SEC("tp_btf/sched_process_fork") int BPF_PROG(forks, struct task_struct *task, struct task_struct *child)
{
    struct at born = {.since = bpf_ktime_get_ns(), .nr = -2, .fd = -1, .phase = RUNNABLE};
    if (bpf_task_storage_get(&states, task, 0, 0))
        bpf_task_storage_get(&states, child, &born, BPF_LOCAL_STORAGE_GET_F_CREATE);
    return 0;
}

SEC("tp_btf/sched_process_exec") int BPF_PROG(execs, struct task_struct *task)
{
    struct at first = {.since = bpf_ktime_get_ns(), .nr = 59, .fd = -1};
    if (task->tgid == root)
        bpf_task_storage_get(&states, task, &first, BPF_LOCAL_STORAGE_GET_F_CREATE);
    return 0;
}
