//! Threads whose work the program needs, though no wait on the critical path shows it.
//!
//! `pthread_join` makes no system call to wait if the thread has already ended, so nothing is recorded. What
//! the thread does before its end decides then. Not for child processes: how these are waited for is recorded.

use crate::facts::Facts;
use crate::timeline::WokenBy;
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// If a thread ended itself, and its process outlives it by at least this share of the thread's life, the thread
/// did not end because the process was ending.
const EARLY: f64 = 0.2;
/// A thread that others woke at least this often, not for a lock, gets its work from them.
const FED: usize = 5;
/// Others waited for the thread for at least this share of its CPU time.
const WAITED_FOR: f64 = 0.2;

/// Whether the program needs what a thread does: it ended by itself, early or after others had fed it, or
/// others waited for it.
pub(super) fn is_needed(facts: &Facts<'_>, id: TaskId) -> bool {
    let task = facts.timeline.task(id);
    let process = facts.processes.of(id);
    let of_process = facts.processes.get(process);
    if of_process.tasks.first() == Some(&id) {
        return false;
    }
    if let Some(exit) = task.exit.filter(|_| task.self_exit)
        && (of_process.end - exit).share_of(exit - task.birth) >= EARLY
    {
        return true;
    }
    let locks = facts.locks.waits.iter().filter(|wait| wait.process == process);
    let for_locks: BTreeSet<(TaskId, Ns)> = locks.map(|wait| (wait.waiter, wait.start)).collect();
    let (mut fed, mut waited_for) = (0, Ns::ZERO);
    for block in facts.waits_of(process) {
        let WokenBy::Task(waker) = block.woken_by else { continue };
        if for_locks.contains(&(block.task, block.start)) || facts.processes.of(waker) != process {
            continue;
        }
        if block.task == id && waker != id {
            fed += 1;
        } else if block.task != id && waker == id {
            waited_for += block.end - block.start;
        }
    }
    let ended = task.self_exit && task.exit.is_some();
    ended && fed >= FED || waited_for.share_of(task.on_cpu()) >= WAITED_FOR
}
