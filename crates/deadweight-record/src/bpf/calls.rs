//! The two programs at the entry and the return of system calls.
//!
//! Each call of a followed task is recorded, unless the task is in the task map: then calls are
//! counted. Recorded are still the first call after each output of counts, and all calls without a
//! filter that allows counting.
//!
//! Does not choose tasks and calls; see `high_rate`.

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

/// A counted task has a call recorded in this interval, in ns, for its stack.
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

/// Jumps to the returned label if this call is like the latest one, and that was counted: no lookup
/// is needed.
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

/// `now` becomes the time of the entry: either read, or for most calls estimated as the latest
/// return plus the timed interval. After a millisecond it jumps to `report_first`.
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
    // After a pause a new period begins: otherwise the calls' times in it would not be known.
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
    // Without an atomic exchange, which would cost as much as all the rest: an interrupt between
    // the first two instructions that outputs the call is seen by the third, and a later one finds
    // nothing to output.
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
    // The next counted period begins at its own entry.
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
