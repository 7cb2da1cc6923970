//! Waits of a language's idle threads: which task had the work in the meantime.
//!
//! Goroutines move between threads. Go's `sysmon` sleeps in its own loop; when a thread has been inside a
//! system call for long, `sysmon` wakes an idle thread to run the goroutines. Or an idle thread wakes by
//! its own time-out and takes them over. Neither waited for a clock: until then another thread had the
//! work. Other wake-ups are left alone: a waker explains the wait by itself (`path`).

use super::{Run, Timeline, WokenBy};
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use deadweight_trace::ids::{StackId, TaskId, Tid};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// Functions that are only on the stack of a watchdog's own thread.
const WATCHDOGS: [&str; 1] = ["runtime.sysmon"];

/// A thread that loses its work gives up its CPU within this time: it only looks for other work first.
const LAST_LOOK: Ns = Ns(200_000);

/// If a watchdog or an idle thread's time-out ended a wait, charges that wait to the task that had the work
/// in the meantime, if there was one.
pub(super) fn past_idle_threads(timeline: &mut Timeline, symbols: &Symbols) {
    if !has_watchdog(symbols) {
        return;
    }
    let watch = watchdogs(timeline, symbols);
    let threads = timeline.tasks.iter().zip(&watch);
    let processes: BTreeSet<Tid> = threads.filter(|(_, w)| **w).map(|(t, _)| t.process).collect();
    for index in 0..timeline.blocks.len() {
        let block = timeline.blocks[index];
        let idle = matches!(block.waits_for, WaitsFor::Futex | WaitsFor::Poll);
        let worker = match block.woken_by {
            _ if watch[block.task.index()] => None,
            WokenBy::Task(by) if watch[by.index()] => {
                worker(timeline, block.task, (block.start, block.end), &watch)
            }
            WokenBy::Interrupt(Interrupt::Timer)
                if idle && processes.contains(&timeline.task(block.task).process) =>
            {
                let interval = (block.start, block.end);
                worker(timeline, block.task, interval, &watch).filter(|worker| {
                    // It took the work over, or woke for nothing.
                    gives_up(timeline, *worker, block.end)
                        || gives_up(timeline, block.task, block.end)
                })
            }
            _ => None,
        };
        if let Some(worker) = worker {
            let block = &mut timeline.blocks[index];
            block.woken_by = WokenBy::Task(worker);
            block.waker_call = None;
            block.inferred = true;
        }
    }
    for index in 0..timeline.tasks.len() {
        let child = &timeline.tasks[index];
        let Some(parent) = child.parent.filter(|p| watch[p.index()]) else { continue };
        // It was born because the other threads were busy, not because the watchdog had slept.
        let before = (timeline.task(parent).birth, child.birth);
        let worker = worker(timeline, TaskId::at(index), before, &watch);
        timeline.tasks[index].parent = worker.or(timeline.task(parent).parent);
    }
}

/// Whether a watchdog's function is anywhere in the recording.
pub(super) fn has_watchdog(symbols: &Symbols) -> bool {
    symbols.names.iter().any(|name| WATCHDOGS.contains(&name.as_str()))
}

/// By task: whether it is a watchdog, judged by the stack where it waits. Samples are no evidence: a thread
/// that a watchdog starts begins on a copy of its stack.
fn watchdogs(timeline: &Timeline, symbols: &Symbols) -> Vec<bool> {
    let watches = |name: &str| WATCHDOGS.contains(&name);
    let stacks: Vec<bool> = (0..symbols.stacks.len())
        .map(|stack| symbols.functions(StackId::at(stack)).any(watches))
        .collect();
    let mut found = vec![false; timeline.tasks.len()];
    for block in &timeline.blocks {
        found[block.task.index()] |= stacks.get(block.site.index()).copied().unwrap_or(false);
    }
    found
}

/// The task of the same process that had the work at the end of an interval in which `idle` had none: the
/// task that was last on a CPU, unless it waits for work itself.
pub(super) fn worker(
    timeline: &Timeline,
    idle: TaskId,
    (start, end): (Ns, Ns),
    watch: &[bool],
) -> Option<TaskId> {
    let process = timeline.task(idle).process;
    let works = |task: TaskId| {
        let entry = timeline.task(task);
        entry.own
            && entry.process == process
            && task != idle
            && !watch.get(task.index()).is_some_and(|w| *w)
    };
    let mut latest: Option<(Ns, TaskId)> = None;
    for held in &timeline.held {
        let after = held.partition_point(|h| h.start < end);
        let mut until = end;
        for entry in held[..after].iter().rev() {
            if let Some(task) = entry.task.filter(|t| works(*t)) {
                if latest.is_none_or(|(at, _)| until > at) {
                    latest = Some((until, task));
                }
                break;
            }
            until = entry.start;
            if until <= start {
                break;
            }
        }
    }
    latest.map(|(_, task)| task).filter(|task| is_busy(timeline, *task, end))
}

/// Whether a task works at that time, or waits for something other than work.
fn is_busy(timeline: &Timeline, task: TaskId, at: Ns) -> bool {
    let task = timeline.task(task);
    match task.span_at(at).map(|i| task.spans[i].run()) {
        Some(Run::OnCpu(_) | Run::Runnable) => true,
        Some(Run::Blocked(block)) => {
            let waits_for = timeline.blocks[block as usize].waits_for;
            !matches!(waits_for, WaitsFor::Futex | WaitsFor::Poll)
        }
        _ => false,
    }
}

/// Whether a task becomes idle soon after that time, or ends: its work went elsewhere.
fn gives_up(timeline: &Timeline, task: TaskId, at: Ns) -> bool {
    waits_soon(timeline, task, at) != Some(false)
}

/// Whether a task waits for work or a lock soon after that time; none if it ends before.
pub(super) fn waits_soon(timeline: &Timeline, task: TaskId, at: Ns) -> Option<bool> {
    let task = timeline.task(task);
    let first = task.span_at(at)?;
    let mut worked = Ns::ZERO;
    for (index, span) in task.spans.iter().enumerate().skip(first) {
        match span.run() {
            Run::OnCpu(_) => worked += task.span_end(index) - span.start.max(at),
            Run::Blocked(block) => {
                let waits_for = timeline.blocks[block as usize].waits_for;
                return Some(matches!(waits_for, WaitsFor::Futex | WaitsFor::Poll));
            }
            Run::Runnable | Run::Unrecorded => {}
        }
        if worked > LAST_LOOK {
            return Some(false);
        }
    }
    None
}
