/* Counts the calls of tasks that make them at a high rate. Calls that are alike are counted together, and one in
 * TIME_ONE_IN is timed. `src/bpf/high_rate` chooses the tasks. */
#pragma once

#include "output.h"

/* Counts are output after this many calls, or after a millisecond. */
#define REPORT_AFTER 512
/* One in this many counted calls is timed, at entry and return. A prime, because programs repeat themselves in other
 * periods. */
#define TIME_ONE_IN 29
/* After a pause it is not known whether the pause was in a call: this many calls are all timed ... */
#define TIME_AFTER_PAUSE 256
/* ... and this many after a call that took long. No more, because interrupts look alike. */
#define TIME_AFTER_LONG 1024
/* Calls further apart than this, in ns, are not counted together. A call that takes longer is summed apart. */
#define MAX_CALL_GAP 20000
/* A counted task has a call recorded in this interval, in ns, for its stack. */
#define RECORD_EVERY 1000000
/* Counts take as much space as this many single calls: a task that counts fewer in the mean before it must output them
 * is no longer counted. */
#define MIN_CALLS_PER_OUTPUT 8
/* A task that waits or wakes more often than once in this many calls is no longer counted. */
#define MIN_CALLS_PER_WAIT 256

INLINE u64 earlier(u64 one, u64 other)
{
	return one < other ? one : other;
}

INLINE u64 read_clock(struct task *task)
{
	return task->now = ktime_ns();
}

/* A whole entry, or all of it before the kinds. */
struct counts {
	struct header header;
	struct task task;
};
struct open_call {
	struct header header;
	u8 task[sizeof(struct task) - KINDS * sizeof(struct kind)];
};

/* Outputs the counts, if there are any. Their period ends at `until`, unless that is later than now: the time of a
 * return is an estimate. */
INLINE void output_counts(struct cpu *cpu, struct task *task, u64 until)
{
	if (!task->pending)
		return;
	task->until = earlier(until, task->now);
	task->record_kind = COUNTED;
	struct place place = reserve(cpu, sizeof(struct counts));
	struct counts *record = (struct counts *)place.header;
	/* If there was no place, the output is repeated later. */
	if (!record)
		return;
	begin(&record->header, task->since, running(cpu));
	__builtin_memcpy(&record->task, task, sizeof *task);
	commit(&record->header, place.position, COUNTS, sizeof *record);
	task->pending = 0;
	task->missed = 0;
	task->latest_kind = 0;
#pragma unroll
	for (int i = 0; i < KINDS; i++)
		task->kinds[i].count = 0;
}

/* Times at least this many returns from now on. */
INLINE void time_each(struct task *task, u64 times)
{
	if (task->time_each <= times)
		task->time_each = times;
	task->untimed = 0;
}

/* Outputs the counts, and notes after how many calls. */
INLINE void end_counts(struct cpu *cpu, struct task *task)
{
	if (task->pending)
		task->calls_per_output = (task->calls_per_output + task->pending) / 2;
	output_counts(cpu, task, task->last);
}

INLINE int is_futile(const struct task *task)
{
	return task->calls_per_output < MIN_CALLS_PER_OUTPUT;
}

/* The time of an entry: read, or for most calls estimated as the latest return plus the timed interval. 0 if a call
 * must be recorded: after a millisecond. */
INLINE u64 entry_time(struct cpu *cpu, struct task *task)
{
	u64 untimed = task->untimed;
	if (untimed != 0 && untimed != TIME_ONE_IN - 1 && task->last != 0) {
		task->entry_timed = 0;
		return task->last + task->return_to_entry;
	}
	u64 now = read_clock(task);
	task->entry_timed = 1;
	if (now - task->recorded >= RECORD_EVERY)
		return 0;
	u64 gap = now - task->last;
	if ((s64)gap < MAX_CALL_GAP) {
		if (task->untimed == TIME_ONE_IN - 1)
			task->return_to_entry = gap;
		return now;
	}
	/* After a pause a new period begins: otherwise the calls' times in it would not be known. */
	if (task->last) {
		time_each(task, TIME_AFTER_PAUSE);
		end_counts(cpu, task);
	}
	task->last = now;
	return now;
}

/* Whether this call is like the latest one, and that was counted: then no filter is needed. */
INLINE int is_like_latest(struct task *task, const struct registers *regs, u64 call)
{
	return task->latest_kind && task->nr == call && (ARG0(regs) & task->masks[0]) == task->args[0] &&
	       (ARG1(regs) & task->masks[1]) == task->args[1] && (ARG2(regs) & task->masks[2]) == task->args[2] &&
	       (ARG3(regs) & task->masks[3]) == task->args[3];
}

/* Takes the call, with its distinguishing arguments, if calls like it may be counted. */
INLINE int take_countable(struct task *task, const struct registers *regs, u64 call)
{
	u32 number = call;
	struct call_filter *filter = map_lookup(&call_filters, &number);
	task->latest_kind = 0;
	if (!filter || !filter->countable || is_compat(regs))
		return 0;
	u64 args[] = {ARG0(regs), ARG1(regs), ARG2(regs), ARG3(regs)};
#pragma unroll
	for (int i = 0; i < 4; i++) {
		if (args[i] & filter->limits[i])
			return 0;
		task->masks[i] = filter->masks[i];
		task->args[i] = args[i] & filter->masks[i];
	}
	task->nr = call;
	return 1;
}

