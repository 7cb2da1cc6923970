//! Page faults for several classes: when a task met them, and the cost of unmapping the pages.
//!
//! Judging them is left to the classes.

use super::Inspection;
use crate::account::{AccountId, Detail, EXIT};
use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::timeline::Within;
use deadweight_report::account::SYSTEM_CALLS;
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;

/// The part of a fault's entry and exit, in ns, that shows as the program's own time.
pub(crate) const ENTRY_AND_EXIT: u64 = 150;

/// The page faults of a task, each with the time of its first span.
pub(crate) fn faults_of(facts: &Facts<'_>, task: TaskId) -> impl Iterator<Item = (Ns, u32)> {
    let mut latest = None;
    facts.timeline.tasks[task.index()].spans.iter().filter_map(move |span| match span.within() {
        Within::Fault(fault) if latest != Some(fault) => {
            latest = Some(fault);
            Some((span.start, fault))
        }
        _ => None,
    })
}

/// The cost of unmapping the pages of so many faults: their part of the process' end, and of calls that
/// give memory back before it.
pub(crate) fn taken_down(found: &Inspection<'_, '_>, process: ProcessId, faults: u64) -> Ns {
    let facts = found.facts;
    let tasks = &facts.processes.get(process).tasks;
    let all: usize = tasks.iter().map(|task| faults_of(facts, *task).count()).sum();
    let part = faults as f64 / (all.max(1) as f64);
    let end: Ns = found.wall.of_process(EXIT, process).map(|e| e.ns).sum();
    let accounts = [SYSTEM_CALLS, AccountId::of_class("zeroing")];
    let calls = accounts.into_iter().flat_map(|a| found.wall.of_process(a, process)).filter(
        |e| matches!(e.detail, Detail::Calls(group) if gives_back(facts.call_groups.get(group).name)),
    );
    end.part(part) + calls.map(|e| e.ns).sum()
}

/// Whether a call of this name gives memory back.
pub(crate) fn gives_back(call: &str) -> bool {
    matches!(call, "munmap" | "brk" | "madvise")
}
