//! What a run's subject did, counted: for comparisons that no clock disturbs.
//!
//! Not for the calls of one function; see `counts`.

use crate::facts::Facts;
use crate::facts::call_groups::{CallGroup, READS, WRITES};
use crate::inspect::page_faults::faults_of;
use deadweight_report::report::Count;
use deadweight_trace::ids::TaskId;
use std::collections::BTreeMap;

/// The totals of the tasks that `own` marks. Nothing where the rung records only samples.
pub(crate) fn totals(facts: &Facts<'_>, own: &[bool]) -> Vec<Count> {
    let meta = &facts.trace.meta;
    if meta.has_only_samples() {
        return Vec::new();
    }
    let timeline = facts.timeline;
    let exact = meta.decimated == 0 && meta.records_both_ends() && timeline.lost == 0;
    let is_own = |task: usize| own.get(task).copied().unwrap_or(false);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |name: &str, value: u64| {
        if value > 0 {
            let known = counts.entry(name.to_owned()).or_default();
            *known = known.saturating_add(value);
        }
    };
    for group in groups(facts, own) {
        add("calls", group.calls);
        add(&format!("calls/{}", group.name), group.calls);
        if group.returns_bytes && READS.contains(&group.name) {
            add("bytes-read", group.bytes);
        }
        if group.returns_bytes && WRITES.contains(&group.name) {
            add("bytes-written", group.bytes);
        }
    }
    let tasks = timeline.tasks.iter().enumerate().filter(|(index, _)| is_own(*index));
    for (index, task) in tasks {
        let process = task.tid == task.process;
        add(if process { "processes" } else { "threads" }, 1);
        add("execs", u64::try_from(task.execs.len()).unwrap_or(u64::MAX));
        let [faults, major] = faults(facts, TaskId::at(index));
        add("page-faults", faults);
        add("major-faults", major);
    }
    let count = |(name, value)| Count { name, value, low: value, high: value, exact };
    counts.into_iter().map(count).collect()
}

/// The call groups of processes with a task that `own` marks.
fn groups<'f>(facts: &'f Facts<'_>, own: &[bool]) -> impl Iterator<Item = &'f CallGroup> {
    let tasks = facts.timeline.tasks.iter().enumerate();
    let pids: std::collections::BTreeSet<_> = tasks
        .filter(|(index, _)| own.get(*index).copied().unwrap_or(false))
        .map(|(_, task)| task.process)
        .collect();
    let of = move |group: &&CallGroup| pids.contains(&facts.processes.get(group.process).pid);
    facts.call_groups.all.iter().filter(of)
}

/// Page faults of a task, and how many of them read from storage.
fn faults(facts: &Facts<'_>, task: TaskId) -> [u64; 2] {
    let is_major = |fault: u32| facts.timeline.faults[fault as usize].major;
    faults_of(facts, task)
        .fold([0, 0], |[all, major], (_, fault)| [all + 1, major + u64::from(is_major(fault))])
}
