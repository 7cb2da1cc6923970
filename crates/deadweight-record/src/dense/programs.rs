//! The four programs that count dense calls in the kernel.
//!
//! Two run at the tracepoints of system calls before perf writes its records, and keep the records of calls
//! that they count from being written. Two run where a task leaves its CPU and where it wakes another: what was
//! counted until then is told first, and a call that is under way is told like any other, so that whom a wait
//! was for is known. Calls that are told one by one are: all of a kind that is not in the table of kinds, the
//! first after each stretch that was counted, and those of tasks that are not in the table of tasks.
//!
//! Not for choosing kinds and tasks: that is `dense`.

use super::assembler::{If, Instruction, Label, Op, Program, R};
use super::layout::{RARELY, entry, kind};
use super::running::{ask_again, find_task, who_calls, who_is_here};

/// The tables that the programs share, as descriptors.
#[derive(Copy, Clone, Debug)]
pub(super) struct Tables {
    pub(super) tasks: i32,
    pub(super) kinds: i32,
    /// By CPU, the task that runs there if it is known, otherwise 0.
    pub(super) running: i32,
    pub(super) told: i32,
    pub(super) sited: i32,
}

/// Counted calls are told after so many ...
const MANY: i32 = 128;
/// ... or after so many ns, when one is let through with its user half: as often as where calls are not counted.
const LONG: i32 = 1_000_000;
/// One call in so many is timed, at its entry and its return. A prime: programs repeat themselves, and seldom so.
pub(crate) const TIMED: i32 = 13;
/// After a pause it is not known whether it was in a call: the next so many are all timed ...
const AFTER_PAUSE: i32 = 256;
/// ... and so many after a call that was seen to take long. No more: interrupts look alike.
const AFTER_LONG: i32 = 1024;
/// Calls further apart than so many ns do not belong together; one that takes longer stands for itself alone.
const APART: i32 = 20_000;
/// `TASK_DEAD`, among a task's states.
const DEAD: i32 = 0x80;

/// Functions of the kernel, `enum bpf_func_id`.
const LOOK_UP: i32 = 1;
const CLOCK: i32 = 5;
const TELL: i32 = 25;
/// `BPF_F_CURRENT_CPU`.
const THIS_CPU: i32 = -1;

pub(super) const CONTEXT: R = R(6);
pub(super) const TASK: R = R(9);
pub(super) const STACK: R = R(10);

/// Whether a program's result keeps perf's record from being written.
const WRITE: i32 = 1;
const DROP: i32 = 0;

/// Of the table's entries, offsets are small.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "at most 1024")]
pub(super) const fn at(offset: usize) -> i16 {
    offset as i16
}

/// The same as a value.
pub(super) const fn whole(size: usize) -> i32 {
    at(size) as i32
}

const fn kind_at(index: usize, offset: usize) -> i16 {
    at(entry::FIRST_KIND + index * entry::KIND_SIZE + offset)
}

/// At `raw_syscalls/sys_enter`, whose fields are there.
pub(super) fn entering(tables: Tables, nr: usize, args: usize) -> Option<Vec<Instruction>> {
    let mut p = Program::default();
    let (write, tell_first) = (p.label(), p.label());
    who_calls(&mut p, tables);
    find_task(&mut p, tables, write);
    let (call, now) = (R(7), R(8));
    p.put(TASK, at(entry::OPEN), 0);
    p.put(TASK, at(entry::TAKEN), 0);
    p.load(call, CONTEXT, at(nr));
    p.jump_if(call, If::Greater, whole(kind::CALLS) - 1, tell_first);
    when_entered(&mut p, tables, now, tell_first);
    p.store_32(STACK, -4, call);
    look_up(&mut p, tables.kinds);
    p.jump_if(R(0), If::Equal, 0, tell_first);
    p.load(R(1), R(0), at(kind::COUNTABLE));
    p.jump_if(R(1), If::Equal, 0, tell_first);
    for i in 0..4 {
        p.load(R(1), CONTEXT, at(args + 8 * i));
        p.load(R(2), R(0), at(kind::LIMIT + 8 * i));
        p.with(Op::And, R(2), R(1));
        p.jump_if(R(2), If::Different, 0, tell_first);
        p.load(R(2), R(0), at(kind::MASK + 8 * i));
        p.with(Op::And, R(1), R(2));
        p.store(TASK, at(entry::ARGS + 8 * i), R(1));
    }
    p.store(TASK, at(entry::NR), call);
    p.store(TASK, at(entry::ENTERED), now);
    let goes_on = p.label();
    p.load(R(1), TASK, at(entry::PENDING));
    p.jump_if(R(1), If::Different, 0, goes_on);
    p.load(R(1), TASK, at(entry::LAST));
    earlier(&mut p, R(1), now);
    p.store(TASK, at(entry::SINCE), R(1));
    p.here(goes_on);
    p.put(TASK, at(entry::OPEN), 1);
    p.exit(DROP);
    p.here(tell_first);
    ask_again(&mut p, tables);
    read_clock(&mut p, now);
    tell_counted(&mut p, tables, entry::LAST);
    p.here(write);
    p.exit(WRITE);
    p.finish()
}

