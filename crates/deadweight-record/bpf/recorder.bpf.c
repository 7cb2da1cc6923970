/* The recorder in the kernel: programs at tracepoints, for the tasks that are followed.
 *
 * They record system calls, page faults, context switches, wake-ups and timer interrupts in ring buffers of their own,
 * and have perf copy the user stacks of some. Which tasks to follow is a bit each in a map; children inherit it.
 *
 * `cargo xtask bpf` compiles this into `recorder.x86.bpf.o`, which the recorder embeds and loads (`src/bpf`). */
#include "counting.h"

/* A task that often makes calls, faults or waits gives a stack in these intervals, in ns, ... */
#define CALL_STACK_INTERVAL 250000
#define FAULT_STACK_INTERVAL 1000000
#define WAIT_STACK_INTERVAL 500000
/* ... and one that did not lately gives this many at once. */
#define STACK_BURST 16
/* After so many the intervals get longer: enough to tell one percent from two. */
#define MANY_STACKS 2048
/* Short-lived tasks together give no more than this on each CPU. */
#define CPU_STACK_INTERVAL 200000
#define CPU_STACK_BURST 128
#define MANY_CPU_STACKS 16384

/* The recorder is woken after this many bytes of records; a stack counts as so many. */
#define ALARM_BYTES 32768
#define STACK_BYTES 1024

/* States of a task: those that tracepoints show, and dead. */
#define SHOWN_STATES 0x7f
#define UNINTERRUPTIBLE 0x02
#define EXIT_DEAD 0x10
#define DEAD 0x80
#define PREEMPTED 0x100

/* Frames of a kernel stack, without those of the program and its tracepoint. */
#define FRAMES 20
#define OWN_FRAMES 2

#define NAME 16
#define PATH 4096

struct enter {
	struct header header;
	u64 nr, args[6];
};
struct leave {
	struct header header;
	u64 result;
};
struct switched {
	struct header header;
	u32 previous, next;
	u64 state;
	u8 name[NAME];
};
/* Taken before a place is reserved: until a record is complete, later ones cannot be read. */
struct stack {
	u64 frames[FRAMES];
};
struct switched_with_stack {
	struct switched switched;
	struct stack stack;
};
struct waking {
	struct header header;
	/* None: the stack shows whether an interrupt wakes the task. */
	u64 flags;
	u64 woken;
	struct stack stack;
};
struct exec {
	struct header header;
	/* The former task, and where the path is: its length above its offset from here. */
	u32 former, place;
	u8 path[PATH];
};
struct main {
	struct header header;
	/* Whether the C library is about to call it, rather than the command's own. */
	u64 common;
};
struct fault_begin {
	struct header header;
	u64 address, ip, in_kernel;
};
struct fault_end {
	struct header header;
	u64 major;
};

INLINE u64 id_of(u8 *task)
{
	return MEMBER(u32, task, task_pid) | (u64)MEMBER(u32, task, task_tgid) << 32;
}

/* User registers and stack of the running task, by an event of perf, if they are due on this CPU. */
INLINE int output_site(void *context, struct cpu *cpu, u64 now, const struct map *sites)
{
	u64 nothing = 0;
	if (!is_due(&cpu->stacks, now, CPU_STACK_INTERVAL, CPU_STACK_BURST, MANY_CPU_STACKS))
		return 0;
	cpu->alarmed -= STACK_BYTES;
	return perf_event_output(context, sites, THIS_CPU, &nothing, sizeof nothing) == 0;
}

/* Wakes the recorder, which looks at the ring only now and then, if there is much in it. */
INLINE void alarm(void *context, struct cpu *cpu)
{
	u64 nothing = 0;
	if (likely(cpu->head - cpu->alarmed < ALARM_BYTES + cpu->patience))
		return;
	cpu->alarmed = cpu->head;
	perf_event_output(context, &alarms, THIS_CPU, &nothing, sizeof nothing);
}

/* A number that stands for a path: two calls with the same one are about the same name. Its highest bit is set, as in no
 * address of a program. The address itself if the path is too long, or not in memory. */
