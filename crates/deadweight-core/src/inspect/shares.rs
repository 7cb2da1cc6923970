//! Shares: a class' part of a process' own time by samples, for findings based on them.
//!
//! `attribute` divides the time. Each class predicts the saving itself: it knows how its share misleads.

use crate::account::AccountId;
use crate::account::Attribution;
use crate::facts::call_site::{CallSite, Weights, add, amount, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use deadweight_report::report::Site;
use deadweight_report::stats::proportion::proportion;
use deadweight_trace::ids::StackId;
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// A part of a process' own time, by samples.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// Its time.
    pub(crate) ns: Ns,
    /// The samples in it.
    pub(crate) samples: u64,
    /// Where they were taken.
    pub(crate) places: Weights,
    /// All of the process' own time, with its samples: the whole that the part is of.
    pub(crate) whole: (Ns, u64),
}

/// All of a process' own time, with its samples.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Own {
    /// The time.
    pub(crate) ns: Ns,
    /// Its samples.
    pub(crate) samples: u64,
}

impl Own {
    /// The own time of `process` on the path.
    pub(crate) fn of(attribution: &Attribution, process: ProcessId) -> Self {
        attribution.user_time_of(process).fold(Self::default(), |own, entry| Self {
            ns: own.ns + entry.ns,
            samples: own.samples + entry.sampled(),
        })
    }

    /// The time that so many samples stand for.
    pub(crate) fn part(&self, samples: f64) -> Ns {
        self.ns.part(samples / self.samples.max(1) as f64)
    }
}

impl Share {
    /// The part of `account` in the own time of `process`; none if it has no sample.
    pub(crate) fn of(
        attribution: &Attribution,
        account: AccountId,
        process: ProcessId,
    ) -> Option<Self> {
        let mut share =
            Self { ns: Ns::ZERO, samples: 0, places: Weights::new(), whole: (Ns::ZERO, 0) };
        for entry in attribution.user_time_of(process) {
            share.whole = (share.whole.0 + entry.ns, share.whole.1 + entry.sampled());
            if entry.account == account {
                share.ns += entry.ns;
                share.samples += entry.sampled();
                add(&mut share.places, &entry.samples);
            }
        }
        (share.samples > 0).then_some(share)
    }

    /// The time that `samples` of this share's process stand for.
    pub(crate) fn time_of(&self, samples: u64) -> Ns {
        self.whole.0.part(samples as f64 / self.whole.1.max(1) as f64)
    }

    /// The same without the samples of these places.
    pub(crate) fn without(mut self, places: &BTreeSet<CallSite>) -> Self {
        self.places.retain(|site, _| !places.contains(site));
        self.samples = amount(&self.places);
        self.ns = self.time_of(self.samples);
        self
    }

    /// The saving of removing `ns` of this process' own time, with a part of the rest: `ns` also makes
    /// caches colder and the pipeline emptier, in proportion to its share. `part` was measured on pairs of
    /// programs, for each class.
    pub(crate) fn with_the_rest(&self, ns: Ns, part: f64) -> Ns {
        ns + (self.whole.0 - ns).part(ns.share_of(self.whole.0) * part)
    }

    /// The 95 % interval of a time of this process that is known by samples.
    pub(crate) fn interval(&self, ns: Ns) -> (Ns, Ns) {
        let (low, high) = proportion(ns.share_of(self.whole.0), self.whole.1);
        (self.whole.0.part(low), self.whole.0.part(high))
    }

    /// The call sites, largest share first.
    pub(crate) fn sites(&self, symbols: &Symbols) -> Vec<Site> {
        sampled_sites(symbols, &self.places)
    }
}

/// The call sites of samples: these give shares, not counts.
pub(crate) fn sampled_sites(symbols: &Symbols, places: &Weights) -> Vec<Site> {
    let mut found = sites(symbols, places, 0);
    found.iter_mut().for_each(|site| site.count = 0);
    found
}

/// The samples of a process' own time on the path, each with its account.
pub(crate) fn samples_of<'a>(
    found: &Inspection<'a, '_>,
    process: ProcessId,
) -> impl Iterator<Item = (AccountId, CallSite, u64)> {
    found
        .wall
        .user_time_of(process)
        .flat_map(|entry| entry.samples.iter().map(|(s, w)| (entry.account, *s, w.amount)))
}

/// Some of the samples of a process' own time: how many, where, and the time that they stand for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// Their number.
    pub(crate) samples: u64,
    /// Where they were taken.
    pub(crate) places: Weights,
    /// Their time.
    pub(crate) ns: Ns,
}

impl Chosen {
    /// The samples whose stacks are wanted.
    pub(crate) fn of(
        found: &Inspection<'_, '_>,
        process: ProcessId,
        mut wanted: impl FnMut(StackId) -> bool,
    ) -> Self {
        let mut chosen = Self::default();
        for (_, site, amount) in samples_of(found, process) {
            if site.stack().is_some_and(&mut wanted) {
                chosen.samples += amount;
                chosen.places.entry(site).or_default().amount += amount;
            }
        }
        chosen.ns = Own::of(found.wall, process).part(chosen.samples as f64);
        chosen
    }
}
