//! The two programs at entries and returns of system calls.
//!
//! Each call of a task that is followed is recorded, unless that task is in the table of tasks: then calls are
//! counted but for the first after each stretch that was counted, and all of a kind that is not in the table of kinds.
//!
//! Not for choosing kinds and tasks: that is `dense`.

use super::assembler::{If, Instruction, Label, Op, Program, R};
use super::counted::{
    AFTER_PAUSE, APART, count_as, count_as_latest, earlier, one_more, read_clock, tell_counted,
    time, time_each,
};
use super::layout::{entry, kind};
use super::recorded::{record_entry, record_return};
use super::registers;
use super::who::{WHO, ask_again, is_followed, who_calls};
use super::{
    CONTEXT, MANY, REGISTERS, STACK, TASK, TIMED, Tables, VALUE, at, begin, kind_at, look_up, whole,
};

/// A counted task has a call recorded after so many ns, for its user half.
const LONG: i32 = 1_000_000;

/// At `sys_enter`.
pub(super) fn entering(tables: Tables) -> Option<Vec<Instruction>> {
    let mut p = begin();
    let (alone, tell_first, record, end) = (p.label(), p.label(), p.label(), p.label());
    who_calls(&mut p, tables, alone);
    let (call, now, saved) = (R(7), R(8), R(3));
    p.put(TASK, at(entry::OPEN), 0);
    p.put(TASK, at(entry::TAKEN), 0);
    p.load(call, CONTEXT, VALUE);
    p.jump_if(call, If::Greater, whole(kind::CALLS) - 1, tell_first);
    when_entered(&mut p, tables, now, tell_first);
    let alike = like_the_latest(&mut p, call);
    p.store_32(STACK, -4, call);
    look_up(&mut p, tables.kinds);
    p.jump_if(R(0), If::Equal, 0, tell_first);
    p.load(R(1), R(0), at(kind::COUNTABLE));
    p.jump_if(R(1), If::Equal, 0, tell_first);
    p.load(saved, CONTEXT, REGISTERS);
    registers::if_narrow(&mut p, saved, tell_first);
    for (i, register) in registers::ARGS.into_iter().take(4).enumerate() {
        p.load(R(1), saved, register);
        p.load(R(2), R(0), at(kind::LIMIT + 8 * i));
        p.with(Op::And, R(2), R(1));
        p.jump_if(R(2), If::Different, 0, tell_first);
        p.load(R(2), R(0), at(kind::MASK + 8 * i));
        p.store(TASK, at(entry::MASKS + 8 * i), R(2));
        p.with(Op::And, R(1), R(2));
        p.store(TASK, at(entry::ARGS + 8 * i), R(1));
    }
    p.store(TASK, at(entry::NR), call);
    p.here(alike);
    p.store(TASK, at(entry::ENTERED), now);
    let goes_on = p.label();
    p.load(R(1), TASK, at(entry::PENDING));
    p.jump_if(R(1), If::Different, 0, goes_on);
    p.load(R(1), TASK, at(entry::LAST));
    earlier(&mut p, R(1), now);
    p.store(TASK, at(entry::SINCE), R(1));
    p.here(goes_on);
    p.put(TASK, at(entry::OPEN), 1);
    p.exit();
    p.here(tell_first);
    ask_again(&mut p, tables);
    read_clock(&mut p, now);
    p.store(TASK, at(entry::RECORDED), now);
    tell_counted(&mut p, tables, entry::LAST);
    p.load_32(WHO, TASK, at(entry::TASK));
    p.jump(record);
    p.here(alone);
    is_followed(&mut p, tables, end);
    p.here(record);
    record_entry(&mut p, tables);
    p.here(end);
    p.exit();
    p.finish()
}

/// Goes on at the label if this call is like the latest, and that was counted: nothing has to be looked up and noted then.
fn like_the_latest(p: &mut Program, call: R) -> Label {
    let (alike, other, saved) = (p.label(), p.label(), R(3));
    p.load(R(1), TASK, at(entry::LATEST));
    p.jump_if(R(1), If::Equal, 0, other);
    p.load(R(1), TASK, at(entry::NR));
    p.jump_if_both(R(1), If::Different, call, other);
    p.load(saved, CONTEXT, REGISTERS);
    for (i, register) in registers::ARGS.into_iter().take(4).enumerate() {
        p.load(R(1), saved, register);
        p.load(R(2), TASK, at(entry::MASKS + 8 * i));
        p.with(Op::And, R(1), R(2));
        p.load(R(2), TASK, at(entry::ARGS + 8 * i));
        p.jump_if_both(R(1), If::Different, R(2), other);
    }
    p.jump(alike);
    p.here(other);
    p.put(TASK, at(entry::LATEST), 0);
    alike
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
    p.load(R(2), TASK, at(entry::RECORDED));
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

/// At `sys_exit`.
pub(super) fn leaving(tables: Tables) -> Option<Vec<Instruction>> {
    let mut p = begin();
    let (counted, timed, told, end) = (p.label(), p.label(), p.label(), p.label());
    let (recorded, alone, record) = (p.label(), p.label(), p.label());
    who_calls(&mut p, tables, alone);
    let (now, kind) = (R(7), R(8));
    // Without an undivided exchange, which costs as much as all this: an interrupt between the first two that
    // tells of the call is seen by the third, and one after them finds nothing to tell.
    p.load(R(1), TASK, at(entry::OPEN));
    p.put(TASK, at(entry::OPEN), 0);
    p.load(R(2), TASK, at(entry::TAKEN));
    p.jump_if(R(1), If::Equal, 0, recorded);
    p.jump_if(R(2), If::Different, 0, recorded);
    one_more(&mut p, TASK, entry::RUN);
    p.load(R(5), CONTEXT, VALUE);
    count_as_latest(&mut p, kind, counted);
    for index in 0..entry::KINDS {
        count_as(&mut p, index, kind, counted, timed);
    }
    one_more(&mut p, TASK, entry::MISSED);
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
    p.jump(end);
    p.here(timed);
    time(&mut p, kind, now);
    one_more(&mut p, TASK, entry::PENDING);
    p.jump_if(R(1), If::Greater, MANY - 1, told);
    p.load(R(1), TASK, kind_at(entry::KINDS - 1, entry::KIND_COUNT));
    p.jump_if(R(1), If::Equal, 0, end);
    p.here(told);
    tell_counted(&mut p, tables, entry::LAST);
    p.jump(end);
    p.here(recorded);
    // What is counted next begins at its own entry.
    p.put(TASK, at(entry::LAST), 0);
    p.jump(record);
    p.here(alone);
    is_followed(&mut p, tables, end);
    p.here(record);
    record_return(&mut p, tables);
    p.here(end);
    p.exit();
    p.finish()
}
