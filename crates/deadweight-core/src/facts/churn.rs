//! Memory that a process gave back to the kernel and took again: which page faults it caused.
//!
//! Exact: the ranges are in the trace (`munmap`, a shrinking `brk` or `mremap`, `madvise`), and so is the
//! address of every fault. A page's first fault is never churn, whatever happens to it later. Pages that
//! nobody had touched are not given back: a reserve around an aligned mapping is only trimmed. A page that is read
//! before it is written faults twice, as the kernel maps its page of zeros first: both are the price of taking it.

use crate::facts::processes::{ProcessId, Processes};
use crate::timeline::{Call, Task, Timeline, Within};
use deadweight_trace::Trace;
use deadweight_trace::ids::{CallId, TaskId};
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};

/// `MADV_DONTNEED`, `MADV_FREE`: the pages' content may go. From the kernel's uapi headers.
const GIVES_BACK: [u64; 2] = [4, 8];
/// `MAP_ANONYMOUS` of `mmap`'s flags. From the kernel's uapi headers.
pub(crate) const MAP_ANONYMOUS: u64 = 0x20;
/// The calls that are replayed; those that may copy the memory, for whatever a write faults again then.
const CALLS: [&str; 8] = ["mmap", "munmap", "mremap", "brk", "madvise", "fork", "clone", "clone3"];
/// Bytes of a page, at the least.
const PAGE: u64 = 4096;
/// Ranges remembered per process; more means that the memory is scattered anyway.
const RANGES: usize = 1 << 18;

/// Memory that was given back and taken again.
#[derive(Debug, Default)]
pub(crate) struct Churn {
    of: BTreeMap<ProcessId, Tally>,
    again: Vec<bool>,
    /// Faults in files that the program mapped, after its start.
    in_file: Vec<bool>,
    /// The calls that gave memory back which was taken again, and those that mapped such memory anew, in order.
    calls: Vec<CallId>,
    /// Those of them that took memory.
    taking: Vec<CallId>,
}

/// The churn of one process. Releases count once memory is taken again after them, so that memory given
/// back at the end does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How often memory was given back that had been touched.
    pub(crate) releases: u64,
    /// How much of it in all.
    pub(crate) bytes: u64,
    /// Faults on pages that had been given back before.
    pub(crate) faults: u64,
    /// Releases since memory was last taken again, and their bytes.
    since: (Vec<CallId>, u64),
    /// Calls that had cut off untouched parts of that memory.
    cuts: Vec<CallId>,
}

/// The memory of a program: an exec begins with a new one.
#[derive(Default)]
struct Memory {
    /// When its program was executed.
    exec: Ns,
    /// Pages that were touched and not given back since, and pages that were given back and not touched since.
    touched: Ranges,
    released: Ranges,
    /// Pages that were taken again by one fault.
    retaken: Ranges,
    /// Mappings that were made smaller in place: where they start, and by which call.
    cut: BTreeMap<u64, CallId>,
    /// Mapped files, start to end: giving them back is closing a file, not giving memory back.
    files: BTreeMap<u64, u64>,
    end_of_heap: u64,
}

