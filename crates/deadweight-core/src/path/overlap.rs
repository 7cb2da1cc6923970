//! Waits that ended outside the subject, and what the subject did meanwhile.
//!
//! If some own task was on a CPU all the time, removing the wait may save nothing; or all of it, if that
//! work is needless. So the saving is a range.

use crate::path::Path;
use crate::timeline::Timeline;
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// A wait on the path that ended outside the subject.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// From when.
    pub start: Ns,
    /// Until when.
    pub end: Ns,
    /// The waiting task.
    pub task: TaskId,
    /// The wait: an index into `Timeline::blocks`.
    pub block: u32,
    /// How much of it some own task was on a CPU: a saving lies between the rest and all.
    pub busy: Ns,
    /// The task that was on a CPU for most of that.
    pub by: Option<TaskId>,
}

/// The waits on the path, in order of time.
#[must_use]
pub fn overlaps(timeline: &Timeline, path: &Path) -> Vec<Overlap> {
    path.waits(timeline)
        .map(|(start, end, task, block)| {
            let (busy, by) = busy(timeline, path, start, end);
            Overlap { start, end, task, block, busy, by }
        })
        .collect()
}

/// For how much of `from..to` an own task was on a CPU, and which task was there longest.
fn busy(timeline: &Timeline, path: &Path, from: Ns, to: Ns) -> (Ns, Option<TaskId>) {
    let mut parts = Vec::new();
    let mut each: BTreeMap<TaskId, Ns> = BTreeMap::new();
    for cpu in 0..timeline.held.len() {
        let cpu = deadweight_trace::ids::Cpu(u16::try_from(cpu).unwrap_or(u16::MAX));
        for (start, end, who) in timeline.holders(cpu, from, to) {
            if let Some(task) = who.filter(|t| path.subject.owns(*t)) {
                parts.push((start, end));
                *each.entry(task).or_default() += end - start;
            }
        }
    }
    parts.sort();
    let mut reached = from;
    let mut busy = Ns::ZERO;
    for (start, end) in parts {
        busy += end - start.max(reached);
        reached = reached.max(end);
    }
    let longest = each.iter().max_by_key(|(task, time)| (**time, std::cmp::Reverse(**task)));
    (busy, longest.map(|(task, _)| *task))
}
