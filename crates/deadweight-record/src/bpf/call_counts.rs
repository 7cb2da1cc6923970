//! Counting calls in the kernel: which calls are alike, how long they take, and the output of the
//! counts.
//!
//! Does not choose the calls to count; see `calls`.

use super::assembler::{Cond, Label, Op, Program, R};
use super::layout::task_entry;
use super::{KTIME_GET_NS, Maps, TASK, TIME_ONE_IN, at, kind_at, output};

/// After a pause it is not known whether the pause was in a call: this many calls are all timed ...
pub(super) const TIME_AFTER_PAUSE: i32 = 256;
/// ... and this many after a call that took long. No more, because interrupts look alike.
const TIME_AFTER_LONG: i32 = 1024;
/// Calls further apart than this, in ns, are not counted together. A call that takes longer than
/// this is summed apart.
pub(super) const MAX_CALL_GAP: i32 = 20_000;

/// Counts the call that has just returned with register 5 with the kind of the latest call, if it
/// is alike: jumps to `counted`.
pub(super) fn count_as_latest(p: &mut Program, kind: R, counted: Label) {
    let other = p.label();
    p.load(R(1), TASK, at(task_entry::LATEST_KIND));
    p.jump_if(R(1), Cond::Equal, 0, other);
    p.jump_if(R(1), Cond::Greater, kind_at(task_entry::KINDS - 1, 0).into(), other);
    p.op_reg(Op::Mov, kind, TASK);
    p.op_reg(Op::Add, kind, R(1));
    p.load(R(3), kind, at(task_entry::KIND_RESULT));
    p.jump_if_both(R(5), Cond::NotEqual, R(3), other);
    increment(p, kind, task_entry::KIND_COUNT);
    p.jump(counted);
    p.bind(other);
}

/// Counts the call that has just returned with register 5 with the kind at `index`, if it is alike;
/// `kind` becomes the kind's address: jumps to `counted`. If the kind is empty, the call becomes
/// its first: jumps to `timed`.
pub(super) fn count_as(p: &mut Program, index: usize, kind: R, counted: Label, timed: Label) {
    let (new, other) = (p.label(), p.label());
    p.op_reg(Op::Mov, kind, TASK);
    p.op_imm(Op::Add, kind, kind_at(index, 0).into());
    p.load(R(1), kind, at(task_entry::KIND_COUNT));
    p.jump_if(R(1), Cond::Equal, 0, new);
    p.load(R(2), TASK, at(task_entry::NR));
    p.load(R(3), kind, 0);
    p.jump_if_both(R(2), Cond::NotEqual, R(3), other);
    for i in 0..4 {
        p.load(R(2), TASK, at(task_entry::ARGS + 8 * i));
        p.load(R(3), kind, at(task_entry::KIND_ARGS + 8 * i));
        p.jump_if_both(R(2), Cond::NotEqual, R(3), other);
    }
    p.load(R(3), kind, at(task_entry::KIND_RESULT));
    p.jump_if_both(R(5), Cond::NotEqual, R(3), other);
    p.op_imm(Op::Add, R(1), 1);
    p.store(kind, at(task_entry::KIND_COUNT), R(1));
    p.store_imm(TASK, at(task_entry::LATEST_KIND), kind_at(index, 0).into());
    p.jump(counted);
    p.bind(new);
    p.store_imm(TASK, at(task_entry::LATEST_KIND), kind_at(index, 0).into());
    p.load(R(1), TASK, at(task_entry::NR));
    p.store(kind, 0, R(1));
    for i in 0..4 {
        p.load(R(1), TASK, at(task_entry::ARGS + 8 * i));
        p.store(kind, at(task_entry::KIND_ARGS + 8 * i), R(1));
    }
    p.store(kind, at(task_entry::KIND_RESULT), R(5));
    p.store_imm(kind, at(task_entry::KIND_COUNT), 1);
    for timed in [
        task_entry::KIND_TIMED,
        task_entry::KIND_INSIDE,
        task_entry::KIND_LONG,
        task_entry::KIND_INSIDE_LONG,
    ] {
        p.store_imm(kind, at(timed), 0);
    }
    p.jump(timed);
    p.bind(other);
}

