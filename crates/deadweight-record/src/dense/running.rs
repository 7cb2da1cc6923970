//! Which task runs, and its entry in the table of tasks: the beginning of each program.
//!
//! Not for what is done with the entry: that is `programs`.

use super::assembler::{If, Label, Op, Program, R};
use super::layout::entry;
use super::programs::{CONTEXT, STACK, TASK, Tables, at, look_up, whole};

/// `bpf_get_current_pid_tgid`, of `enum bpf_func_id`.
const CURRENT: i32 = 14;
/// The number of the task that runs, until its entry is found.
const WHO: R = R(7);

/// [`WHO`] becomes the number of the task that runs.
pub(super) fn who_is_here(p: &mut Program) {
    p.call(CURRENT);
    p.copy_32(WHO, R(0));
}

/// The same for a task at its call's entry or return: asked once after each switch, since that is a call in the kernel.
pub(super) fn who_calls(p: &mut Program, tables: Tables) {
    let (unknown, known) = (p.label(), p.label());
    let slot = R(8);
    p.with(Op::Set, CONTEXT, R(1));
    running_here(p, tables, slot, unknown);
    p.load_32(WHO, slot, 0);
    p.jump_if(WHO, If::Different, 0, known);
    who_is_here(p);
    p.store_32(slot, 0, WHO);
    p.jump(known);
    p.here(unknown);
    p.set_32(WHO, 0);
    p.here(known);
}

/// The CPU turns to another task, or the one that runs may get another number (by `execve` in a thread): it will be
/// asked. Register 8 is lost.
pub(super) fn ask_again(p: &mut Program, tables: Tables) {
    let unknown = p.label();
    running_here(p, tables, R(8), unknown);
    p.put_32(R(8), 0, 0);
    p.here(unknown);
}

/// `slot` becomes this CPU's place in the table of who runs.
fn running_here(p: &mut Program, tables: Tables, slot: R, none: Label) {
    p.put_32(STACK, -4, 0);
    look_up(p, tables.running);
    p.jump_if(R(0), If::Equal, 0, none);
    p.with(Op::Set, slot, R(0));
}

/// [`TASK`] becomes the entry of [`WHO`]; `not` if it has none.
pub(super) fn find_task(p: &mut Program, tables: Tables, not: Label) {
    p.jump_if(WHO, If::Equal, 0, not);
    p.with(Op::Set, R(1), WHO);
    p.by(Op::And, R(1), whole(entry::TASKS) - 1);
    p.store_32(STACK, -4, R(1));
    look_up(p, tables.tasks);
    p.jump_if(R(0), If::Equal, 0, not);
    p.with(Op::Set, TASK, R(0));
    p.load_32(R(1), TASK, at(entry::TASK));
    p.jump_if_both(R(1), If::Different, WHO, not);
}
