//! The two programs at entries and returns of system calls.
//!
//! Each call of a task that is followed is recorded, unless that task is in the table of tasks: then calls are
//! counted but for the first after each stretch that was counted, and all of a kind that is not in the table of kinds.
//!
//! Not for choosing kinds and tasks: that is `dense`.

use super::assembler::{Cond, Instruction, Label, Op, Program, R};
use super::call_counts::{
    MAX_CALL_GAP, TIME_AFTER_PAUSE, count_as, count_as_latest, increment, min_time, output_counts,
    read_clock, time_each, time_return,
};
use super::call_records::{record_entry, record_return};
use super::current_task::{TID, calling_task, forget_current, require_followed};
use super::layout::{call_filter, task_entry};
use super::pt_regs;
use super::{
    CONTEXT, Maps, REGISTERS, REPORT_AFTER, STACK, TASK, TIME_ONE_IN, VALUE, at, imm, kind_at,
    lookup, prologue,
};

/// A counted task has a call recorded after so many ns, for its user half.
const RECORD_EVERY: i32 = 1_000_000;

/// At `sys_enter`.
pub(super) fn on_sys_enter(maps: Maps) -> Option<Vec<Instruction>> {
    let mut p = prologue();
    let (uncounted, report_first, record, end) = (p.label(), p.label(), p.label(), p.label());
    calling_task(&mut p, maps, uncounted);
    let (call, now, regs) = (R(7), R(8), R(3));
    p.store_imm(TASK, at(task_entry::OPEN), 0);
    p.store_imm(TASK, at(task_entry::OPEN_REPORTED), 0);
    p.load(call, CONTEXT, VALUE);
    p.jump_if(call, Cond::Greater, imm(call_filter::CALLS) - 1, report_first);
    entry_time(&mut p, maps, now, report_first);
    let same_as_latest = matches_latest(&mut p, call);
    p.store_32(STACK, -4, call);
    lookup(&mut p, maps.call_filters);
    p.jump_if(R(0), Cond::Equal, 0, report_first);
    p.load(R(1), R(0), at(call_filter::COUNTABLE));
    p.jump_if(R(1), Cond::Equal, 0, report_first);
    p.load(regs, CONTEXT, REGISTERS);
    pt_regs::jump_if_compat(&mut p, regs, report_first);
    for (i, register) in pt_regs::ARGS.into_iter().take(4).enumerate() {
        p.load(R(1), regs, register);
        p.load(R(2), R(0), at(call_filter::LIMIT + 8 * i));
        p.op_reg(Op::And, R(2), R(1));
        p.jump_if(R(2), Cond::NotEqual, 0, report_first);
        p.load(R(2), R(0), at(call_filter::MASK + 8 * i));
        p.store(TASK, at(task_entry::MASKS + 8 * i), R(2));
        p.op_reg(Op::And, R(1), R(2));
        p.store(TASK, at(task_entry::ARGS + 8 * i), R(1));
    }
    p.store(TASK, at(task_entry::NR), call);
    p.bind(same_as_latest);
    p.store(TASK, at(task_entry::ENTERED), now);
    let pending = p.label();
    p.load(R(1), TASK, at(task_entry::PENDING));
    p.jump_if(R(1), Cond::NotEqual, 0, pending);
    p.load(R(1), TASK, at(task_entry::LAST));
    min_time(&mut p, R(1), now);
    p.store(TASK, at(task_entry::SINCE), R(1));
    p.bind(pending);
    p.store_imm(TASK, at(task_entry::OPEN), 1);
    p.exit();
    p.bind(report_first);
    forget_current(&mut p, maps);
    read_clock(&mut p, now);
    p.store(TASK, at(task_entry::RECORDED), now);
    output_counts(&mut p, maps, task_entry::LAST);
    p.load_32(TID, TASK, at(task_entry::TASK));
    p.jump(record);
    p.bind(uncounted);
    require_followed(&mut p, maps, end);
    p.bind(record);
    record_entry(&mut p, maps);
    p.bind(end);
    p.exit();
    p.finish()
}

/// Goes on at the label if this call is like the latest, and that was counted: nothing has to be looked up and noted then.
fn matches_latest(p: &mut Program, call: R) -> Label {
    let (same_as_latest, differs, regs) = (p.label(), p.label(), R(3));
    p.load(R(1), TASK, at(task_entry::LATEST_KIND));
    p.jump_if(R(1), Cond::Equal, 0, differs);
    p.load(R(1), TASK, at(task_entry::NR));
    p.jump_if_both(R(1), Cond::NotEqual, call, differs);
    p.load(regs, CONTEXT, REGISTERS);
    for (i, register) in pt_regs::ARGS.into_iter().take(4).enumerate() {
        p.load(R(1), regs, register);
        p.load(R(2), TASK, at(task_entry::MASKS + 8 * i));
        p.op_reg(Op::And, R(1), R(2));
        p.load(R(2), TASK, at(task_entry::ARGS + 8 * i));
        p.jump_if_both(R(1), Cond::NotEqual, R(2), differs);
    }
    p.jump(same_as_latest);
    p.bind(differs);
    p.store_imm(TASK, at(task_entry::LATEST_KIND), 0);
    same_as_latest
}