/// Reads the clock at the return of a call of this kind. If its entry was not timed, the time is
/// used only for the first call of a kind.
pub(super) fn time_return(p: &mut Program, kind: R, now: R) {
    let (exact, sampled, measured, short, done) =
        (p.label(), p.label(), p.label(), p.label(), p.label());
    read_clock(p, now);
    p.store(TASK, at(task_entry::LAST), now);
    p.store_imm(TASK, at(task_entry::UNTIMED), 0);
    p.load(R(3), TASK, at(task_entry::ENTERED));
    p.load(R(1), TASK, at(task_entry::ENTRY_TIMED));
    p.jump_if(R(1), Cond::NotEqual, 0, exact);
    p.load(R(1), kind, at(task_entry::KIND_COUNT));
    p.jump_if(R(1), Cond::Greater, 1, done);
    min_time(p, R(3), now);
    p.op_reg(Op::Subtract, now, R(3));
    p.store(kind, at(task_entry::KIND_LATEST), now);
    p.jump_if(now, Cond::Less, MAX_CALL_GAP, short);
    p.store_imm(kind, at(task_entry::KIND_LATEST), 0);
    p.jump(done);
    p.bind(exact);
    p.load(R(1), TASK, at(task_entry::TIME_EACH));
    p.jump_if(R(1), Cond::Equal, 0, sampled);
    p.op_imm(Op::Subtract, R(1), 1);
    p.store(TASK, at(task_entry::TIME_EACH), R(1));
    p.jump(measured);
    p.bind(sampled);
    p.store_imm(TASK, at(task_entry::UNTIMED), TIME_ONE_IN - 1);
    p.bind(measured);
    p.op_reg(Op::Subtract, now, R(3));
    p.store(kind, at(task_entry::KIND_LATEST), now);
    p.jump_if(now, Cond::Less, MAX_CALL_GAP, short);
    time_each(p, TIME_AFTER_LONG);
    add_time(p, kind, [task_entry::KIND_LONG, task_entry::KIND_INSIDE_LONG], now);
    p.jump(done);
    p.bind(short);
    add_time(p, kind, [task_entry::KIND_TIMED, task_entry::KIND_INSIDE], now);
    p.bind(done);
}

/// Adds one to the first field, and the time to the second.
fn add_time(p: &mut Program, kind: R, [count, inside]: [usize; 2], took: R) {
    increment(p, kind, count);
    p.load(R(1), kind, at(inside));
    p.op_reg(Op::Add, R(1), took);
    p.store(kind, at(inside), R(1));
}

/// Times at least this many returns from now on.
pub(super) fn time_each(p: &mut Program, times: i32) {
    let enough = p.label();
    p.load(R(1), TASK, at(task_entry::TIME_EACH));
    p.jump_if(R(1), Cond::Greater, times, enough);
    p.store_imm(TASK, at(task_entry::TIME_EACH), times);
    p.bind(enough);
    p.store_imm(TASK, at(task_entry::UNTIMED), 0);
}

pub(super) fn read_clock(p: &mut Program, to: R) {
    p.call(KTIME_GET_NS);
    p.op_reg(Op::Mov, to, R(0));
    p.store(TASK, at(task_entry::NOW), to);
}

/// Adds one at this offset. Register 1 has the sum.
pub(super) fn increment(p: &mut Program, base: R, offset: usize) {
    p.load(R(1), base, at(offset));
    p.op_imm(Op::Add, R(1), 1);
    p.store(base, at(offset), R(1));
}

/// Outputs the counts, if there are any, with their end at the field `until`.
pub(super) fn output_counts(p: &mut Program, maps: Maps, until: usize) {
    let nothing = p.label();
    p.load(R(1), TASK, at(task_entry::PENDING));
    p.jump_if(R(1), Cond::Equal, 0, nothing);
    p.load(R(1), TASK, at(until));
    // The estimated time of a return may be later than now.
    p.load(R(2), TASK, at(task_entry::NOW));
    min_time(p, R(1), R(2));
    p.store(TASK, at(task_entry::UNTIL), R(1));
    p.store32_imm(TASK, at(task_entry::RECORD_KIND), task_entry::COUNTED.cast_signed());
    output(p, maps.counts, task_entry::SIZE);
    // If the output failed, it is repeated later.
    p.jump_if(R(0), Cond::NotEqual, 0, nothing);
    p.store_imm(TASK, at(task_entry::PENDING), 0);
    p.store_imm(TASK, at(task_entry::MISSED), 0);
    p.store_imm(TASK, at(task_entry::LATEST_KIND), 0);
    for index in 0..task_entry::KINDS {
        p.store_imm(TASK, kind_at(index, task_entry::KIND_COUNT), 0);
    }
    p.bind(nothing);
}

/// `time` becomes the smaller of both.
pub(super) fn min_time(p: &mut Program, time: R, other: R) {
    let done = p.label();
    p.jump_if_both(other, Cond::Greater, time, done);
    p.op_reg(Op::Mov, time, other);
    p.bind(done);
}