impl Churn {
    /// Replays memory calls and faults in order of time.
    pub(crate) fn gather(trace: &Trace, timeline: &Timeline, processes: &Processes) -> Self {
        let arch = trace.meta.arch;
        let nrs = CALLS.map(|name| syscall::number(arch, name));
        let calls: Vec<(CallId, &Call)> = (0..)
            .map(CallId::at)
            .zip(&timeline.calls)
            .filter(|(_, call)| nrs.contains(&Some(call.nr)))
            .collect();
        let again = vec![false; timeline.faults.len()];
        let mut found = Self { in_file: again.clone(), again, ..Self::default() };
        if calls.is_empty() {
            return found;
        }
        let execs = execs(timeline, processes);
        let mut memories: BTreeMap<ProcessId, Memory> = BTreeMap::new();
        let mut next = 0;
        for (at, process, fault) in fault_times(timeline, processes) {
            while let Some((id, call)) = calls.get(next).filter(|(_, call)| call.end <= at) {
                let caller = processes.of(call.task);
                let memory = memory_at(&mut memories, &execs, caller, call.start);
                let name = syscall::name(arch, call.nr);
                if !processes.get(caller).starting(call.start) {
                    found.call(timeline, caller, (*id, call), name, memory);
                } else if name == Some("brk") {
                    memory.end_of_heap(call);
                }
                next += 1;
            }
            let memory = memory_at(&mut memories, &execs, process, at);
            let index = fault as usize;
            let page = timeline.faults[index].addr.0 / PAGE * PAGE;
            let end = page.saturating_add(PAGE);
            if memory.released.remove(page, end) > 0 {
                found.again[index] = true;
                memory.retaken.add(page, end);
                let releases = found.of.entry(process).or_default().take_again();
                found.calls.extend(releases);
            } else if memory.retaken.remove(page, end) > 0 {
                found.again[index] = true;
                found.of.entry(process).or_default().faults += 1;
            }
            memory.touched.add(page, end);
            found.in_file[index] = memory.is_file(page);
        }
        found.calls.sort_unstable();
        found
    }

    fn call(
        &mut self,
        timeline: &Timeline,
        process: ProcessId,
        (id, call): (CallId, &Call),
        name: Option<&str>,
        memory: &mut Memory,
    ) {
        let args = timeline.args(call);
        let range = (args[0], args[0].saturating_add(args[1]));
        let done = call.ret() == Some(0);
        let (released, taken) = match name {
            Some("mmap") => (None, memory.map(call, args)),
            Some("munmap") if done && memory.files.remove(&args[0]).is_some() => (None, None),
            Some("munmap") if done => (Some(range), None),
            Some("mremap") => (memory.cut(id, call, args), None),
            Some("madvise") if done && GIVES_BACK.contains(&args[2]) => (Some(range), None),
            Some("brk") => match memory.end_of_heap(call) {
                (before, end) if end < before => (Some((end, before)), None),
                (before, end) => (None, Some((before, end))),
            },
            Some("fork" | "clone" | "clone3") => {
                memory.retaken = Ranges::default();
                (None, None)
            }
            _ => (None, None),
        };
        if taken.is_some_and(|(from, to)| !memory.released.within(from, to).is_empty()) {
            self.calls.push(id);
            self.taking.push(id);
        }
        let bytes = released.map_or(0, |(from, to)| memory.release(from, to));
        if bytes > 0 {
            let since = &mut self.of.entry(process).or_default().since;
            since.0.push(id);
            since.1 = since.1.saturating_add(bytes);
            let cut = memory.cut.remove(&range.0).filter(|_| name == Some("munmap"));
            self.of.entry(process).or_default().cuts.extend(cut);
        }
    }

    /// The calls that gave memory back which was taken again, and those that mapped such memory anew, in order.
    pub(crate) fn calls(&self) -> &[CallId] {
        &self.calls
    }

    /// Those of the calls that mapped such memory anew.
    pub(crate) fn taking(&self) -> &[CallId] {
        &self.taking
    }

    /// Whether this fault is on a page that its process had given back.
    pub(crate) fn again(&self, fault: u32) -> bool {
        self.again.get(fault as usize).copied().unwrap_or(false)
    }

    /// Whether this fault is in a file that its program mapped: the page has the file's contents, and is not zeroed.
    pub(crate) fn in_file(&self, fault: u32) -> bool {
        self.in_file.get(fault as usize).copied().unwrap_or(false)
    }

    /// The churn of a process.
    pub(crate) fn of(&self, process: ProcessId) -> Tally {
        self.of.get(&process).cloned().unwrap_or_default()
    }
}

