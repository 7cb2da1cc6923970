//! Which task runs, whether it is followed, and its entry in the table of tasks: the beginning of each program.
//!
//! Not for what is done with the entry: that is `calls` and `switches`.

use super::assembler::{Bits, If, Instruction, Label, Op, Program, R};
use super::layout::entry;
use super::{CONTEXT, STACK, TASK, Tables, at, begin, look_up, whole};

/// `bpf_get_current_pid_tgid`, of `enum bpf_func_id`.
const CURRENT: i32 = 14;
/// The number of the task that runs, until its entry is found.
pub(super) const WHO: R = R(7);
/// This CPU's place in the table of who runs, until then.
const HERE: R = R(8);
/// Tasks in a word of the table of those that are followed, as a power of two.
const TASKS_IN_WORD: i32 = 6;

/// [`WHO`] becomes the number of the task that runs.
pub(super) fn who_is_here(p: &mut Program) {
    p.call(CURRENT);
    p.copy_32(WHO, R(0));
}

/// [`TASK`] becomes the entry of the task at its call's entry or return, or `not` if it has none. Who has one is asked
/// for once after each switch, since that is a call in the kernel. What was known and has no entry (any more) proves nothing.
pub(super) fn who_calls(p: &mut Program, tables: Tables, not: Label) {
    let (ask, nowhere, found) = (p.label(), p.label(), p.label());
    running_here(p, tables, nowhere);
    p.load_32(WHO, HERE, 0);
    find_task(p, tables, ask);
    p.jump(found);
    p.here(nowhere);
    p.exit();
    p.here(ask);
    who_is_here(p);
    find_task(p, tables, not);
    p.store_32(HERE, 0, WHO);
    p.here(found);
}

/// The CPU turns to another task, or the one that runs may get another number (by `execve` in a thread): it will be
/// asked. Register 8 is lost.
pub(super) fn ask_again(p: &mut Program, tables: Tables) {
    let unknown = p.label();
    running_here(p, tables, unknown);
    p.put_32(HERE, 0, 0);
    p.here(unknown);
}

/// [`HERE`] becomes this CPU's place in the table of who runs.
fn running_here(p: &mut Program, tables: Tables, none: Label) {
    p.put_32(STACK, -4, 0);
    look_up(p, tables.running);
    p.jump_if(R(0), If::Equal, 0, none);
    p.with(Op::Set, HERE, R(0));
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

/// Goes on at `not` if [`WHO`] is not followed.
pub(super) fn is_followed(p: &mut Program, tables: Tables, not: Label) {
    followed(p, tables, WHO, not);
    p.load(R(1), R(0), 0);
    p.with(Op::And, R(1), R(2));
    p.jump_if(R(1), If::Equal, 0, not);
}

/// Register 0 becomes the word in the table of those that are followed that tells of this task, and register 2 its bit.
fn followed(p: &mut Program, tables: Tables, task: R, none: Label) {
    p.with(Op::Set, R(1), task);
    p.by(Op::ShiftRight, R(1), TASKS_IN_WORD);
    p.store_32(STACK, -4, R(1));
    look_up(p, tables.followed);
    p.jump_if(R(0), If::Equal, 0, none);
    p.with(Op::Set, R(1), task);
    p.by(Op::And, R(1), (1 << TASKS_IN_WORD) - 1);
    p.by(Op::Set, R(2), 1);
    p.with(Op::ShiftLeft, R(2), R(1));
}

/// At `sched_process_fork`: who is born is followed if its parent is, and whoever had that number before is forgotten.
/// A task's own number is so many bytes into it.
pub(super) fn giving_birth(tables: Tables, number: i16) -> Option<Vec<Instruction>> {
    /// The tracepoint's arguments: parent and child.
    const CHILD: i16 = 8;
    let mut p = begin();
    let (not, end) = (p.label(), p.label());
    let child = R(8);
    who_is_here(&mut p);
    p.load(R(1), CONTEXT, CHILD);
    p.load_32(child, R(1), number);
    is_followed(&mut p, tables, not);
    followed(&mut p, tables, child, end);
    p.undivided(Bits::Or, R(0), 0, R(2));
    p.jump(end);
    p.here(not);
    followed(&mut p, tables, child, end);
    p.by(Op::Xor, R(2), -1);
    p.undivided(Bits::And, R(0), 0, R(2));
    p.here(end);
    p.exit();
    p.finish()
}
