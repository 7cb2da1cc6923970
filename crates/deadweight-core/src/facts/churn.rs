//! Memory that a process gave back to the kernel and took again: which page faults it caused.
//!
//! Exact: the ranges are in the trace (`munmap`, a shrinking `brk`, `madvise`), and so is the
//! address of every fault. A page's first fault is never churn, whatever happens to it later.

use crate::facts::processes::{ProcessId, Processes};
use crate::timeline::{Call, Timeline, Within};
use deadweight_trace::Trace;
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// `MADV_DONTNEED`, `MADV_FREE`: the pages' content may go. From the kernel's uapi headers.
const GIVES_BACK: [u64; 2] = [4, 8];
/// `MAP_ANONYMOUS` of `mmap`'s flags. From the kernel's uapi headers.
const MAP_ANONYMOUS: u64 = 0x20;
/// Ranges remembered per process; more means that the memory is scattered anyway.
const RANGES: usize = 65_536;

/// Memory that was given back and taken again.
#[derive(Debug, Default)]
pub(crate) struct Churn {
    of: BTreeMap<ProcessId, Tally>,
    again: Vec<bool>,
}

/// The churn of one process. Releases count once memory is taken again after them, so that memory given
/// back at the end does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How often memory was given back.
    pub(crate) releases: u64,
    /// How much in all.
    pub(crate) bytes: u64,
    /// Faults on pages that had been given back before.
    pub(crate) faults: u64,
    /// Releases, and their bytes, since memory was last taken again.
    since: (u64, u64),
    /// How often a mapped file was unmapped: the same calls, for another reason.
    pub(crate) files: u64,
}

#[derive(Default)]
struct Memory {
    released: BTreeMap<u64, u64>,
    /// Mapped files, start to end: giving them back is closing a file, not giving memory back.
    files: BTreeMap<u64, u64>,
    end_of_heap: u64,
}

impl Churn {
    /// Replays memory calls and faults in order of time.
    pub(crate) fn gather(trace: &Trace, timeline: &Timeline, processes: &Processes) -> Self {
        let arch = trace.meta.arch;
        let nrs = ["mmap", "munmap", "brk", "madvise"].map(|name| syscall::number(arch, name));
        let calls: Vec<&Call> =
            timeline.calls.iter().filter(|c| nrs.contains(&Some(c.nr))).collect();
        let mut found = Self { of: BTreeMap::new(), again: vec![false; timeline.faults.len()] };
        if calls.is_empty() {
            return found;
        }
        let mut memories: BTreeMap<ProcessId, Memory> = BTreeMap::new();
        let mut next = 0;
        for (at, process, fault) in fault_times(timeline, processes) {
            while let Some(call) = calls.get(next).filter(|c| c.end <= at) {
                found.call(timeline, processes, call, syscall::name(arch, call.nr), &mut memories);
                next += 1;
            }
            let addr = timeline.faults[fault].addr.0;
            let Some(memory) = memories.get(&process) else { continue };
            let inside = memory.released.range(..=addr).next_back().is_some_and(|r| addr < *r.1);
            if inside {
                found.again[fault] = true;
                found.of.entry(process).or_default().take_again();
            }
        }
        found
    }

    fn call(
        &mut self,
        timeline: &Timeline,
        processes: &Processes,
        call: &Call,
        name: Option<&str>,
        memories: &mut BTreeMap<ProcessId, Memory>,
    ) {
        let process = processes.of(call.task);
        let memory = memories.entry(process).or_default();
        if processes.get(process).starting(call.start) {
            memory.released.clear();
            memory.files.clear();
        }
        let args = timeline.args(call);
        let done = call.ret() == Some(0);
        let range = match name {
            Some("mmap") => {
                let at = call.ret().and_then(|r| u64::try_from(r).ok());
                memory.map(at, args[0], args[2]);
                None
            }
            Some("munmap") if done && memory.files.remove(&args[0]).is_some() => {
                self.of.entry(process).or_default().files += 1;
                None
            }
            Some("munmap") if done => Some((args[0], args[0].saturating_add(args[1]))),
            Some("madvise") if done && GIVES_BACK.contains(&args[2]) => {
                Some((args[0], args[0].saturating_add(args[1])))
            }
            Some("brk") => {
                let end = call.ret().and_then(|r| u64::try_from(r).ok()).unwrap_or(0);
                let before = std::mem::replace(&mut memory.end_of_heap, end);
                (end < before && end > 0).then_some((end, before))
            }
            _ => None,
        };
        let Some((from, to)) = range.filter(|_| !processes.get(process).starting(call.start))
        else {
            return;
        };
        let tally = self.of.entry(process).or_default();
        tally.since.0 += 1;
        tally.since.1 = tally.since.1.saturating_add(to - from);
        memory.release(from, to);
    }

    /// Whether this fault is on a page that its process had given back.
    pub(crate) fn again(&self, fault: u32) -> bool {
        self.again.get(fault as usize).copied().unwrap_or(false)
    }

    /// The churn of a process.
    pub(crate) fn of(&self, process: ProcessId) -> Tally {
        self.of.get(&process).cloned().unwrap_or_default()
    }
}

impl Tally {
    fn take_again(&mut self) {
        self.faults += 1;
        let (releases, bytes) = std::mem::take(&mut self.since);
        self.releases += releases;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl Memory {
    /// Notes whether what is now mapped at this address is a file.
    fn map(&mut self, at: Option<u64>, len: u64, flags: u64) {
        let Some(at) = at else { return };
        if flags & MAP_ANONYMOUS != 0 {
            self.files.remove(&at);
        } else if self.files.len() < RANGES {
            self.files.insert(at, at.saturating_add(len));
        }
    }

    /// Adds a range, joining those that it touches.
    fn release(&mut self, mut from: u64, mut to: u64) {
        if from >= to || self.released.len() >= RANGES {
            return;
        }
        while let Some((start, end)) =
            self.released.range(..=to).next_back().map(|(s, e)| (*s, *e)).filter(|r| r.1 >= from)
        {
            self.released.remove(&start);
            from = from.min(start);
            to = to.max(end);
        }
        self.released.insert(from, to);
    }
}

/// All faults in order of time, with their process.
pub(crate) fn fault_times(
    timeline: &Timeline,
    processes: &Processes,
) -> Vec<(Ns, ProcessId, usize)> {
    let mut times = Vec::with_capacity(timeline.faults.len());
    for (index, task) in timeline.tasks.iter().enumerate() {
        let process = processes.of(deadweight_trace::ids::TaskId::at(index));
        let mut latest = None;
        for span in &task.spans {
            if let Within::Fault(fault) = span.within {
                if latest != Some(fault) {
                    times.push((span.start, process, fault as usize));
                }
                latest = Some(fault);
            }
        }
    }
    times.sort_unstable();
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_ranges_join() {
        let mut memory = Memory::default();
        memory.release(10, 20);
        memory.release(30, 40);
        assert_eq!(memory.released.len(), 2);
        memory.release(20, 30);
        assert_eq!(memory.released, BTreeMap::from([(10, 40)]));
        memory.release(5, 50);
        assert_eq!(memory.released, BTreeMap::from([(5, 50)]));
        memory.release(60, 60);
        assert_eq!(memory.released.len(), 1);
    }
}