impl Tally {
    /// Counts a fault; returns the releases since the fault before.
    fn take_again(&mut self) -> Vec<CallId> {
        self.faults += 1;
        let (releases, bytes) = std::mem::take(&mut self.since);
        self.releases += u64::try_from(releases.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
        releases.into_iter().chain(std::mem::take(&mut self.cuts)).collect()
    }
}

impl Memory {
    /// Notes whether what this `mmap` mapped is a file; else returns its range.
    fn map(&mut self, call: &Call, args: [u64; 4]) -> Option<(u64, u64)> {
        let at = call.ret().and_then(|ret| u64::try_from(ret).ok())?;
        let end = at.saturating_add(args[0]);
        if args[2] & MAP_ANONYMOUS != 0 {
            self.files.remove(&at);
            return Some((at, end));
        }
        if self.files.len() < RANGES {
            self.files.insert(at, end);
        }
        None
    }

    /// Notes that this `mremap` made a mapping smaller in place; returns the part that is gone.
    fn cut(&mut self, id: CallId, call: &Call, args: [u64; 4]) -> Option<(u64, u64)> {
        let [start, length, new, _] = args;
        let in_place = call.ret().is_some_and(|ret| u64::try_from(ret) == Ok(start));
        if !in_place || new >= length {
            return None;
        }
        if self.cut.len() < RANGES {
            self.cut.insert(start, id);
        }
        Some((start.saturating_add(new), start.saturating_add(length)))
    }

    /// Whether a file is mapped at this address.
    fn is_file(&self, at: u64) -> bool {
        self.files.range(..=at).next_back().is_some_and(|(_, end)| at < *end)
    }

    /// Where the heap ended before and after this `brk`; the same if one of both is not known.
    fn end_of_heap(&mut self, call: &Call) -> (u64, u64) {
        let end = call.ret().and_then(|ret| u64::try_from(ret).ok()).filter(|end| *end > 0);
        let Some(end) = end else { return (self.end_of_heap, self.end_of_heap) };
        match std::mem::replace(&mut self.end_of_heap, end) {
            0 => (end, end),
            before => (before, end),
        }
    }

    /// Gives a range back; returns the bytes of it that had been touched.
    fn release(&mut self, from: u64, to: u64) -> u64 {
        let touched = self.touched.within(from, to);
        self.retaken.remove(from, to);
        for (start, end) in &touched {
            self.touched.remove(*start, *end);
            self.released.add(*start, *end);
        }
        touched.iter().map(|(start, end)| end - start).sum()
    }
}

/// The memory of a process at this time.
fn memory_at<'m>(
    memories: &'m mut BTreeMap<ProcessId, Memory>,
    execs: &BTreeMap<ProcessId, Vec<Ns>>,
    process: ProcessId,
    at: Ns,
) -> &'m mut Memory {
    let memory = memories.entry(process).or_default();
    let execs = execs.get(&process).map_or(&[][..], Vec::as_slice);
    let latest = execs.iter().rev().find(|exec| **exec <= at).copied().unwrap_or_default();
    if latest > memory.exec {
        *memory = Memory { exec: latest, ..Memory::default() };
    }
    memory
}

/// When each process executed a program, in order.
fn execs(timeline: &Timeline, processes: &Processes) -> BTreeMap<ProcessId, Vec<Ns>> {
    let mut execs: BTreeMap<ProcessId, Vec<Ns>> = BTreeMap::new();
    for (index, task) in timeline.tasks.iter().enumerate() {
        let process = processes.of(deadweight_trace::ids::TaskId::at(index));
        execs.entry(process).or_default().extend(task.execs.iter().map(|(at, _)| *at));
    }
    execs.values_mut().for_each(|times| times.sort_unstable());
    execs
}

