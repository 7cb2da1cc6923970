//! A large mapping of which a program touches single places, in no order.
//!
//! Pure: a mapping and the addresses of its faults in, numbers out. Whether they matter is left to the class.

use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::inspect::page_faults::faults_of;
use deadweight_trace::syscall;

/// `MAP_ANONYMOUS` of `mmap`'s flags. From the kernel's uapi headers.
const MAP_ANONYMOUS: u64 = 0x20;
/// Bytes of a page and of a cache line.
const PAGE: u64 = 4096;
const LINE: u64 = 64;
/// A table of fewer pages is small.
const PAGES: usize = 2048;
/// Touches at random that reach at most this part of all pages are 1.4 for each page that they reach: -ln(1 - 0.75) / 0.75 = 1.8
/// for each, where some go twice to one place.
const REACHED: f64 = 0.75;
/// At most this part of the faults is near the one before.
const NEAR: f64 = 0.2;
/// A fault at most this far from the one before is near it.
const STEP: u64 = 16 * PAGE;
/// First touches at fewer different lines of their pages are of records that may fill their pages.
const LINES: u32 = 16;

/// A mapping that is hardly used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sparse {
    /// Bytes between its first and its last page that was touched.
    pub(super) bytes: u64,
    /// Its pages that were touched.
    pub(super) pages: u64,
    /// The page faults in it: two for a page that was read before it was written.
    pub(super) faults: u64,
    /// How many places of a touched page are used, on average: what touches at random make of this part of the pages.
    pub(super) used: f64,
}

/// The mapping of this process with the most touched pages, if it is one that is hardly used.
pub(super) fn largest(facts: &Facts<'_>, process: ProcessId) -> Option<Sparse> {
    let tasks = faults(facts, process);
    let all = mappings(facts, process, true).into_iter();
    let found = all.filter_map(|(from, to)| judge(&tasks, from, to));
    found.max_by_key(|sparse| sparse.pages)
}

/// The addresses of the page faults of each task of the process' last program, in order of time.
fn faults(facts: &Facts<'_>, process: ProcessId) -> Vec<Vec<u64>> {
    let of = facts.processes.get(process);
    let counts = |at, fault| at >= of.began() && !facts.churn.again(fault);
    let of_task = |task| {
        let faults = faults_of(facts, task).filter(|(at, fault)| counts(*at, *fault));
        faults.map(|(_, fault)| facts.timeline.faults[fault as usize].addr.0).collect()
    };
    of.tasks.iter().map(|task| of_task(*task)).collect()
}

/// How many of the process' page faults are in files that it mapped: their pages are in memory, and are not zeroed.
pub(super) fn in_files(facts: &Facts<'_>, process: ProcessId) -> usize {
    let files = mappings(facts, process, false);
    let tasks = faults(facts, process);
    let in_file = |at: &&u64| files.iter().any(|(from, to)| (from..to).contains(at));
    tasks.iter().flatten().filter(in_file).count()
}

/// What the process mapped, memory or files, start to end, where it is large enough for a table.
fn mappings(facts: &Facts<'_>, process: ProcessId, memory: bool) -> Vec<(u64, u64)> {
    let timeline = facts.timeline;
    let mmap = syscall::number(facts.trace.meta.arch, "mmap");
    let calls = timeline.calls.iter().filter(|call| Some(call.nr) == mmap);
    let own = calls.filter(|call| facts.processes.of(call.task) == process);
    let range = |call| {
        let [length, _, flags, _] = timeline.args(call);
        let at = u64::try_from(call.ret()?).ok()?;
        let large = length / PAGE >= PAGES as u64 && (flags & MAP_ANONYMOUS != 0) == memory;
        large.then_some((at, at.saturating_add(length)))
    };
    own.filter_map(range).collect()
}

fn judge(tasks: &[Vec<u64>], from: u64, to: u64) -> Option<Sparse> {
    let inside = |task: &Vec<u64>| -> Vec<u64> {
        task.iter().copied().filter(|at| (from..to).contains(at)).collect()
    };
    let tasks: Vec<Vec<u64>> = tasks.iter().map(inside).collect();
    let mut pages: Vec<u64> = tasks.iter().flatten().map(|at| at / PAGE).collect();
    let faults = pages.len();
    pages.sort_unstable();
    pages.dedup();
    let (first, last) = (*pages.first()?, *pages.last()?);
    let all = last - first + 1;
    let reached = pages.len() as f64 / all as f64;
    let steps = tasks.iter().flat_map(|task| task.windows(2));
    // The write of a page that was read first is a second fault on it, and no step.
    let steps = steps.filter(|pair| pair[0] / PAGE != pair[1] / PAGE);
    let near = steps.filter(|pair| pair[0].abs_diff(pair[1]) <= STEP).count();
    let lines = tasks.iter().flatten().fold(0_u64, |seen, at| seen | 1 << (at % PAGE / LINE));
    let sparse = pages.len() >= PAGES
        && reached <= REACHED
        && (near as f64) <= NEAR * pages.len() as f64
        && lines.count_ones() >= LINES;
    sparse.then(|| Sparse {
        bytes: all * PAGE,
        pages: pages.len() as u64,
        faults: faults as u64,
        used: -(1.0 - reached).ln() / reached,
    })
}

#[cfg(test)]
mod tests {
    use super::{PAGE, judge};

    const FROM: u64 = 0x7f00_0000_0000;

    /// Faults at places of a mapping, by a generator of numbers in no order.
    fn at_random(faults: u64, pages: u64, apart: u64) -> Vec<u64> {
        let mut state = 88_172_645_463_325_252_u64;
        let mut seen = std::collections::BTreeSet::new();
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            FROM + state % (pages * PAGE / apart) * apart
        };
        let mut addresses = Vec::new();
        for _ in 0..faults {
            let at = next();
            if seen.insert(at / PAGE) {
                addresses.push(at);
            }
        }
        addresses
    }

    #[test]
    fn slots_at_random_use_little_of_their_pages() {
        let sparse = judge(&[at_random(8_000, 16_384, 64)], FROM, FROM + 16_384 * PAGE).unwrap();
        assert!((1.2..1.4).contains(&sparse.used), "{sparse:?}");
        assert!(sparse.pages > 6_000 && sparse.bytes > 16_000 * PAGE, "{sparse:?}");
    }

    #[test]
    fn full_tables_whole_pages_and_walks_are_refused() {
        let to = FROM + 16_384 * PAGE;
        // So many touches that most pages are reached.
        assert_eq!(judge(&[at_random(40_000, 16_384, 64)], FROM, to), None);
        // Records of a page each.
        assert_eq!(judge(&[at_random(8_000, 16_384, PAGE)], FROM, to), None);
        // One page after the other.
        let walk = (0..8_000).map(|i| FROM + 2 * i * PAGE + i % 64 * 64).collect();
        assert_eq!(judge(&[walk], FROM, to), None);
    }
}
