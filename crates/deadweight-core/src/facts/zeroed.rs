//! The fate of zeroed memory: whether it still held only zeroes when it was sampled later.
//!
//! Pages of fresh memory are zero already. A page whose first touch was to zero it, and which was never
//! written to afterwards, was zeroed in vain and need not have been mapped. Whether it was read is not in a
//! recording.

use crate::facts::churn::all_faults;
use crate::facts::processes::{ProcessId, Processes};
use crate::timeline::{Fault, Timeline};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Memory that is zeroed in order to be written has been written after this time.
const SETTLED: Ns = Ns(10_000_000);
/// Fewer pages do not represent the others.
const LEAST: u64 = 16;
/// The addresses of a page.
const PAGE: u64 = 4096;
/// Sampled pages are found by their lowest bits first: few of millions of faults are on one.
const SLOTS: usize = 1 << 16;

fn slot(page: u64) -> usize {
    usize::try_from(page).unwrap_or(0) % SLOTS
}

/// By process: the fate of memory whose first touch was to zero it.
#[derive(Debug, Default)]
pub(crate) struct Zeroed {
    of: BTreeMap<ProcessId, Fate>,
}

/// Pages that were sampled some time after they were zeroed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// How many.
    pub(crate) sampled: u64,
    /// Those that were all zero in the last sample.
    pub(crate) zero: u64,
    /// Whether most of the process' page faults occurred while zeroing.
    pub(crate) most: bool,
}

impl Fate {
    /// Whether enough pages were sampled to represent all.
    pub(crate) fn is_known(self) -> bool {
        self.sampled >= LEAST
    }

    /// Whether most of the memory was zeroed in vain.
    pub(crate) fn is_in_vain(self) -> bool {
        self.is_known() && self.zero * 2 > self.sampled
    }

    /// The share that was never written to.
    pub(crate) fn part(self) -> f64 {
        self.zero as f64 / self.sampled.max(1) as f64
    }
}

impl Zeroed {
    /// Joins samples of pages with the page fault that mapped each page; `zeroes` says whether a fault
    /// occurred while zeroing.
    pub(crate) fn gather(
        timeline: &Timeline,
        processes: &Processes,
        zeroes: impl Fn(&Fault) -> bool,
    ) -> Self {
        // Page by page: the instants and numbers of the faults on it.
        let mut faults: BTreeMap<(ProcessId, u64), Vec<(Ns, u32)>> = timeline
            .pages
            .iter()
            .map(|page| ((processes.of(page.task), page.addr.0 / PAGE), Vec::new()))
            .collect();
        if faults.is_empty() {
            return Self::default();
        }
        let mut sampled = vec![false; SLOTS];
        faults.keys().for_each(|(_, page)| sampled[slot(*page)] = true);
        for (at, process, fault) in all_faults(timeline, processes) {
            let page = timeline.faults[fault as usize].addr.0 / PAGE;
            if sampled[slot(page)]
                && let Some(known) = faults.get_mut(&(process, page))
            {
                known.push((at, fault));
            }
        }
        faults.values_mut().for_each(|known| known.sort_unstable());
        // The last sample after a fault counts.
        let mut looks: BTreeMap<(ProcessId, u32), bool> = BTreeMap::new();
        for page in &timeline.pages {
            let process = processes.of(page.task);
            let known = faults.get(&(process, page.addr.0 / PAGE));
            let latest = known.and_then(|k| k.iter().rev().find(|(at, _)| *at <= page.at));
            if let Some((at, fault)) = latest
                && page.at - *at >= SETTLED
                && zeroes(&timeline.faults[*fault as usize])
            {
                looks.insert((process, *fault), page.zero);
            }
        }
        let mut of: BTreeMap<ProcessId, Fate> = BTreeMap::new();
        for ((process, _), zero) in looks {
            let fate = of.entry(process).or_default();
            fate.sampled += 1;
            fate.zero += u64::from(zero);
        }
        let mut counts: BTreeMap<ProcessId, (u64, u64)> = BTreeMap::new();
        for (_, process, fault) in all_faults(timeline, processes) {
            if of.contains_key(&process) {
                let (all, zeroing) = counts.entry(process).or_default();
                *all += 1;
                *zeroing += u64::from(zeroes(&timeline.faults[fault as usize]));
            }
        }
        for (process, (all, zeroing)) in counts {
            of.entry(process).or_default().most = zeroing * 2 > all;
        }
        Self { of }
    }

    /// The fate of a process' zeroed memory.
    pub(crate) fn of(&self, process: ProcessId) -> Fate {
        self.of.get(&process).copied().unwrap_or_default()
    }
}