/// Disjoint ranges of addresses, start to end.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range, joining those that it touches.
    fn add(&mut self, mut from: u64, mut to: u64) {
        if from >= to || self.0.len() >= RANGES {
            return;
        }
        // Most often memory is touched page after page.
        if let Some((start, end)) = self.0.range_mut(..=to).next_back()
            && (*start..=*end).contains(&from)
        {
            *end = to.max(*end);
            return;
        }
        while let Some((start, end)) =
            self.0.range(..=to).next_back().map(|(s, e)| (*s, *e)).filter(|r| r.1 >= from)
        {
            self.0.remove(&start);
            from = from.min(start);
            to = to.max(end);
        }
        self.0.insert(from, to);
    }

    /// The parts of them in this range.
    fn within(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let before = self.0.range(..from).next_back().filter(|(_, end)| **end > from);
        let inside = self.0.range(from..to.max(from));
        let all = before.into_iter().chain(inside);
        all.map(|(start, end)| ((*start).max(from), (*end).min(to))).collect()
    }

    /// Removes a range; returns how many bytes of it there were.
    fn remove(&mut self, from: u64, to: u64) -> u64 {
        let parts = self.within(from, to);
        for (start, end) in &parts {
            let Some((first, last)) = self.0.range(..=start).next_back().map(|(s, e)| (*s, *e))
            else {
                continue;
            };
            self.0.remove(&first);
            if first < *start {
                self.0.insert(first, *start);
            }
            if *end < last {
                self.0.insert(*end, last);
            }
        }
        parts.iter().map(|(start, end)| end - start).sum()
    }
}

/// When a fault happened, in which process, and its index in the timeline.
pub(crate) type FaultTime = (Ns, ProcessId, u32);

/// All faults with their process, task by task. They are not collected: there may be millions.
pub(crate) fn all_faults<'t>(
    timeline: &'t Timeline,
    processes: &Processes,
) -> impl Iterator<Item = FaultTime> + use<'t> {
    each_tasks_faults(timeline, processes).into_iter().flatten()
}

fn each_tasks_faults<'t>(
    timeline: &'t Timeline,
    processes: &Processes,
) -> Vec<impl Iterator<Item = FaultTime> + use<'t>> {
    let of = |task| faults_of(timeline.task(task), processes.of(task));
    (0..timeline.tasks.len()).map(TaskId::at).map(of).collect()
}

/// The same in order of time.
fn fault_times(timeline: &Timeline, processes: &Processes) -> impl Iterator<Item = FaultTime> {
    let mut tasks = each_tasks_faults(timeline, processes);
    // The next fault of each task, and which task.
    let mut next: BinaryHeap<Reverse<(FaultTime, usize)>> = BinaryHeap::new();
    next.extend(
        tasks
            .iter_mut()
            .enumerate()
            .filter_map(|(of, faults)| faults.next().map(|first| Reverse((first, of)))),
    );
    std::iter::from_fn(move || {
        let mut earliest = next.peek_mut()?;
        let Reverse((fault, of)) = *earliest;
        match tasks[of].next() {
            Some(later) => *earliest = Reverse((later, of)),
            None => _ = PeekMut::pop(earliest),
        }
        Some(fault)
    })
}

/// The faults of a task, in order.
fn faults_of(task: &Task, process: ProcessId) -> impl Iterator<Item = FaultTime> {
    let mut latest = None;
    task.spans.iter().filter_map(move |span| match span.within() {
        Within::Fault(fault) if latest.replace(fault) != Some(fault) => {
            Some((span.start, process, fault))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_split() {
        let mut ranges = Ranges::default();
        ranges.add(10, 20);
        ranges.add(30, 40);
        assert_eq!(ranges.0.len(), 2);
        ranges.add(20, 30);
        assert_eq!(ranges, Ranges(BTreeMap::from([(10, 40)])));
        ranges.add(60, 60);
        assert_eq!(ranges.remove(20, 30), 10);
        assert_eq!(ranges, Ranges(BTreeMap::from([(10, 20), (30, 40)])));
        assert_eq!((ranges.remove(0, 100), ranges.remove(0, 100)), (20, 0));
    }

    #[test]
    fn only_touched_pages_are_given_back() {
        let mut memory = Memory::default();
        memory.touched.add(0x2000, 0x4000);
        assert_eq!(memory.release(0, 0x3000), 0x1000);
        assert_eq!(memory.release(0, 0x3000), 0);
        assert_eq!(memory.released, Ranges(BTreeMap::from([(0x2000, 0x3000)])));
        assert_eq!(memory.touched, Ranges(BTreeMap::from([(0x3000, 0x4000)])));
    }
}