/// `now` becomes the time of an entry: read, or of most calls taken to be as long after the latest return as the one
/// that was timed. After a millisecond it goes on at `tell_first`.
fn when_entered(p: &mut Program, tables: Tables, now: R, tell_first: Label) {
    let (timed, near, after_a_record, done) = (p.label(), p.label(), p.label(), p.label());
    p.load(R(1), TASK, at(entry::UNTIMED));
    p.jump_if(R(1), If::Equal, 0, timed);
    p.jump_if(R(1), If::Equal, TIMED - 1, timed);
    p.load(now, TASK, at(entry::LAST));
    p.jump_if(now, If::Equal, 0, timed);
    p.load(R(1), TASK, at(entry::GAP));
    p.with(Op::Add, now, R(1));
    p.put(TASK, at(entry::EXACT), 0);
    p.jump(done);
    p.here(timed);
    read_clock(p, now);
    p.put(TASK, at(entry::EXACT), 1);
    p.with(Op::Set, R(1), now);
    p.load(R(2), TASK, at(entry::SITED));
    p.with(Op::Subtract, R(1), R(2));
    p.jump_if(R(1), If::Greater, LONG - 1, tell_first);
    // After a pause another stretch begins: where in it the calls were would not be known.
    p.load(R(2), TASK, at(entry::LAST));
    p.with(Op::Set, R(1), now);
    p.with(Op::Subtract, R(1), R(2));
    p.jump_if(R(1), If::LessSigned, APART, near);
    p.jump_if(R(2), If::Equal, 0, after_a_record);
    time_each(p, AFTER_PAUSE);
    tell_counted(p, tables, entry::LAST);
    p.here(after_a_record);
    p.store(TASK, at(entry::LAST), now);
    p.jump(done);
    p.here(near);
    p.load(R(2), TASK, at(entry::UNTIMED));
    p.jump_if(R(2), If::Different, TIMED - 1, done);
    p.store(TASK, at(entry::GAP), R(1));
    p.here(done);
}

