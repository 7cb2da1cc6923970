//! The longest waits on the path, each with the task that ended it: the arrows of the timeline.

use super::Wait;
use super::cells::{call, cut, ended_by};
use super::lanes::Chosen;
use deadweight_core::OneRun;
use deadweight_core::timeline::{Within, WokenBy};

/// The most waits that are listed.
const WAITS: usize = 120;

/// The longest waits, in order of time; and the number and the time of the others.
pub(super) fn longest(run: &OneRun<'_, '_>, chosen: &Chosen) -> (Vec<Wait>, (usize, u64)) {
    let (path, timeline) = (run.path(), run.timeline());
    let joins = path.joins(timeline);
    let filled = joins.iter().map(|join| (join.start, join.end, join.block, true));
    let outside = path.waits(timeline).map(|(start, end, _, block)| (start, end, block, false));
    let mut all: Vec<_> = filled.chain(outside).filter(|(start, end, ..)| start < end).collect();
    all.sort_by_key(|(start, end, block, _)| (std::cmp::Reverse(*end - *start), *block));
    let others = all.split_off(all.len().min(WAITS));
    all.sort_by_key(|(start, _, block, _)| (*start, *block));
    let waits = all.into_iter().filter_map(|(start, end, index, filled)| {
        let block = timeline.blocks.get(index as usize)?;
        let waker = match block.woken_by {
            WokenBy::Task(task) => Some(task),
            _ => None,
        };
        let within = block.call.map_or(String::new(), |id| call(run, Within::Syscall(id)));
        let what = cut(&run.waits_for(block));
        Some(Wait {
            start: (start - path.subject.start).0,
            end: (end - path.subject.start).0,
            filled,
            tid: timeline.task(block.task).tid.0,
            name: cut(&run.process_name(block.task)),
            lane: chosen.lane(block.task),
            what: if within.is_empty() { what } else { format!("{what} ({within})") },
            by: ended_by(run, block.woken_by, block.inferred),
            waker: waker.map(|task| timeline.task(task).tid.0),
            waker_lane: waker.and_then(|task| chosen.lane(task)),
            inferred: block.inferred,
        })
    });
    let time = others.iter().map(|(start, end, ..)| (*end - *start).0).sum();
    (waits.collect(), (others.len(), time))
}
