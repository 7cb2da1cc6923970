//! Processes that another process of the program waits for.
//!
//! How long it waits is in the path.

use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::{Task, WokenBy};
use deadweight_trace::ids::{TaskId, Tid};
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// The processes that another one waits for: it reads what they write or writes what they read, was blocked
/// until they ended, or reaped them after they had ended.
pub(crate) fn processes(facts: &Facts<'_>) -> BTreeSet<ProcessId> {
    let mut waited = facts.call_groups.peers(|process| facts.processes.get(process).own);
    for block in &facts.timeline.blocks {
        if let (WaitsFor::Child, WokenBy::Task(task)) = (block.waits_for, block.woken_by) {
            waited.insert(facts.processes.of(task));
        }
    }
    let reaped = Reaped::gather(facts);
    for (index, task) in facts.timeline.tasks.iter().enumerate() {
        if task
            .parent
            .is_some_and(|parent| reaped.contains(facts.timeline.task(parent).process, task))
        {
            waited.insert(facts.processes.of(TaskId::at(index)));
        }
    }
    waited
}

/// Children that their parents reaped, by the parent's pid.
struct Reaped {
    /// With the child's pid.
    by_pid: BTreeSet<(Tid, i64)>,
    /// When a child was last reaped without a record of its pid.
    last_unknown: BTreeMap<Tid, Ns>,
}

impl Reaped {
    fn gather(facts: &Facts<'_>) -> Self {
        let number = |name| syscall::number(facts.trace.meta.arch, name);
        let (wait4, waitid) = (number("wait4"), number("waitid"));
        let mut reaped = Self { by_pid: BTreeSet::new(), last_unknown: BTreeMap::new() };
        for call in &facts.timeline.calls {
            let parent = facts.timeline.task(call.task).process;
            match call.ret() {
                Some(child) if child > 0 && Some(call.nr) == wait4 => {
                    reaped.by_pid.insert((parent, child));
                }
                Some(0) if Some(call.nr) == waitid => {
                    let last = reaped.last_unknown.entry(parent).or_default();
                    *last = call.end.max(*last);
                }
                _ => {}
            }
        }
        reaped
    }

    fn contains(&self, parent: Tid, child: &Task) -> bool {
        let before = |last: &Ns| child.exit.is_some_and(|exit| exit < *last);
        self.by_pid.contains(&(parent, child.process.0.into()))
            || self.last_unknown.get(&parent).is_some_and(before)
    }
}
