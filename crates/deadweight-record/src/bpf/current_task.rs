//! The current task, whether it is followed, and its entry in the task map: the beginning of each
//! program.
//!
//! Does not use the entry; see `calls` and `sched`.

use super::assembler::{AtomicOp, Cond, Instruction, Label, Op, Program, R};
use super::layout::task_entry;
use super::{CONTEXT, Maps, STACK, TASK, at, imm, lookup, prologue};

/// `bpf_get_current_pid_tgid`, of `enum bpf_func_id`.
const GET_CURRENT_PID_TGID: i32 = 14;
/// The current task's id, until its entry is found.
pub(super) const TID: R = R(7);
/// This CPU's slot in the map of running tasks, until then.
const RUNNING: R = R(8);
/// Tasks per word of the map of followed tasks, as a power of two.
const TASKS_PER_WORD_LOG2: i32 = 6;

/// [`TID`] becomes the current task's id.
pub(super) fn current_tid(p: &mut Program) {
    p.call(GET_CURRENT_PID_TGID);
    p.mov32_reg(TID, R(0));
}

/// [`TASK`] becomes the current task's entry at a system call; jumps to `not` if it has none. The
/// id is read once after each switch, because that is a helper call. A known id without an entry
/// (any more) proves nothing.
pub(super) fn calling_task(p: &mut Program, maps: Maps, not: Label) {
    let (ask, no_slot, found) = (p.label(), p.label(), p.label());
    running_slot(p, maps, no_slot);
    p.load_32(TID, RUNNING, 0);
    find_task(p, maps, ask);
    p.jump(found);
    p.bind(no_slot);
    p.exit();
    p.bind(ask);
    current_tid(p);
    find_task(p, maps, not);
    p.store_32(RUNNING, 0, TID);
    p.bind(found);
}

/// Forgets the CPU's current task: it switches, or its id may change (by `execve` in a thread).
/// Register 8 is lost.
pub(super) fn forget_current(p: &mut Program, maps: Maps) {
    let unknown = p.label();
    running_slot(p, maps, unknown);
    p.store32_imm(RUNNING, 0, 0);
    p.bind(unknown);
}

/// [`RUNNING`] becomes this CPU's slot in the map of running tasks.
fn running_slot(p: &mut Program, maps: Maps, none: Label) {
    p.store32_imm(STACK, -4, 0);
    lookup(p, maps.running);
    p.jump_if(R(0), Cond::Equal, 0, none);
    p.op_reg(Op::Mov, RUNNING, R(0));
}

/// [`TASK`] becomes the entry of [`TID`]; jumps to `not` if it has none.
pub(super) fn find_task(p: &mut Program, maps: Maps, not: Label) {
    p.jump_if(TID, Cond::Equal, 0, not);
    p.op_reg(Op::Mov, R(1), TID);
    p.op_imm(Op::And, R(1), imm(task_entry::TASKS) - 1);
    p.store_32(STACK, -4, R(1));
    lookup(p, maps.tasks);
    p.jump_if(R(0), Cond::Equal, 0, not);
    p.op_reg(Op::Mov, TASK, R(0));
    p.load_32(R(1), TASK, at(task_entry::TASK));
    p.jump_if_both(R(1), Cond::NotEqual, TID, not);
}

/// Jumps to `not` unless [`TID`] is followed.
pub(super) fn require_followed(p: &mut Program, maps: Maps, not: Label) {
    followed_bit(p, maps, TID, not);
    p.load(R(1), R(0), 0);
    p.op_reg(Op::And, R(1), R(2));
    p.jump_if(R(1), Cond::Equal, 0, not);
}

/// Register 0 becomes the address of the task's word in the map of followed tasks, and register 2
/// its bit.
fn followed_bit(p: &mut Program, maps: Maps, task: R, none: Label) {
    p.op_reg(Op::Mov, R(1), task);
    p.op_imm(Op::ShiftRight, R(1), TASKS_PER_WORD_LOG2);
    p.store_32(STACK, -4, R(1));
    lookup(p, maps.followed);
    p.jump_if(R(0), Cond::Equal, 0, none);
    p.op_reg(Op::Mov, R(1), task);
    p.op_imm(Op::And, R(1), (1 << TASKS_PER_WORD_LOG2) - 1);
    p.op_imm(Op::Mov, R(2), 1);
    p.op_reg(Op::ShiftLeft, R(2), R(1));
}

/// At `sched_process_fork`: the child is followed if its parent is. An earlier task with the same
/// id is forgotten. `pid_offset` is the offset of the id in `task_struct`.
pub(super) fn on_fork(maps: Maps, pid_offset: i16) -> Option<Vec<Instruction>> {
    /// The tracepoint's arguments are the parent and the child.
    const CHILD: i16 = 8;
    let mut p = prologue();
    let (not, end) = (p.label(), p.label());
    let child = R(8);
    current_tid(&mut p);
    p.load(R(1), CONTEXT, CHILD);
    p.load_32(child, R(1), pid_offset);
    require_followed(&mut p, maps, not);
    followed_bit(&mut p, maps, child, end);
    p.atomic(AtomicOp::Or, R(0), 0, R(2));
    p.jump(end);
    p.bind(not);
    followed_bit(&mut p, maps, child, end);
    p.op_imm(Op::Xor, R(2), -1);
    p.atomic(AtomicOp::And, R(0), 0, R(2));
    p.bind(end);
    p.exit();
    p.finish()
}