INLINE u64 path_number(struct cpu *cpu, u64 address)
{
	long length = read_user_text(cpu->path, sizeof cpu->path, (const void *)address);
	if (length <= 0 || length >= (long)sizeof cpu->path)
		return address;
	u64 number = 0;
#pragma unroll
	for (int i = 0; i < PATH_WORDS; i++) {
		long left = length - 8 * i;
		if (left <= 0)
			break;
		u64 word = left >= 8 ? cpu->path[i] : cpu->path[i] << (8 * (8 - left) & 63);
		number = (number ^ word) * 0x9e3779b97f4a7c15ULL;
		number ^= number >> 29;
	}
	return number | 1ULL << 63;
}

/* The folder that relative names begin at, in place of a descriptor (`AT_FDCWD`). */
#define CURRENT_FOLDER (-100)

/* A number that stands for the folder behind a descriptor of the running task; 0 if it cannot be read. */
INLINE u64 folder_number(u32 descriptor)
{
	u8 *task = current_task();
	const u8 *files = MEMBER(const u8 *, task, task_files), *table = 0, *entries = 0, *file = 0, *inode = 0;
	u64 number = 0, file_system = 0;
	u32 most = 0;
	if (read_kernel(&table, sizeof table, files + FILLED_IN(files_fdt)) ||
	    read_kernel(&most, sizeof most, table + FILLED_IN(fdt_max_fds)) || descriptor >= most ||
	    read_kernel(&entries, sizeof entries, table + FILLED_IN(fdt_fd)) ||
	    read_kernel(&file, sizeof file, entries + 8 * (u64)descriptor) ||
	    read_kernel(&inode, sizeof inode, file + FILLED_IN(file_inode)) ||
	    read_kernel(&number, sizeof number, inode + FILLED_IN(inode_ino)) ||
	    read_kernel(&file_system, sizeof file_system, inode + FILLED_IN(inode_sb)))
		return 0;
	return number ^ file_system;
}

/* The same of a path that may be relative to a folder. */
INLINE u64 path_number_below(struct cpu *cpu, u32 folder, u64 address)
{
	u64 number = path_number(cpu, address);
	u32 first = cpu->path[0] & 0xff;
	if (folder == (u32)CURRENT_FOLDER || number == address || first == '/' || first == 0)
		return number;
	u64 below = folder_number(folder);
	return below ? (number ^ below * 0x9e3779b97f4a7c15ULL) | 1ULL << 63 : address;
}

/* Families of addresses, from the kernel's uapi headers. */
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
/* The bit of a number that is an address of IPv4 itself. */
#define IPV4 (1ULL << 62)

/* A number that stands for the peer at a socket's address, like that of a path. One of IPv4 has the port in its low
 * bits, and the address above it, both in the network's order. */
INLINE u64 peer_number(struct cpu *cpu, u64 address)
{
	if (read_user(cpu->path, 8, (const void *)address))
		return address;
	u64 first = cpu->path[0];
	u32 family = first & 0xffff;
	if (family == AF_INET)
		return first >> 16 | IPV4 | 1ULL << 63;
	/* A name that begins with a zero is no path, and has no end of its own. */
	if (family == AF_UNIX)
		return first >> 16 & 0xff ? path_number(cpu, address + sizeof(u16)) & ~IPV4 : address;
	if (family != AF_INET6 || read_user(cpu->path, 24, (const void *)address))
		return address;
	/* Without the label of the flow. */
	u64 number = (cpu->path[0] & 0xffffffff) * 0x9e3779b97f4a7c15ULL;
	number = ((number ^ number >> 29) ^ cpu->path[1]) * 0x9e3779b97f4a7c15ULL;
	number = ((number ^ number >> 29) ^ cpu->path[2]) * 0x9e3779b97f4a7c15ULL;
	return number >> 2 | 1ULL << 63;
}