/// At `raw_syscalls/sys_exit`, whose result is there.
pub(super) fn leaving(tables: Tables, result: usize) -> Option<Vec<Instruction>> {
    let mut p = Program::default();
    let (write, counted, timed, told, drop) =
        (p.label(), p.label(), p.label(), p.label(), p.label());
    let recorded = p.label();
    who_calls(&mut p, tables);
    find_task(&mut p, tables, write);
    let (now, kind) = (R(7), R(8));
    // Without an undivided exchange, which costs as much as all this: an interrupt between the first two that
    // tells of the call is seen by the third, and one after them finds nothing to tell.
    p.load(R(1), TASK, at(entry::OPEN));
    p.put(TASK, at(entry::OPEN), 0);
    p.load(R(2), TASK, at(entry::TAKEN));
    p.jump_if(R(1), If::Equal, 0, recorded);
    p.jump_if(R(2), If::Different, 0, recorded);
    one_more(&mut p, entry::RUN);
    p.load(R(5), CONTEXT, at(result));
    for index in 0..entry::KINDS {
        count_as(&mut p, index, kind, counted, timed);
    }
    one_more(&mut p, entry::MISSED);
    read_clock(&mut p, now);
    p.store(TASK, at(entry::LAST), now);
    p.jump(told);
    p.here(counted);
    p.load(R(1), TASK, at(entry::PENDING));
    p.jump_if(R(1), If::Greater, MANY - 2, timed);
    p.load(R(2), TASK, at(entry::UNTIMED));
    p.jump_if(R(2), If::Equal, 0, timed);
    p.by(Op::Add, R(1), 1);
    p.store(TASK, at(entry::PENDING), R(1));
    p.by(Op::Subtract, R(2), 1);
    p.store(TASK, at(entry::UNTIMED), R(2));
    p.load(R(1), TASK, at(entry::ENTERED));
    p.load(R(2), kind, at(entry::KIND_LATEST));
    p.with(Op::Add, R(1), R(2));
    p.store(TASK, at(entry::LAST), R(1));
    p.jump(drop);
    p.here(timed);
    time(&mut p, kind, now);
    one_more(&mut p, entry::PENDING);
    p.jump_if(R(1), If::Greater, MANY - 1, told);
    p.load(R(1), TASK, kind_at(entry::KINDS - 1, entry::KIND_COUNT));
    p.jump_if(R(1), If::Equal, 0, drop);
    p.here(told);
    tell_counted(&mut p, tables, entry::LAST);
    p.here(drop);
    p.exit(DROP);
    p.here(recorded);
    // The record of its return is still to come: what is counted next begins at its own entry.
    p.put(TASK, at(entry::LAST), 0);
    read_clock(&mut p, now);
    p.with(Op::Set, R(1), now);
    p.load(R(2), TASK, at(entry::SITED));
    p.with(Op::Subtract, R(1), R(2));
    p.jump_if(R(1), If::Less, LONG, write);
    p.store(TASK, at(entry::SITED), now);
    tell(&mut p, tables.sited, entry::NOW);
    p.here(write);
    p.exit(WRITE);
    p.finish()
}

/// At `sched_switch`, of the task that leaves its CPU.
pub(super) fn switching(tables: Tables) -> Option<Vec<Instruction>> {
    /// The tracepoint's arguments: whether it was put aside, and its state.
    const ASIDE: i16 = 0;
    const STATE: i16 = 24;
    let mut p = Program::default();
    let (between, left, end) = (p.label(), p.label(), p.label());
    p.with(Op::Set, CONTEXT, R(1));
    ask_again(&mut p, tables);
    who_is_here(&mut p);
    find_task(&mut p, tables, end);
    let (state, now) = (R(7), R(8));
    p.load(state, CONTEXT, STATE);
    p.copy_32(state, state);
    read_clock(&mut p, now);
    take_open(&mut p, between);
    tell_call(&mut p, tables);
    p.load(R(1), CONTEXT, ASIDE);
    p.by(Op::And, R(1), 1);
    p.jump_if(R(1), If::Different, 0, left);
    p.jump_if(state, If::Equal, 0, left);
    seldom(&mut p);
    p.jump(left);
    p.here(between);
    tell_counted(&mut p, tables, entry::LAST);
    p.here(left);
    p.put(TASK, at(entry::LAST), 0);
    p.by(Op::And, state, DEAD);
    p.jump_if(state, If::Equal, 0, end);
    p.put_32(TASK, at(entry::TASK), 0);
    p.here(end);
    p.exit(0);
    p.finish()
}

/// At `sched_waking`, of the task that wakes another (or was interrupted by what does).
pub(super) fn waking(tables: Tables) -> Option<Vec<Instruction>> {
    let mut p = Program::default();
    let end = p.label();
    p.with(Op::Set, CONTEXT, R(1));
    who_is_here(&mut p);
    find_task(&mut p, tables, end);
    take_open(&mut p, end);
    read_clock(&mut p, R(8));
    tell_call(&mut p, tables);
    seldom(&mut p);
    p.here(end);
    p.exit(0);
    p.finish()
}

