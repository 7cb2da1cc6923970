/* Records, into the ring buffer of the CPU.
 *
 * A ring is memory that the recorder maps. Programs of one CPU may interrupt each other, so a place is reserved by an
 * atomic exchange, and a record counts when its header is there: a stamp that no earlier record had at this place.
 * Records are not split at the end of the ring: the memory goes on for the longest one. */
#pragma once

#include "architecture.h"
#include "state.h"

/* Kinds of records, as in `src/perf/program_records.rs`. */
enum record {
	ENTER = 1,
	LEAVE,
	COUNTS,
	SWITCH,
	WAKING,
	EXEC,
	TIMER,
	TIMER_END,
	FAULT,
	FAULT_END,
	LOST,
	MAIN,
};

/* The start of each record. */
struct header {
	/* 32 bits of its position divided by 8, its kind, its size. */
	volatile u64 word;
	u64 at;
	/* Its process above its task. */
	u64 task;
};

struct lost {
	struct header header;
	u64 count;
};

/* A reserved place. */
struct place {
	u8 *ring;
	struct header *header;
	u64 position;
};

INLINE struct place place_at(u8 *ring, u64 position)
{
	struct place place = {ring, (struct header *)(ring + (position & FILLED_IN(ring_mask))), position};
	return place;
}

/* The place behind a record of this size: at the ring's start, if the record crosses its end. */
INLINE struct place behind(struct place place, u64 size)
{
	return place_at(place.ring, place.position + size);
}

/* Attempts to reserve a place: an interrupt may come in between. */
#define ATTEMPTS 4

INLINE void commit(struct header *header, u64 position, enum record kind, u64 size)
{
	publish(&header->word, (u32)(position / 8) | (u64)kind << 32 | size << 48);
}

INLINE void begin(struct header *header, u64 at, u64 task)
{
	header->at = at;
	header->task = task >> 32 | task << 32;
}

/* Reserves a place of this size. Its header is null if there is none. */
INLINE struct place reserve(struct cpu *cpu, u64 size)
{
	struct place none = {0, 0, 0};
	if (!cpu->records)
		return none;
	u32 number = processor_id();
	u8 *ring = map_lookup(&rings, &number);
	if (!ring)
		return none;
#pragma clang loop unroll(disable)
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		u64 lost = *(volatile u64 *)&cpu->lost;
		u64 report = lost ? sizeof(struct lost) : 0;
		u64 head = *(volatile u64 *)&cpu->head;
		u64 tail = *(volatile u64 *)&cpu->tail;
		if (head + report + size - tail > FILLED_IN(ring_mask))
			break;
		if (__sync_val_compare_and_swap(&cpu->head, head, head + report + size) != head)
			continue;
		struct place place = place_at(ring, head);
		if (unlikely(report)) {
			struct lost *record = (struct lost *)place.header;
			/* Not later than the record behind it, whose time is taken before its place. */
			begin(&record->header, cpu->lost_until, 0);
			record->count = lost;
			__sync_fetch_and_add(&cpu->lost, -lost);
			commit(&record->header, head, LOST, sizeof *record);
			return behind(place, sizeof *record);
		}
		return place;
	}
	cpu->lost_until = ktime_ns();
	__sync_fetch_and_add(&cpu->lost, 1);
	return none;
}

/* These bits of the clock are 0 for one event in four. */
#define CHANCE 48

/* After `many` stacks the interval is twice as long, after twice as many four times: they show where the rest is.
 *
 * Among frequent events chance decides, by the clock's low bits: else it was always the first one after a pause. */
INLINE int is_due(struct bucket *bucket, u64 now, u64 interval, u64 burst, u64 many)
{
	u64 until = bucket->until, given = bucket->given;
	interval <<= (given >= many) + (given >= 2 * many);
	if (until > now + burst * interval)
		return 0;
	if (until > now + burst / 2 * interval && now & CHANCE)
		return 0;
	bucket->until = (until > now ? until : now) + interval;
	bucket->given = given + 1;
	return 1;
}