SECTION("tp_btf/sys_enter")
int on_sys_enter(u64 *context)
{
	const struct registers *regs = (void *)context[0];
	u64 call = context[1];
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	u64 current = running(cpu);
	struct task *task = counted_task(current);
	if (task ? count_entry(cpu, task, regs, call) : !is_followed(current))
		return 0;
	u64 now = ktime_ns();
	struct place place = reserve(cpu, sizeof(struct enter));
	struct enter *record = (struct enter *)place.header;
	if (record) {
		begin(&record->header, now, current);
		record->nr = call;
		if (likely(!is_compat(regs))) {
			record->args[0] = ARG0(regs), record->args[1] = ARG1(regs), record->args[2] = ARG2(regs);
			record->args[3] = ARG3(regs), record->args[4] = ARG4(regs), record->args[5] = ARG5(regs);
			u32 path = path_argument(call);
			if (path == 1)
				record->args[0] = path_number(cpu, ARG0(regs));
			if (path == 2)
				record->args[1] = path_number_below(cpu, ARG0(regs), ARG1(regs));
			if (call == CONNECT)
				record->args[1] = peer_number(cpu, ARG1(regs));
		} else {
			record->args[0] = COMPAT_ARG0(regs), record->args[1] = COMPAT_ARG1(regs);
			record->args[2] = COMPAT_ARG2(regs), record->args[3] = COMPAT_ARG3(regs);
			record->args[4] = COMPAT_ARG4(regs), record->args[5] = COMPAT_ARG5(regs);
		}
		commit(&record->header, place.position, ENTER, sizeof *record);
	}
	struct stack_times *times = stack_times_of(current);
	if (times && cpu->records &&
	    (is_due(&times->call, now, CALL_STACK_INTERVAL, STACK_BURST, MANY_STACKS) || opens_with_seldom_flags(regs, call)) &&
	    output_site(context, cpu, now, &call_sites))
		times->in_call = (u32)current;
	alarm(context, cpu);
	return 0;
}

SECTION("tp_btf/sys_exit")
int on_sys_exit(u64 *context)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	u64 current = running(cpu);
	struct task *task = counted_task(current);
	if (task ? count_return(cpu, task, context[1]) : !is_followed(current))
		return 0;
	struct stack_times *times = stack_times_of(current);
	if (times && times->in_call == (u32)current)
		times->in_call = 0;
	struct place place = reserve(cpu, sizeof(struct leave));
	struct leave *record = (struct leave *)place.header;
	if (record) {
		begin(&record->header, ktime_ns(), current);
		record->result = context[1];
		commit(&record->header, place.position, LEAVE, sizeof *record);
	}
	return 0;
}

INLINE void write_fault(struct cpu *cpu, struct place place, u64 current)
{
	struct fault_begin *record = (struct fault_begin *)place.header;
	begin(&record->header, cpu->fault.at, current);
	record->address = cpu->fault.address;
	record->ip = cpu->fault.ip;
	record->in_kernel = cpu->fault.in_kernel;
	commit(&record->header, place.position, FAULT, sizeof *record);
}

/* Outputs the beginning of the fault of this task that was not output yet. */
INLINE void output_pending_fault(struct cpu *cpu, u64 current)
{
	if (cpu->fault.task != (u32)current || !(u32)current)
		return;
	cpu->fault.task = 0;
	struct place place = reserve(cpu, sizeof(struct fault_begin));
	if (place.header)
		write_fault(cpu, place, current);
}

/* What is known of the counted calls of a task that leaves its CPU. */
INLINE void count_switch(struct cpu *cpu, struct task *task, int waits, int dead)
{
	read_clock(task);
	if (task->open) {
		output_open_call(cpu, task);
		if (waits)
			stop_if_frequent(task);
	} else {
		output_counts(cpu, task, task->last);
	}
	task->last = 0;
	if (dead)
		task->id = 0;
}

INLINE void describe_switch(struct switched *record, u64 now, u64 previous, u64 state, u8 *next)
{
	begin(&record->header, now, previous);
	record->previous = previous;
	record->next = MEMBER(u32, next, task_pid);
	record->state = state;
	read_kernel(record->name, NAME, next + FILLED_IN(task_comm));
}

/* The state as the tracepoint shows it. */
INLINE u64 shown_state(int preempted, u32 state)
{
	if (preempted)
		return PREEMPTED;
	if (state & DEAD)
		return EXIT_DEAD;
	u64 shown = state & SHOWN_STATES;
	return state && !shown ? UNINTERRUPTIBLE : shown;
}

