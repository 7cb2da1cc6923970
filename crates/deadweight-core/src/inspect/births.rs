//! Threads by how they were born: which calls started them, and from where.

use super::started::LOOP;
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::{CallSite, Weights};
use crate::facts::processes::ProcessId;
use crate::timeline::Task;
use crate::timeline::births::STARTERS;
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Calls that start a thread or a copy of the process.
pub(crate) fn starts_threads(name: &str) -> bool {
    STARTERS.contains(&name)
}

/// The threads of a process, without its first task.
pub(crate) fn threads<'f>(
    facts: &'f Facts<'_>,
    process: ProcessId,
) -> impl Iterator<Item = (TaskId, &'f Task)> {
    let tasks = facts.processes.get(process).tasks.iter().skip(1);
    tasks.map(|id| (*id, facts.timeline.task(*id)))
}

/// Where these threads were started, as far as the stacks of those calls were taken.
pub(crate) fn sites_of(facts: &Facts<'_>, threads: &[TaskId]) -> Weights {
    let mut calls = BTreeMap::new();
    for (index, call) in facts.timeline.calls.iter().enumerate() {
        let id = deadweight_trace::ids::CallId::at(index);
        let name = || facts.call_groups.id(id).map_or("", |id| facts.call_groups.get(id).name);
        if call.site != StackId(0) && starts_threads(name()) {
            calls.entry(call.task).or_insert_with(Vec::new).push((call.start, call.end, call.site));
        }
    }
    let mut places = Weights::new();
    for id in threads {
        let thread = facts.timeline.task(*id);
        let of_parent = thread.parent.and_then(|parent| calls.get(&parent));
        let site = of_parent.and_then(|calls| {
            let at =
                calls.partition_point(|(start, _, _)| *start <= thread.birth).checked_sub(1)?;
            (thread.birth <= calls[at].1).then_some(calls[at].2)
        });
        if let Some(site) = site {
            let place = places.entry(CallSite::Stack(site)).or_default();
            (place.count, place.amount) = (place.count + 1, place.amount + 1);
        }
    }
    places
}

/// A fork that takes longer copies many page tables: 1 GiB has 2 MiB of them, which takes some milliseconds.
const SLOW_FORK: Ns = Ns(1_000_000);

/// How long the forks of a process took on average, if long. `vfork`, threads and `posix_spawn` share its memory.
pub(crate) fn slow_fork(facts: &Facts<'_>, parent: ProcessId) -> Option<Ns> {
    const SHARES_MEMORY: u64 = 0x100;
    let copies = |group: &CallGroup| match group.name {
        "fork" => true,
        "clone" => group.questions.iter().all(|args| args[0] & SHARES_MEMORY == 0),
        _ => false,
    };
    let groups = facts.call_groups.of_process(parent).map(|(_, group)| group);
    let (calls, busy) = groups
        .filter(|group| copies(group))
        .fold((0, Ns::ZERO), |(calls, busy), group| (calls + group.calls, busy + group.busy));
    let typical = Ns(busy.0 / calls.max(1));
    (calls >= LOOP as u64 && typical >= SLOW_FORK).then_some(typical)
}
