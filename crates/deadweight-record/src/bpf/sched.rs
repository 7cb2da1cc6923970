//! The two programs at context switches and wake-ups. They output the counts so far, and an open
//! call as a single call, so that the call of each wait and wake-up is known.
//!
//! Does not count calls; see `call_counts`.

use super::assembler::{Cond, Instruction, Label, Op, Program, R};
use super::call_counts::{min_time, output_counts, read_clock};
use super::current_task::{current_tid, find_task, forget_current};
use super::layout::{MIN_CALLS_PER_WAIT, task_entry};
use super::{CONTEXT, Maps, TASK, at, output, prologue};

/// `TASK_DEAD`, a task state.
const DEAD: i32 = 0x80;

/// At `sched_switch`, for the task that leaves its CPU.
pub(super) fn on_switch(maps: Maps) -> Option<Vec<Instruction>> {
    /// The tracepoint's arguments: whether it was preempted, and its state.
    const PREEMPT: i16 = 0;
    const STATE: i16 = 24;
    let mut p = prologue();
    let (not_in_call, off_cpu, end) = (p.label(), p.label(), p.label());
    forget_current(&mut p, maps);
    current_tid(&mut p);
    find_task(&mut p, maps, end);
    let (state, now) = (R(7), R(8));
    p.load(state, CONTEXT, STATE);
    p.mov32_reg(state, state);
    read_clock(&mut p, now);
    take_open_call(&mut p, not_in_call);
    output_open_call(&mut p, maps);
    p.load(R(1), CONTEXT, PREEMPT);
    p.op_imm(Op::And, R(1), 1);
    p.jump_if(R(1), Cond::NotEqual, 0, off_cpu);
    p.jump_if(state, Cond::Equal, 0, off_cpu);
    stop_if_frequent(&mut p);
    p.jump(off_cpu);
    p.bind(not_in_call);
    output_counts(&mut p, maps, task_entry::LAST);
    p.bind(off_cpu);
    p.store_imm(TASK, at(task_entry::LAST), 0);
    p.op_imm(Op::And, state, DEAD);
    p.jump_if(state, Cond::Equal, 0, end);
    p.store32_imm(TASK, at(task_entry::TASK), 0);
    p.bind(end);
    p.exit();
    p.finish()
}

/// At `sched_waking`, for the waker (or the task that a waking interrupt interrupted).
pub(super) fn on_waking(maps: Maps) -> Option<Vec<Instruction>> {
    let mut p = prologue();
    let end = p.label();
    current_tid(&mut p);
    find_task(&mut p, maps, end);
    take_open_call(&mut p, end);
    read_clock(&mut p, R(8));
    output_open_call(&mut p, maps);
    stop_if_frequent(&mut p);
    p.bind(end);
    p.exit();
    p.finish()
}

/// Outputs the counts and the open call. Its return will be recorded.
fn output_open_call(p: &mut Program, maps: Maps) {
    output_counts(p, maps, task_entry::ENTERED);
    p.load(R(1), TASK, at(task_entry::ENTERED));
    p.load(R(2), TASK, at(task_entry::NOW));
    min_time(p, R(1), R(2));
    p.store(TASK, at(task_entry::SINCE), R(1));
    p.store32_imm(TASK, at(task_entry::RECORD_KIND), task_entry::OPEN_CALL.cast_signed());
    output(p, maps.counts, task_entry::FIRST_KIND);
}

/// The open call will not be counted. Jumps to `not` if there is none.
fn take_open_call(p: &mut Program, not: Label) {
    p.load(R(1), TASK, at(task_entry::OPEN));
    p.jump_if(R(1), Cond::Equal, 0, not);
    p.store_imm(TASK, at(task_entry::OPEN_REPORTED), 1);
    p.store_imm(TASK, at(task_entry::OPEN), 0);
}

/// Wake-ups matter: a task that often waits or wakes is no longer counted.
fn stop_if_frequent(p: &mut Program) {
    let rare = p.label();
    p.load(R(1), TASK, at(task_entry::CALLS_PER_WAIT));
    p.op_imm(Op::ShiftRight, R(1), 1);
    p.store(TASK, at(task_entry::CALLS_PER_WAIT), R(1));
    p.jump_if(R(1), Cond::Greater, MIN_CALLS_PER_WAIT, rare);
    p.store32_imm(TASK, at(task_entry::TASK), 0);
    p.bind(rare);
}
