//! Counting calls: which are alike, how long they take, and telling of them.
//!
//! Not for which are counted: that is `calls`.

use super::assembler::{If, Label, Op, Program, R};
use super::layout::entry;
use super::{CLOCK, TASK, TIMED, Tables, at, kind_at, tell};

/// After a pause it is not known whether it was in a call: the next so many are all timed ...
pub(super) const AFTER_PAUSE: i32 = 256;
/// ... and so many after a call that was seen to take long. No more: interrupts look alike.
const AFTER_LONG: i32 = 1024;
/// Calls further apart than so many ns do not belong together; one that takes longer stands for itself alone.
pub(super) const APART: i32 = 20_000;

/// The call that has just returned, with register 5, is one more of the kind of the latest, if it is like that: it goes on
/// at `counted`.
pub(super) fn count_as_latest(p: &mut Program, kind: R, counted: Label) {
    let other = p.label();
    p.load(R(1), TASK, at(entry::LATEST));
    p.jump_if(R(1), If::Equal, 0, other);
    p.jump_if(R(1), If::Greater, kind_at(entry::KINDS - 1, 0).into(), other);
    p.with(Op::Set, kind, TASK);
    p.with(Op::Add, kind, R(1));
    p.load(R(3), kind, at(entry::KIND_RESULT));
    p.jump_if_both(R(5), If::Different, R(3), other);
    one_more(p, kind, entry::KIND_COUNT);
    p.jump(counted);
    p.here(other);
}

/// The call that has just returned, with register 5, is one more of the kind at `index`, if it is like those, and
/// `kind` becomes that place: it goes on at `counted`. If there is none yet, it is the first, at `timed`.
pub(super) fn count_as(p: &mut Program, index: usize, kind: R, counted: Label, timed: Label) {
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
    p.put(TASK, at(entry::LATEST), kind_at(index, 0).into());
    p.jump(counted);
    p.here(new);
    p.put(TASK, at(entry::LATEST), kind_at(index, 0).into());
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
pub(super) fn time(p: &mut Program, kind: R, now: R) {
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
pub(super) fn time_each(p: &mut Program, times: i32) {
    let more = p.label();
    p.load(R(1), TASK, at(entry::EACH));
    p.jump_if(R(1), If::Greater, times, more);
    p.put(TASK, at(entry::EACH), times);
    p.here(more);
    p.put(TASK, at(entry::UNTIMED), 0);
}

pub(super) fn read_clock(p: &mut Program, to: R) {
    p.call(CLOCK);
    p.with(Op::Set, to, R(0));
    p.store(TASK, at(entry::NOW), to);
}

/// One more at this offset; register 1 has the sum.
pub(super) fn one_more(p: &mut Program, of: R, offset: usize) {
    p.load(R(1), of, at(offset));
    p.by(Op::Add, R(1), 1);
    p.store(of, at(offset), R(1));
}

/// Tells what was counted, if anything was, until the time at `until`.
pub(super) fn tell_counted(p: &mut Program, tables: Tables, until: usize) {
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
    p.put(TASK, at(entry::LATEST), 0);
    for index in 0..entry::KINDS {
        p.put(TASK, kind_at(index, entry::KIND_COUNT), 0);
    }
    p.here(nothing);
}

/// `time` becomes `other` if that is earlier.
pub(super) fn earlier(p: &mut Program, time: R, other: R) {
    let is_earlier = p.label();
    p.jump_if_both(other, If::Greater, time, is_earlier);
    p.with(Op::Set, time, other);
    p.here(is_earlier);
}