SECTION("tp_btf/sched_switch")
int on_switch(u64 *context)
{
	u8 *previous = (void *)context[1], *next = (void *)context[2];
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	u64 current = id_of(previous);
	u64 state = shown_state(context[0] & 1, context[3]);
	int waits = state && state < PREEMPTED;
	struct task *task = counted_task(current);
	if (task)
		count_switch(cpu, task, waits, state == EXIT_DEAD);
	output_pending_fault(cpu, current);
	cpu->fault.task = 0;
	cpu->current = id_of(next);
	if (!cpu->records)
		return 0;
	u64 now = ktime_ns();
	if (!waits || !is_followed(current)) {
		struct place place = reserve(cpu, sizeof(struct switched));
		struct switched *record = (struct switched *)place.header;
		if (!record)
			return 0;
		describe_switch(record, now, current, state, next);
		commit(&record->header, place.position, SWITCH, sizeof *record);
		return 0;
	}
	struct stack stack;
	get_stack(context, &stack, sizeof stack, OWN_FRAMES);
	struct place place = reserve(cpu, sizeof(struct switched_with_stack));
	struct switched_with_stack *record = (struct switched_with_stack *)place.header;
	if (record) {
		describe_switch(&record->switched, now, current, state, next);
		record->stack = stack;
		commit(&record->switched.header, place.position, SWITCH, sizeof *record);
	}
	/* A wait in a call is where the call is. */
	struct stack_times *times = stack_times_of(current);
	if (times && state != EXIT_DEAD && times->in_call != (u32)current &&
	    is_due(&times->wait, now, WAIT_STACK_INTERVAL, STACK_BURST, MANY_STACKS))
		output_site(context, cpu, now, &wait_sites);
	alarm(context, cpu);
	/* Copying the stack may have faulted, and asked for the task. */
	cpu->current = id_of(next);
	return 0;
}

/* The running task wakes another, or is interrupted by what does. */
SECTION("tp_btf/sched_waking")
int on_waking(u64 *context)
{
	u8 *woken = (void *)context[0];
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	u64 current = running(cpu);
	struct task *task = counted_task(current);
	if (task && task->open) {
		read_clock(task);
		output_open_call(cpu, task);
		stop_if_frequent(task);
	}
	u32 id = MEMBER(u32, woken, task_pid);
	if (!cpu->records || !is_followed(id))
		return 0;
	u64 now = ktime_ns();
	struct stack stack;
	get_stack(context, &stack, sizeof stack, OWN_FRAMES);
	struct place place = reserve(cpu, sizeof(struct waking));
	struct waking *record = (struct waking *)place.header;
	if (!record)
		return 0;
	begin(&record->header, now, current);
	record->flags = 0;
	record->woken = id;
	record->stack = stack;
	commit(&record->header, place.position, WAKING, sizeof *record);
	return 0;
}

/* The child is followed if its parent is. An earlier task with the same id is forgotten. */
SECTION("tp_btf/sched_process_fork")
int on_fork(u64 *context)
{
	u8 *child = (void *)context[1];
	u32 id = MEMBER(u32, child, task_pid);
	u64 *word = followed_word(id);
	if (!word)
		return 0;
	if (is_followed(current_pid_tgid())) {
		__sync_fetch_and_or(word, 1ULL << id % 64);
		struct stack_times *times = stack_times_of(id);
		if (times)
			times->call.given = times->fault.given = times->wait.given = 0;
	} else
		__sync_fetch_and_and(word, ~(1ULL << id % 64));
	return 0;
}

SECTION("tp_btf/sched_process_exec")
int on_exec(u64 *context)
{
	u8 *task = (void *)context[0], *program = (void *)context[2];
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	/* A thread that calls exec gets the id of its process. */
	u64 current = cpu->current = id_of(task);
	if (!is_followed(current))
		return 0;
	struct place place = reserve(cpu, sizeof(struct exec));
	struct exec *record = (struct exec *)place.header;
	if (!record)
		return 0;
	begin(&record->header, ktime_ns(), current);
	record->former = context[1];
	long length = read_kernel_text(record->path, PATH, MEMBER(u8 *, program, bprm_filename));
	record->place = (length > 0 ? (u32)length : 0) << 16 | (sizeof record->former + sizeof record->place);
	commit(&record->header, place.position, EXEC, sizeof *record);
	return 0;
}

