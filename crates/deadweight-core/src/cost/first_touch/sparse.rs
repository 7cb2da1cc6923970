//! A large mapping of which a program touches single places, in no order.
//!
//! In: the mappings of a process, and what was touched in them. Whether it matters is left to the class.

use super::{PAGE, STEP, touches};
use crate::facts::Facts;
use crate::facts::churn::MAP_ANONYMOUS;
use crate::facts::processes::ProcessId;
use deadweight_trace::syscall;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Bytes of a cache line.
const LINE: u64 = 64;
/// A table of fewer pages is small.
const PAGES: usize = 2048;
/// Touches at random that reach this part of all pages are 1.8 for each page that they reach: -ln(1 - 0.75) / 0.75.
const REACHED: f64 = 0.75;
/// At most this part of the faults is near the one before: no further away than `STEP`.
const NEAR: f64 = 0.2;
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

/// The mapping of this process with the most touched pages among those that are hardly used.
pub(super) fn largest(facts: &Facts<'_>, process: ProcessId) -> Option<Sparse> {
    let mappings = mappings(facts, process);
    let holds = |at: u64| {
        let before = mappings.partition_point(|(from, _)| *from <= at);
        before.checked_sub(1).filter(|mapping| at < mappings[*mapping].1)
    };
    // The addresses that each task touched in each mapping.
    let mut inside: BTreeMap<usize, Vec<Vec<u64>>> = BTreeMap::new();
    for (task, of_task) in touches(facts, process).enumerate() {
        for (_, at) in of_task {
            let Some(mapping) = holds(at) else { continue };
            let tasks = inside.entry(mapping).or_default();
            tasks.resize(tasks.len().max(task + 1), Vec::new());
            tasks[task].push(at);
        }
    }
    let found = inside.values().filter_map(|tasks| judge(tasks));
    found.max_by_key(|sparse| sparse.pages)
}

/// The memory that the process mapped in pieces large enough for a table, start to end, in order. Of those that were at
/// one place one after the other, the first.
fn mappings(facts: &Facts<'_>, process: ProcessId) -> Vec<(u64, u64)> {
    let timeline = facts.timeline;
    let mmap = syscall::number(facts.trace.meta.arch, "mmap");
    let calls = timeline.calls.iter().filter(|call| Some(call.nr) == mmap);
    let own = calls.filter(|call| facts.processes.of(call.task) == process);
    let range = |call| {
        let [length, _, flags, _] = timeline.args(call);
        let at = u64::try_from(call.ret()?).ok()?;
        let large = length / PAGE >= PAGES as u64 && flags & MAP_ANONYMOUS != 0;
        large.then_some((at, at.saturating_add(length)))
    };
    let mut all: Vec<(u64, u64)> = own.filter_map(range).collect();
    all.sort_unstable_by_key(|(from, to)| (*from, Reverse(*to)));
    all.dedup_by(|later, former| later.0 < former.1);
    all
}

/// Whether a mapping is hardly used, by the addresses that each task touched in it.
fn judge(tasks: &[Vec<u64>]) -> Option<Sparse> {
    let faults = tasks.iter().map(Vec::len).sum::<usize>();
    let steps = tasks.iter().flat_map(|task| task.windows(2));
    // The write of a page that was read first is a second fault on it, and no step.
    let steps = steps.filter(|pair| pair[0] / PAGE != pair[1] / PAGE);
    let near = steps.filter(|pair| pair[0].abs_diff(pair[1]) <= STEP).count();
    // There are no more pages than faults.
    if near as f64 > NEAR * faults as f64 {
        return None;
    }
    let mut pages: Vec<u64> = tasks.iter().flatten().map(|at| at / PAGE).collect();
    pages.sort_unstable();
    pages.dedup();
    let (first, last) = (*pages.first()?, *pages.last()?);
    let all = last - first + 1;
    let reached = pages.len() as f64 / all as f64;
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
        let sparse = judge(&[at_random(8_000, 16_384, 64)]).unwrap();
        assert!((1.2..1.4).contains(&sparse.used), "{sparse:?}");
        assert!(sparse.pages > 6_000 && sparse.bytes > 16_000 * PAGE, "{sparse:?}");
    }

    #[test]
    fn full_tables_whole_pages_and_walks_are_refused() {
        // So many touches that most pages are reached.
        assert_eq!(judge(&[at_random(40_000, 16_384, 64)]), None);
        // Records of a page each.
        assert_eq!(judge(&[at_random(8_000, 16_384, PAGE)]), None);
        // One page after the other.
        let walk = (0..8_000).map(|i| FROM + 2 * i * PAGE + i % 64 * 64).collect();
        assert_eq!(judge(&[walk]), None);
    }
}
