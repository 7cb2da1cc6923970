//! Which image is mapped where in each process, from the recorded mappings.
//!
//! Unmapping is not recorded: a later mapping over the same range replaces the earlier one. Does not read the images;
//! see `images`.

use deadweight_trace::hash::ByFast;
use deadweight_trace::ids::{ImageId, Tid};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Ranges kept per process: a program that maps code without end (a JIT) must not use up our memory.
const MOST_RANGES: usize = 20_000;

/// Ended processes whose address spaces are kept: a process's first task may end before others.
const MOST_ENDED: usize = 256;

/// A mapped range of an image.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// First address.
    pub(crate) start: u64,
    /// Address behind the last one.
    pub(crate) end: u64,
    /// What is mapped.
    pub(crate) image: ImageId,
    /// Live address minus the file's address, modulo 2^64.
    pub(crate) bias: u64,
}

/// The executable ranges of one process, in order of address, none overlapping.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    ranges: Vec<Range>,
}

impl Space {
    /// The range that holds `address`.
    pub(crate) fn find(&self, address: u64) -> Option<&Range> {
        let after = self.ranges.partition_point(|range| range.start <= address);
        self.ranges[..after].last().filter(|range| address < range.end)
    }

    /// The parts of ranges that lie in `start..end`.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = Range> {
        let first = self.ranges.partition_point(|range| range.end <= start);
        let behind = self.ranges.partition_point(|range| range.start < end).max(first);
        self.ranges[first..behind].iter().map(move |r| Range {
            start: r.start.max(start),
            end: r.end.min(end),
            ..*r
        })
    }

    /// Puts `range` in place of whatever it overlaps.
    fn map(&mut self, range: Range) {
        self.unmap(range.start, range.end);
        if self.ranges.len() < MOST_RANGES && range.start < range.end {
            let at = self.ranges.partition_point(|other| other.start < range.start);
            self.ranges.insert(at, range);
        }
    }

    /// Cuts `start..end` out of the ranges.
    fn unmap(&mut self, start: u64, end: u64) {
        let first = self.ranges.partition_point(|range| range.end <= start);
        let behind = self.ranges.partition_point(|range| range.start < end);
        if first >= behind {
            return;
        }
        let left = Range { end: start, ..self.ranges[first] };
        let right = Range { start: end, ..self.ranges[behind - 1] };
        let kept = [left, right].into_iter().filter(|range| range.start < range.end);
        self.ranges.splice(first..behind, kept);
    }
}

/// All processes' spaces. Threads share their process's.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    of_process: HashMap<Tid, Arc<Space>, ByFast>,
    process_of: HashMap<Tid, Tid, ByFast>,
    /// Processes whose first task has ended, oldest first.
    ended: VecDeque<Tid>,
}

impl Spaces {
    /// The process of `task`: as the event says (`stated`), else as recorded when the task was created.
    pub(crate) fn process(&self, stated: Tid, task: Tid) -> Tid {
        if stated == Tid(0) { self.process_of.get(&task).copied().unwrap_or(task) } else { stated }
    }

    /// The space of a process.
    pub(crate) fn of(&self, process: Tid) -> Option<Arc<Space>> {
        self.of_process.get(&process).cloned()
    }

    /// `child` was created in `process`; a new process starts with a copy of its parent's space.
    pub(crate) fn fork(&mut self, parent: Tid, child: Tid, process: Tid) {
        self.process_of.insert(child, process);
        if process == child {
            // The process id is in use again.
            self.ended.retain(|ended| *ended != process);
            self.of_process.remove(&process);
        }
        if process != parent
            && let Some(space) = self.of(parent)
        {
            self.of_process.insert(process, space);
        }
    }

    /// The process executes another program.
    pub(crate) fn exec(&mut self, process: Tid) {
        self.of_process.remove(&process);
    }

    /// The task has ended. Other tasks of its process may run longer. Returns a process that can be forgotten.
    pub(crate) fn ended(&mut self, task: Tid) -> Option<Tid> {
        self.process_of.remove(&task);
        if self.of_process.contains_key(&task) && !self.ended.contains(&task) {
            self.ended.push_back(task);
        }
        let oldest = if self.ended.len() > MOST_ENDED { self.ended.pop_front() } else { None }?;
        self.of_process.remove(&oldest);
        Some(oldest)
    }

    /// An image is mapped into a process.
    pub(crate) fn map(&mut self, process: Tid, range: Range) {
        Arc::make_mut(self.of_process.entry(process).or_default()).map(range);
    }

    /// Something without code is mapped there now.
    pub(crate) fn unmap(&mut self, process: Tid, start: u64, end: u64) {
        if let Some(space) = self.of_process.get_mut(&process)
            && space.ranges.iter().any(|range| range.start < end && start < range.end)
        {
            Arc::make_mut(space).unmap(start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64, image: usize) -> Range {
        Range { start, end, image: ImageId::at(image), bias: 0 }
    }

    fn shown(space: &Space) -> Vec<(u64, u64, u32)> {
        space.ranges.iter().map(|r| (r.start, r.end, r.image.0)).collect()
    }

    #[test]
    fn a_later_mapping_cuts_earlier_ones() {
        let mut space = Space::default();
        space.map(range(10, 50, 1));
        space.map(range(60, 90, 2));
        space.map(range(20, 30, 3));
        assert_eq!(shown(&space), [(10, 20, 1), (20, 30, 3), (30, 50, 1), (60, 90, 2)]);
        space.map(range(25, 70, 4));
        assert_eq!(shown(&space), [(10, 20, 1), (20, 25, 3), (25, 70, 4), (70, 90, 2)]);
        space.unmap(0, 100);
        assert_eq!(shown(&space), []);
    }

    #[test]
    fn find_is_exact_at_both_ends() {
        let mut space = Space::default();
        space.map(range(10, 20, 1));
        assert!(space.find(9).is_none());
        assert!(space.find(10).is_some());
        assert!(space.find(19).is_some());
        assert!(space.find(20).is_none());
    }

    #[test]
    fn a_child_gets_a_copy_and_exec_clears() {
        let mut spaces = Spaces::default();
        spaces.map(Tid(1), range(10, 20, 1));
        spaces.fork(Tid(1), Tid(2), Tid(2));
        spaces.fork(Tid(1), Tid(3), Tid(1));
        spaces.map(Tid(2), range(15, 20, 7));
        assert_eq!(spaces.of(Tid(1)).and_then(|s| s.find(16).map(|r| r.image.0)), Some(1));
        assert_eq!(spaces.of(Tid(2)).and_then(|s| s.find(16).map(|r| r.image.0)), Some(7));
        assert_eq!(spaces.process(Tid(0), Tid(3)), Tid(1));
        spaces.exec(Tid(2));
        assert!(spaces.of(Tid(2)).is_none());
    }

    #[test]
    fn an_ended_process_is_kept_for_its_threads_but_not_forever() {
        let mut spaces = Spaces::default();
        spaces.map(Tid(1), range(10, 20, 1));
        spaces.ended(Tid(1));
        assert!(spaces.of(Tid(1)).is_some());
        for process in (2..1_000).map(Tid) {
            spaces.fork(Tid(0), process, process);
            spaces.map(process, range(10, 20, 1));
            spaces.ended(process);
        }
        assert!(spaces.of(Tid(1)).is_none());
        assert_eq!(spaces.of_process.len(), MOST_ENDED);
        spaces.fork(Tid(0), Tid(999), Tid(999));
        assert!(spaces.of(Tid(999)).is_none(), "a new process has nothing of an old one");
    }
}