/// The call that has just returned, with register 5, is one more of the kind at `index`, if it is like those, and
/// `kind` becomes that place: it goes on at `counted`. If there is none yet, it is the first, at `timed`.
fn count_as(p: &mut Program, index: usize, kind: R, counted: Label, timed: Label) {
    let (new, other) = (p.label(), p.label());
    p.with(Op::Set, kind, TASK);
    p.by(Op::Add, kind, kind_at(index, 0).into());
    p.load(R(1), kind, at(entry::KIND_COUNT));
    p.jump_if(R(1), If::Equal, 0, new);
    p.load(R(2), TASK, at(entry::NR));
    p.load(R(3), kind, 0);
    p.jump_if_both(R(2), If::Different, R(3), other);
    for i in 0..4 {
        p.load(R(2), TASK, at(entry::ARGS + 8 * i));
        p.load(R(3), kind, at(entry::KIND_ARGS + 8 * i));
        p.jump_if_both(R(2), If::Different, R(3), other);
    }
    p.load(R(3), kind, at(entry::KIND_RESULT));
    p.jump_if_both(R(5), If::Different, R(3), other);
    p.by(Op::Add, R(1), 1);
    p.store(kind, at(entry::KIND_COUNT), R(1));
    p.jump(counted);
    p.here(new);
    p.load(R(1), TASK, at(entry::NR));
    p.store(kind, 0, R(1));
    for i in 0..4 {
        p.load(R(1), TASK, at(entry::ARGS + 8 * i));
        p.store(kind, at(entry::KIND_ARGS + 8 * i), R(1));
    }
    p.store(kind, at(entry::KIND_RESULT), R(5));
    p.put(kind, at(entry::KIND_COUNT), 1);
    for timed in [entry::KIND_TIMED, entry::KIND_INSIDE, entry::KIND_LONG, entry::KIND_INSIDE_LONG]
    {
        p.put(kind, at(timed), 0);
    }
    p.jump(timed);
    p.here(other);
}

/// Reads the clock at the return of a call of this kind. Of one whose entry was not timed it tells nothing, unless it is
/// the first.
fn time(p: &mut Program, kind: R, now: R) {
    let (exact, seldom, measured, short, done) =
        (p.label(), p.label(), p.label(), p.label(), p.label());
    read_clock(p, now);
    p.store(TASK, at(entry::LAST), now);
    p.put(TASK, at(entry::UNTIMED), 0);
    p.load(R(3), TASK, at(entry::ENTERED));
    p.load(R(1), TASK, at(entry::EXACT));
    p.jump_if(R(1), If::Different, 0, exact);
    p.load(R(1), kind, at(entry::KIND_COUNT));
    p.jump_if(R(1), If::Greater, 1, done);
    earlier(p, R(3), now);
    p.with(Op::Subtract, now, R(3));
    p.store(kind, at(entry::KIND_LATEST), now);
    p.jump_if(now, If::Less, APART, short);
    p.put(kind, at(entry::KIND_LATEST), 0);
    p.jump(done);
    p.here(exact);
    p.load(R(1), TASK, at(entry::EACH));
    p.jump_if(R(1), If::Equal, 0, seldom);
    p.by(Op::Subtract, R(1), 1);
    p.store(TASK, at(entry::EACH), R(1));
    p.jump(measured);
    p.here(seldom);
    p.put(TASK, at(entry::UNTIMED), TIMED - 1);
    p.here(measured);
    p.with(Op::Subtract, now, R(3));
    p.store(kind, at(entry::KIND_LATEST), now);
    p.jump_if(now, If::Less, APART, short);
    time_each(p, AFTER_LONG);
    longer(p, kind, [entry::KIND_LONG, entry::KIND_INSIDE_LONG], now);
    p.jump(done);
    p.here(short);
    longer(p, kind, [entry::KIND_TIMED, entry::KIND_INSIDE], now);
    p.here(done);
}

/// One more at the first of these places, and so much at the second.
fn longer(p: &mut Program, kind: R, [count, inside]: [usize; 2], by: R) {
    p.load(R(1), kind, at(count));
    p.by(Op::Add, R(1), 1);
    p.store(kind, at(count), R(1));
    p.load(R(1), kind, at(inside));
    p.with(Op::Add, R(1), by);
    p.store(kind, at(inside), R(1));
}