INLINE void output_timer(enum record kind)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return;
	u64 current = running(cpu);
	if (!is_followed(current))
		return;
	struct place place = reserve(cpu, sizeof(struct header));
	if (!place.header)
		return;
	begin(place.header, ktime_ns(), current);
	commit(place.header, place.position, kind, sizeof(struct header));
}

SECTION("tp_btf/local_timer_entry")
int on_timer(u64 *context)
{
	output_timer(TIMER);
	return 0;
}

SECTION("tp_btf/local_timer_exit")
int on_timer_end(u64 *context)
{
	output_timer(TIMER_END);
	return 0;
}

/* A fault begins. It is output with its end, or when the task leaves its CPU before. */
INLINE struct cpu *begin_fault(u64 *context, u64 *current, u64 *now)
{
	const struct registers *regs = (void *)context[1];
	struct cpu *cpu = this_cpu();
	if (!cpu || !cpu->records)
		return 0;
	*current = running(cpu);
	if (!is_followed(*current))
		return 0;
	/* Copying a user stack may fault: that is refused, and no fault of the program. */
	u8 *task = current_task();
	if (MEMBER(u32, task, task_pagefault_disabled))
		return 0;
	output_pending_fault(cpu, *current);
	*now = ktime_ns();
	cpu->fault.at = *now;
	cpu->fault.address = context[0];
	cpu->fault.ip = instruction(regs);
	cpu->fault.in_kernel = !is_user(regs);
	cpu->fault.task = *current;
	return cpu;
}

SECTION("tp_btf/page_fault_user")
int on_user_fault(u64 *context)
{
	u64 current, now;
	struct cpu *cpu = begin_fault(context, &current, &now);
	struct stack_times *times = cpu ? stack_times_of(current) : 0;
	if (times && is_due(&times->fault, now, FAULT_STACK_INTERVAL, STACK_BURST, MANY_STACKS))
		output_site(context, cpu, now, &fault_sites);
	return 0;
}

SECTION("tp_btf/page_fault_kernel")
int on_kernel_fault(u64 *context)
{
	u64 current, now;
	begin_fault(context, &current, &now);
	return 0;
}

INLINE void end_fault(void *context, u64 major)
{
	struct cpu *cpu = this_cpu();
	if (!cpu || !cpu->records)
		return;
	u64 current = running(cpu);
	if (!is_followed(current))
		return;
	int is_whole = cpu->fault.task == (u32)current;
	u64 size = sizeof(struct fault_end) + (is_whole ? sizeof(struct fault_begin) : 0);
	struct place place = reserve(cpu, size);
	cpu->fault.task = 0;
	if (!place.header)
		return;
	if (is_whole) {
		write_fault(cpu, place, current);
		place = behind(place, sizeof(struct fault_begin));
	}
	struct fault_end *end = (struct fault_end *)place.header;
	begin(&end->header, ktime_ns(), current);
	end->major = major;
	commit(&end->header, place.position, FAULT_END, sizeof *end);
	alarm(context, cpu);
}

/* The kernel counts a fault when it has served it. */
SECTION("perf_event/minor")
int on_minor_end(void *context)
{
	end_fault(context, 0);
	return 0;
}

SECTION("perf_event/major")
int on_major_end(void *context)
{
	end_fault(context, 1);
	return 0;
}

/* At the start of `main`. The cookie says whose. */
SECTION("uprobe.multi/main")
int on_main(void *context)
{
	struct cpu *cpu = this_cpu();
	if (!cpu || !cpu->records)
		return 0;
	u64 current = running(cpu);
	if (!is_followed(current))
		return 0;
	struct place place = reserve(cpu, sizeof(struct main));
	struct main *record = (struct main *)place.header;
	if (!record)
		return 0;
	begin(&record->header, ktime_ns(), current);
	record->common = attach_cookie(context);
	commit(&record->header, place.position, MAIN, sizeof *record);
	return 0;
}
