//! The two programs where a task leaves its CPU, and where it wakes another: what was counted until then is told first,
//! and a call that is under way is told like any other, so that whom a wait was for is known.
//!
//! Not for counting: that is `counted`.

use super::assembler::{If, Instruction, Label, Op, Program, R};
use super::counted::{earlier, read_clock, tell_counted};
use super::layout::{RARELY, entry};
use super::who::{ask_again, find_task, who_is_here};
use super::{CONTEXT, TASK, Tables, at, begin, tell};

/// `TASK_DEAD`, among a task's states.
const DEAD: i32 = 0x80;

/// At `sched_switch`, of the task that leaves its CPU.
pub(super) fn switching(tables: Tables) -> Option<Vec<Instruction>> {
    /// The tracepoint's arguments: whether it was put aside, and its state.
    const ASIDE: i16 = 0;
    const STATE: i16 = 24;
    let mut p = begin();
    let (between, left, end) = (p.label(), p.label(), p.label());
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
    p.exit();
    p.finish()
}

/// At `sched_waking`, of the task that wakes another (or was interrupted by what does).
pub(super) fn waking(tables: Tables) -> Option<Vec<Instruction>> {
    let mut p = begin();
    let end = p.label();
    who_is_here(&mut p);
    find_task(&mut p, tables, end);
    take_open(&mut p, end);
    read_clock(&mut p, R(8));
    tell_call(&mut p, tables);
    seldom(&mut p);
    p.here(end);
    p.exit();
    p.finish()
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