/* At an entry: whether the call will be counted. If not, it must be recorded. */
INLINE int count_entry(struct cpu *cpu, struct task *task, const struct registers *regs, u64 call)
{
	task->open = 0;
	task->open_reported = 0;
	u64 now = call < CALLS ? entry_time(cpu, task) : 0;
	if (now && !is_futile(task) && (is_like_latest(task, regs, call) || take_countable(task, regs, call))) {
		task->entered = now;
		if (!task->pending)
			task->since = earlier(task->last, now);
		*(volatile u64 *)&task->open = 1;
		return 1;
	}
	task->recorded = read_clock(task);
	end_counts(cpu, task);
	if (is_futile(task))
		task->id = 0;
	return 0;
}

/* Adds the time of a timed call to its kind. */
INLINE void add_time(struct task *task, struct kind *kind, u64 took)
{
	kind->latest = took;
	if (took < MAX_CALL_GAP) {
		kind->timed++;
		kind->inside += took;
	} else {
		time_each(task, TIME_AFTER_LONG);
		kind->long_timed++;
		kind->inside_long += took;
	}
}

/* Reads the clock at the return of a call of this kind. If its entry was not timed, the time is used only for the
 * first call of a kind. */
INLINE void time_return(struct task *task, struct kind *kind)
{
	u64 now = read_clock(task);
	task->last = now;
	task->untimed = 0;
	if (task->entry_timed) {
		if (task->time_each)
			task->time_each--;
		else
			task->untimed = TIME_ONE_IN - 1;
		add_time(task, kind, now - task->entered);
	} else if (kind->count <= 1) {
		u64 took = now - earlier(task->entered, now);
		kind->latest = took < MAX_CALL_GAP ? took : 0;
		if (took < MAX_CALL_GAP) {
			kind->timed++;
			kind->inside += took;
		}
	}
}

INLINE int is_of_kind(const struct task *task, const struct kind *kind, u64 result)
{
	return kind->nr == task->nr && kind->args[0] == task->args[0] && kind->args[1] == task->args[1] &&
	       kind->args[2] == task->args[2] && kind->args[3] == task->args[3] && kind->result == result;
}

/* The call that has just returned becomes the first of its kind. */
INLINE void begin_kind(const struct task *task, struct kind *kind, u64 result)
{
	kind->nr = task->nr;
#pragma unroll
	for (int i = 0; i < 4; i++)
		kind->args[i] = task->args[i];
	kind->result = result;
	kind->count = 1;
	kind->timed = kind->inside = kind->long_timed = kind->inside_long = 0;
}

/* The kind of the call that has just returned, with the call counted; null if all kinds are other calls. `is_new`
 * tells whether it is the first of its kind. */
INLINE struct kind *count_kind(struct task *task, u64 result, int *is_new)
{
	*is_new = 0;
	u64 latest = task->latest_kind - 1;
	if (latest < KINDS && task->kinds[latest].result == result) {
		task->kinds[latest].count++;
		return &task->kinds[latest];
	}
#pragma unroll
	for (int i = 0; i < KINDS; i++) {
		struct kind *kind = &task->kinds[i];
		if (!kind->count) {
			begin_kind(task, kind, result);
			*is_new = 1;
		} else if (is_of_kind(task, kind, result)) {
			kind->count++;
		} else {
			continue;
		}
		task->latest_kind = i + 1;
		return kind;
	}
	return 0;
}

/* At a return: whether the call was counted. If not, it was recorded at its entry, and its return must be. */
INLINE int count_return(struct cpu *cpu, struct task *task, u64 result)
{
	/* Without an atomic exchange, which would cost as much as all the rest: an interrupt between the first two
	 * accesses that outputs the call is seen by the third, and a later one finds nothing to output. */
	volatile u64 *open = &task->open, *reported = &task->open_reported;
	u64 counts = *open;
	*open = 0;
	if (!counts || *reported) {
		/* The next counted period begins at its own entry. */
		task->last = 0;
		return 0;
	}
	task->calls_per_wait++;
	int is_new;
	struct kind *kind = count_kind(task, result, &is_new);
	if (!kind) {
		task->missed++;
		task->last = read_clock(task);
		output_counts(cpu, task, task->last);
		return 1;
	}
	if (!is_new && task->pending < REPORT_AFTER - 1 && task->untimed) {
		task->pending++;
		task->untimed--;
		task->last = task->entered + kind->latest;
		return 1;
	}
	time_return(task, kind);
	task->pending++;
	if (task->pending >= REPORT_AFTER || task->kinds[KINDS - 1].count)
		end_counts(cpu, task);
	return 1;
}

/* Outputs the counts, and the open call as a single call: its return will be recorded. */
INLINE void output_open_call(struct cpu *cpu, struct task *task)
{
	task->open_reported = 1;
	task->open = 0;
	output_counts(cpu, task, task->entered);
	task->since = earlier(task->entered, task->now);
	task->record_kind = OPEN_CALL;
	struct place place = reserve(cpu, sizeof(struct open_call));
	struct open_call *record = (struct open_call *)place.header;
	if (!record)
		return;
	begin(&record->header, task->since, running(cpu));
	__builtin_memcpy(record->task, task, sizeof record->task);
	commit(&record->header, place.position, COUNTS, sizeof *record);
}

/* Wake-ups matter: a task that often waits or wakes is no longer counted. */
INLINE void stop_if_frequent(struct task *task)
{
	task->calls_per_wait >>= 1;
	if (task->calls_per_wait <= MIN_CALLS_PER_WAIT)
		task->id = 0;
}
