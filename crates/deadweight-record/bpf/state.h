/* What the programs remember: the state of each CPU and each task, in maps that they share with the recorder.
 * Sizes and offsets are the same in `src/bpf/layout.rs`. */
#pragma once

#include "kernel.h"

/* A page fault that has begun on a CPU, and was not output. */
struct fault {
	u64 at;
	u64 address;
	u64 ip;
	/* The task; 0 for none. */
	u32 task;
	u32 in_kernel;
};

/* A leaky bucket, see `is_due`: `until` is the time up to which stacks were given, and may be ahead of the clock by a
 * burst; and how many were. */
struct bucket {
	u64 until, given;
};

/* Words of the longest path that has a number. */
#define PATH_WORDS 32

/* The state of a CPU. */
struct cpu {
	/* The ring buffer's end, in bytes since the start, and records that did not fit since the last one that did. */
	u64 head;
	u64 lost;
	/* Process and task of the running task, as `bpf_get_current_pid_tgid` gives them; 0 if not known. */
	u64 current;
	/* Whether records are output. */
	u64 records;
	struct fault fault;
	/* Stacks that were taken on this CPU. */
	struct bucket stacks;
	/* The ring's end when the recorder was woken last. */
	u64 alarmed;
	/* When the latest record was lost. */
	u64 lost_until;
	/* So many bytes more than usual may wait before the recorder is woken; the recorder writes it. */
	u64 patience;
	u64 unused[3];
	/* What the recorder has read of the ring, on a cache line of its own. */
	u64 tail;
	u64 unused_too[7];
	/* The path of the latest call with one. */
	u64 path[PATH_WORDS];
};

/* Calls that are alike, counted together. */
struct kind {
	u64 nr, args[4], result, count;
	/* Count and sum of times of timed short calls, and the latest time; the same of long ones. */
	u64 timed, inside, latest, long_timed, inside_long;
};

#define KINDS 5

/* A task whose calls are counted. A count record is a copy of it. */
struct task {
	/* 0 for a free entry. */
	u32 id;
	u32 record_kind;
	/* Time of the output; begin and end of the counted period; entry of the open call. */
	u64 now, since, until, entered;
	/* The latest call. */
	u64 nr, args[4];
	/* Calls counted and not output yet, and when the latest one returned. */
	u64 pending, last;
	/* Whether a call that will be counted is open, and whether it was output as a single call. */
	u64 open, open_reported;
	/* Calls since the latest wait or wake-up, plus half of the sum at that time. */
	u64 calls_per_wait;
	/* When a call was last recorded. */
	u64 recorded;
	/* Calls that fit into no kind: none, unless the output failed. */
	u64 missed;
	/* Calls until the next timed one, and how many consecutive calls are timed. */
	u64 untimed, time_each;
	/* Whether the latest entry was timed, and the interval from the latest timed return to the entry after it. */
	u64 entry_timed, return_to_entry;
	/* The latest call's kind, counted from 1; 0 if it was not counted. The masks of its arguments. */
	u64 latest_kind, masks[4];
	/* Mean number of calls before an output, in which earlier outputs count ever less. */
	u64 calls_per_output;
	struct kind kinds[KINDS];
};

/* Kinds of count records. */
#define COUNTED 1
#define OPEN_CALL 2

/* Which calls may be counted, by call number. */
struct call_filter {
	u64 countable;
	/* The bits that distinguish calls, and bits that no argument may have. */
	u64 masks[4], limits[4];
};

#define CALLS 512
/* A task uses the entry of its id modulo these. */
#define TASKS 1024
#define STACK_SLOTS 1024

/* Stacks of a task. */
struct stack_times {
	struct bucket call, fault, wait;
	/* The task that is in a call whose stack was taken; 0 for none. */
	u64 in_call;
};

INLINE struct cpu *this_cpu(void)
{
	u32 cpu = processor_id();
	return map_lookup(&cpus, &cpu);
}

/* The word of 64 tasks that has this task's bit. */
INLINE u64 *followed_word(u32 task)
{
	u32 word = task / 64;
	return map_lookup(&followed, &word);
}

INLINE int is_followed(u32 task)
{
	u64 *word = followed_word(task);
	return word && (*word >> (task % 64) & 1);
}

/* The running task's process and id. They are asked for unless a followed task is known to run: that is a helper call,
 * but the kernel does not report every switch from the idle task and from some of its own threads. */
INLINE u64 running(struct cpu *cpu)
{
	u64 current = cpu->current;
	if (likely(current && is_followed(current)))
		return current;
	return cpu->current = current_pid_tgid();
}

/* The entry of a task whose calls are counted. */
INLINE struct task *counted_task(u32 id)
{
	u32 slot = id % TASKS;
	struct task *task = map_lookup(&tasks, &slot);
	return task && id && task->id == id ? task : 0;
}

INLINE struct stack_times *stack_times_of(u32 task)
{
	u32 slot = task % STACK_SLOTS;
	return map_lookup(&stack_times, &slot);
}