/// From now on the clock is read at each return, so many times at least.
fn time_each(p: &mut Program, times: i32) {
    let more = p.label();
    p.load(R(1), TASK, at(entry::EACH));
    p.jump_if(R(1), If::Greater, times, more);
    p.put(TASK, at(entry::EACH), times);
    p.here(more);
    p.put(TASK, at(entry::UNTIMED), 0);
}

/// Register 0 becomes the entry with the number at the top of the stack.
pub(super) fn look_up(p: &mut Program, table: i32) {
    p.map(R(1), table);
    p.with(Op::Set, R(2), STACK);
    p.by(Op::Add, R(2), -4);
    p.call(LOOK_UP);
}

fn read_clock(p: &mut Program, to: R) {
    p.call(CLOCK);
    p.with(Op::Set, to, R(0));
    p.store(TASK, at(entry::NOW), to);
}

/// One more at this offset; register 1 has the sum.
fn one_more(p: &mut Program, offset: usize) {
    p.load(R(1), TASK, at(offset));
    p.by(Op::Add, R(1), 1);
    p.store(TASK, at(offset), R(1));
}

/// Tells what was counted, if anything was, until the time at `until`.
fn tell_counted(p: &mut Program, tables: Tables, until: usize) {
    let nothing = p.label();
    p.load(R(1), TASK, at(entry::PENDING));
    p.jump_if(R(1), If::Equal, 0, nothing);
    p.load(R(1), TASK, at(until));
    // A return that was not timed may seem later than it was.
    p.load(R(2), TASK, at(entry::NOW));
    earlier(p, R(1), R(2));
    p.store(TASK, at(entry::UNTIL), R(1));
    p.put_32(TASK, at(entry::TOLD), entry::COUNTED.cast_signed());
    tell(p, tables.told, entry::SIZE);
    // What could not be told is told later.
    p.jump_if(R(0), If::Different, 0, nothing);
    p.put(TASK, at(entry::PENDING), 0);
    p.put(TASK, at(entry::MISSED), 0);
    for index in 0..entry::KINDS {
        p.put(TASK, kind_at(index, entry::KIND_COUNT), 0);
    }
    p.here(nothing);
}

/// Tells what was counted, and the call that is under way: its end will be let through.
fn tell_call(p: &mut Program, tables: Tables) {
    tell_counted(p, tables, entry::ENTERED);
    p.load(R(1), TASK, at(entry::ENTERED));
    p.load(R(2), TASK, at(entry::NOW));
    earlier(p, R(1), R(2));
    p.store(TASK, at(entry::SINCE), R(1));
    p.put_32(TASK, at(entry::TOLD), entry::OPEN_CALL.cast_signed());
    tell(p, tables.told, entry::FIRST_KIND);
}

/// A call that is under way, and would be counted, no longer is; `not` if there is none.
fn take_open(p: &mut Program, not: Label) {
    p.load(R(1), TASK, at(entry::OPEN));
    p.jump_if(R(1), If::Equal, 0, not);
    p.put(TASK, at(entry::TAKEN), 1);
    p.put(TASK, at(entry::OPEN), 0);
}

/// `time` becomes `other` if that is earlier.
fn earlier(p: &mut Program, time: R, other: R) {
    let is_earlier = p.label();
    p.jump_if_both(other, If::Greater, time, is_earlier);
    p.with(Op::Set, time, other);
    p.here(is_earlier);
}

fn tell(p: &mut Program, events: i32, size: usize) {
    p.with(Op::Set, R(1), CONTEXT);
    p.map(R(2), events);
    p.set_32(R(3), THIS_CPU);
    p.with(Op::Set, R(4), TASK);
    p.by(Op::Set, R(5), whole(size));
    p.call(TELL);
}

/// Whom one waits for matters: who waits often, or is waited for, is counted no more.
fn seldom(p: &mut Program) {
    let seldom = p.label();
    p.load(R(1), TASK, at(entry::RUN));
    p.by(Op::ShiftRight, R(1), 1);
    p.store(TASK, at(entry::RUN), R(1));
    p.jump_if(R(1), If::Greater, RARELY, seldom);
    p.put_32(TASK, at(entry::TASK), 0);
    p.here(seldom);
}