/// `now` becomes the time of an entry: read, or of most calls taken to be as long after the latest return as the one
/// that was timed. After a millisecond it goes on at `report_first`.
fn entry_time(p: &mut Program, maps: Maps, now: R, report_first: Label) {
    let (timed, soon, after_record, done) = (p.label(), p.label(), p.label(), p.label());
    p.load(R(1), TASK, at(task_entry::UNTIMED));
    p.jump_if(R(1), Cond::Equal, 0, timed);
    p.jump_if(R(1), Cond::Equal, TIME_ONE_IN - 1, timed);
    p.load(now, TASK, at(task_entry::LAST));
    p.jump_if(now, Cond::Equal, 0, timed);
    p.load(R(1), TASK, at(task_entry::RETURN_TO_ENTRY));
    p.op_reg(Op::Add, now, R(1));
    p.store_imm(TASK, at(task_entry::ENTRY_TIMED), 0);
    p.jump(done);
    p.bind(timed);
    read_clock(p, now);
    p.store_imm(TASK, at(task_entry::ENTRY_TIMED), 1);
    p.op_reg(Op::Mov, R(1), now);
    p.load(R(2), TASK, at(task_entry::RECORDED));
    p.op_reg(Op::Subtract, R(1), R(2));
    p.jump_if(R(1), Cond::Greater, RECORD_EVERY - 1, report_first);
    // After a pause another stretch begins: where in it the calls were would not be known.
    p.load(R(2), TASK, at(task_entry::LAST));
    p.op_reg(Op::Mov, R(1), now);
    p.op_reg(Op::Subtract, R(1), R(2));
    p.jump_if(R(1), Cond::LessSigned, MAX_CALL_GAP, soon);
    p.jump_if(R(2), Cond::Equal, 0, after_record);
    time_each(p, TIME_AFTER_PAUSE);
    output_counts(p, maps, task_entry::LAST);
    p.bind(after_record);
    p.store(TASK, at(task_entry::LAST), now);
    p.jump(done);
    p.bind(soon);
    p.load(R(2), TASK, at(task_entry::UNTIMED));
    p.jump_if(R(2), Cond::NotEqual, TIME_ONE_IN - 1, done);
    p.store(TASK, at(task_entry::RETURN_TO_ENTRY), R(1));
    p.bind(done);
}

/// At `sys_exit`.
pub(super) fn on_sys_exit(maps: Maps) -> Option<Vec<Instruction>> {
    let mut p = prologue();
    let (counted, timed, report, end) = (p.label(), p.label(), p.label(), p.label());
    let (recorded, uncounted, record) = (p.label(), p.label(), p.label());
    calling_task(&mut p, maps, uncounted);
    let (now, kind) = (R(7), R(8));
    // Without an undivided exchange, which costs as much as all this: an interrupt between the first two that
    // tells of the call is seen by the third, and one after them finds nothing to tell.
    p.load(R(1), TASK, at(task_entry::OPEN));
    p.store_imm(TASK, at(task_entry::OPEN), 0);
    p.load(R(2), TASK, at(task_entry::OPEN_REPORTED));
    p.jump_if(R(1), Cond::Equal, 0, recorded);
    p.jump_if(R(2), Cond::NotEqual, 0, recorded);
    increment(&mut p, TASK, task_entry::CALLS_PER_WAIT);
    p.load(R(5), CONTEXT, VALUE);
    count_as_latest(&mut p, kind, counted);
    for index in 0..task_entry::KINDS {
        count_as(&mut p, index, kind, counted, timed);
    }
    increment(&mut p, TASK, task_entry::MISSED);
    read_clock(&mut p, now);
    p.store(TASK, at(task_entry::LAST), now);
    p.jump(report);
    p.bind(counted);
    p.load(R(1), TASK, at(task_entry::PENDING));
    p.jump_if(R(1), Cond::Greater, REPORT_AFTER - 2, timed);
    p.load(R(2), TASK, at(task_entry::UNTIMED));
    p.jump_if(R(2), Cond::Equal, 0, timed);
    p.op_imm(Op::Add, R(1), 1);
    p.store(TASK, at(task_entry::PENDING), R(1));
    p.op_imm(Op::Subtract, R(2), 1);
    p.store(TASK, at(task_entry::UNTIMED), R(2));
    p.load(R(1), TASK, at(task_entry::ENTERED));
    p.load(R(2), kind, at(task_entry::KIND_LATEST));
    p.op_reg(Op::Add, R(1), R(2));
    p.store(TASK, at(task_entry::LAST), R(1));
    p.jump(end);
    p.bind(timed);
    time_return(&mut p, kind, now);
    increment(&mut p, TASK, task_entry::PENDING);
    p.jump_if(R(1), Cond::Greater, REPORT_AFTER - 1, report);
    p.load(R(1), TASK, kind_at(task_entry::KINDS - 1, task_entry::KIND_COUNT));
    p.jump_if(R(1), Cond::Equal, 0, end);
    p.bind(report);
    output_counts(&mut p, maps, task_entry::LAST);
    p.jump(end);
    p.bind(recorded);
    // What is counted next begins at its own entry.
    p.store_imm(TASK, at(task_entry::LAST), 0);
    p.jump(record);
    p.bind(uncounted);
    require_followed(&mut p, maps, end);
    p.bind(record);
    record_return(&mut p, maps);
    p.bind(end);
    p.exit();
    p.finish()
}
