//! What became of memory that was cleared: whether it still held nothing but zeroes when it was
//! looked at later.
//!
//! The pages of fresh memory are zero already. Those whose first touch was to clear them, and that
//! nobody wrote to afterwards, were cleared in vain, and need not have been brought in. Not for
//! telling whether they were read: nothing in a recording does.

use crate::facts::churn::fault_times;
use crate::facts::processes::{ProcessId, Processes};
use crate::timeline::{Fault, Timeline};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Whoever clears memory to write to it has done so after this time.
const SETTLED: Ns = Ns(10_000_000);
/// Fewer pages say nothing about the others.
const LEAST: u64 = 16;
/// The addresses of a page.
const PAGE: u64 = 4096;

/// By process: the fate of memory whose first touch was to clear it.
#[derive(Debug, Default)]
pub(crate) struct Zeroed {
    of: BTreeMap<ProcessId, Fate>,
}

/// Pages that were looked at some time after they were cleared.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// How many.
    pub(crate) looked: u64,
    /// Those that were all zero at the last look.
    pub(crate) zero: u64,
    /// Whether most of all the process' page faults were met while clearing.
    pub(crate) most: bool,
}

impl Fate {
    /// Whether enough pages were looked at to speak of all.
    pub(crate) fn is_known(self) -> bool {
        self.looked >= LEAST
    }

    /// Whether most of the memory was cleared in vain.
    pub(crate) fn is_in_vain(self) -> bool {
        self.is_known() && self.zero * 2 > self.looked
    }

    /// The part that nobody wrote to.
    pub(crate) fn part(self) -> f64 {
        self.zero as f64 / self.looked.max(1) as f64
    }
}

impl Zeroed {
    /// Joins looks with the page fault that brought each page in; `clears` says whether a fault was
    /// met while clearing.
    pub(crate) fn gather(
        timeline: &Timeline,
        processes: &Processes,
        clears: impl Fn(&Fault) -> bool,
    ) -> Self {
        let times = fault_times(timeline, processes);
        // Page by page: the instants and numbers of the faults on it.
        let mut faults: BTreeMap<(ProcessId, u64), Vec<(Ns, usize)>> = timeline
            .pages
            .iter()
            .map(|page| ((processes.of(page.task), page.addr.0 / PAGE), Vec::new()))
            .collect();
        if faults.is_empty() {
            return Self::default();
        }
        for (at, process, fault) in &times {
            let page = timeline.faults[*fault].addr.0 / PAGE;
            if let Some(known) = faults.get_mut(&(*process, page)) {
                known.push((*at, *fault));
            }
        }
        // The last look at what a fault brought in counts.
        let mut looks: BTreeMap<(ProcessId, usize), bool> = BTreeMap::new();
        for page in &timeline.pages {
            let process = processes.of(page.task);
            let known = faults.get(&(process, page.addr.0 / PAGE));
            let latest = known.and_then(|k| k.iter().rev().find(|(at, _)| *at <= page.at));
            if let Some((at, fault)) = latest
                && page.at - *at >= SETTLED
                && clears(&timeline.faults[*fault])
            {
                looks.insert((process, *fault), page.zero);
            }
        }
        let mut of: BTreeMap<ProcessId, Fate> = BTreeMap::new();
        for ((process, _), zero) in looks {
            let fate = of.entry(process).or_default();
            fate.looked += 1;
            fate.zero += u64::from(zero);
        }
        for (process, fate) in &mut of {
            let all = || times.iter().filter(|(_, whose, _)| whose == process);
            let clearing = all().filter(|(.., fault)| clears(&timeline.faults[*fault])).count();
            fate.most = clearing * 2 > all().count();
        }
        Self { of }
    }

    /// What became of a process' cleared memory.
    pub(crate) fn of(&self, process: ProcessId) -> Fate {
        self.of.get(&process).copied().unwrap_or_default()
    }
}
