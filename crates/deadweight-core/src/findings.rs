//! From what a class found to a finding with its place, its saving and what to do about it.
//!
//! Not for knowing costs: that is the classes' business (`cost`).

use crate::attribute::{self, Entry};
use crate::case::Case;
use crate::cost::{AccountId, CLASSES, Inspection};
use crate::place::{Spot, Weights, add, called_from};
use crate::processes::ProcessId;
use crate::removals::removals;
use crate::shares::Own;
use crate::timeline::Sample;
use crate::whatif::WhatIf;
use deadweight_report::report::{Finding, How, Site};
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// A finding below this share of the wall time is not worth a reader's attention.
const WORTH: f64 = 0.02;
/// A cost that is known by samples needs so many to be spoken of.
const SAMPLES: u64 = 8;
/// A replay of the graph that is this far off with nothing removed says nothing about a removal.
const DOUBTFUL: f64 = 0.1;

/// A finding in the making: times are of the traced run.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The class's id.
    pub(crate) class: &'static str,
    /// Where it happens.
    pub(crate) process: ProcessId,
    /// One line.
    pub(crate) title: String,
    /// A sentence or two.
    pub(crate) text: String,
    /// What it takes of the wall time.
    pub(crate) amount: Ns,
    /// The best single prediction.
    pub(crate) saving: Ns,
    /// Least and most that could be saved.
    pub(crate) range: (Ns, Ns),
    /// How it is known.
    pub(crate) how: How,
    /// Where.
    pub(crate) sites: Vec<Site>,
    /// What shows it.
    pub(crate) evidence: Vec<String>,
    /// What to do.
    pub(crate) remedy: String,
    /// Whether removing it may merely move the wait elsewhere: asked of the whole graph.
    pub(crate) moves: bool,
}

/// All findings of a run, best first. Shares are of the wall time without what the observer and
/// other programs took: that is what a quiet, unobserved run would save.
pub(crate) fn inspect(inspection: &Inspection<'_, '_>) -> Vec<Finding> {
    let net = inspection.wall.net();
    let case = inspection.case;
    let mut drafts: Vec<Draft> =
        CLASSES.iter().flat_map(|class| (class.inspect)(inspection)).collect();
    drafts.retain(|draft| draft.saving.max(draft.range.1).share_of(net) >= WORTH);
    drafts.retain(|draft| draft.is_seen_often(inspection));
    if drafts.iter().any(|draft| draft.moves)
        && case.path.subject.own.iter().filter(|own| **own).count() > 1
    {
        let cpus = case.trace.meta.cpus;
        let whatif = WhatIf::new(case.timeline, &case.path.subject, cpus);
        if whatif.error() < DOUBTFUL {
            let replayed = |draft: &&mut Draft| draft.moves && draft.can_be_replayed(case);
            drafts.iter_mut().filter(replayed).for_each(|d| d.limit(inspection, &whatif));
        }
    }
    let mut found: Vec<Finding> = drafts
        .into_iter()
        .map(|draft| draft.finish(inspection, net))
        .filter(|finding| finding.saving_share.max(finding.high / 2.0) >= WORTH)
        .collect();
    sort(&mut found);
    found
}

/// Best first: by predicted saving, then by name so that the order is always the same. What only
/// may save something counts half.
pub(crate) fn sort(findings: &mut [Finding]) {
    let expected = |finding: &Finding| match finding.how {
        How::Candidate => finding.saving_share / 2.0,
        _ => finding.saving_share,
    };
    findings
        .sort_by(|a, b| expected(b).total_cmp(&expected(a)).then_with(|| a.class.cmp(&b.class)));
}

impl Draft {
    /// Whether what samples tell of it is more than chance: a few of a short run are not. Counted
    /// are those of its account, or as many as its amount stands for, where code tells the part.
    fn is_seen_often(&self, found: &Inspection<'_, '_>) -> bool {
        let account = AccountId::of_class(self.class);
        let entries = found.cpu.of_process(account, self.process);
        let seen: u64 = entries.flat_map(|e| e.samples.values()).map(|w| w.amount).sum();
        let own = Own::of(found.wall, self.process);
        let stands_for = self.amount.share_of(own.ns) * own.samples as f64;
        !account.is_sampled() || seen == 0 || seen >= SAMPLES || stands_for >= SAMPLES as f64
    }

    /// Whether the graph shows what hangs on the draft's slices. Go's scheduler hands goroutines
    /// from thread to thread through memory: of its work, only waits leave their edges.
    fn can_be_replayed(&self, case: &Case<'_>) -> bool {
        case.processes.get(self.process).language != "Go" || self.class.starts_with("wait-")
    }

    /// Takes back what would only move the wait elsewhere: the draft saves at most what the whole
    /// graph shrinks by when all slices of its account in its process take no time, everywhere.
    fn limit(&mut self, found: &Inspection<'_, '_>, whatif: &WhatIf<'_>) {
        let case = found.case;
        let account = AccountId::of_class(self.class);
        let parts = parts_of_tasks(case, account, self.process);
        let removal = |task, index, length: Ns| {
            if case.processes.of(task) != self.process {
                return Ns::ZERO;
            }
            match attribute::account_of_span(case, task, index) {
                Some(charged) if charged == account => length,
                Some(charged) if charged.is_sampled() => {
                    length.part(parts.get(&task).copied().unwrap_or_default())
                }
                _ => Ns::ZERO,
            }
        };
        let shrinks = whatif.saving(&removal).high;
        if shrinks < self.amount && self.amount > Ns::ZERO {
            let part = |ns: Ns| {
                let kept = u128::from(ns.0) * u128::from(shrinks.0) / u128::from(self.amount.0);
                Ns(u64::try_from(kept).unwrap_or(u64::MAX))
            };
            // A wait that own work overlapped was already counted without the overlap.
            self.saving = self.saving.min(part(self.amount.max(self.saving)));
            self.range = (self.range.0.min(self.saving), self.range.1);
        }
    }

    fn finish(self, found: &Inspection<'_, '_>, net: Ns) -> Finding {
        let case = found.case;
        let saving = self.saving.min(net);
        Finding {
            class: self.class.to_owned(),
            title: self.title,
            text: self.text,
            process: case.name(self.process),
            amount_ns: self.amount.0,
            saving_ns: saving.0,
            saving_share: saving.share_of(net),
            low: self.range.0.min(saving).share_of(net),
            high: self.range.1.max(saving).min(net).share_of(net),
            how: match self.how {
                How::Exact if !case.trace.meta.sees_both_ends() => How::Estimate,
                how => how,
            },
            sites: self.sites,
            evidence: self.evidence,
            remedy: self.remedy,
            removals: removals(found, self.class, self.process),
            proofs: Vec::new(),
        }
    }
}

/// Which part of each task's own time is an account's, as far as samples tell.
pub(crate) fn parts_of_tasks(
    case: &Case<'_>,
    account: AccountId,
    process: ProcessId,
) -> BTreeMap<TaskId, f64> {
    if !account.is_sampled() {
        return BTreeMap::new();
    }
    let part = |task: &TaskId| {
        let own = || case.timeline.task(*task).samples.iter().filter(|s| !s.kernel);
        let claimed = |s: &&Sample| case.account_of_sample(Spot::Stack(s.stack)) == account;
        own().filter(claimed).count() as f64 / own().count().max(1) as f64
    };
    case.processes.get(process).tasks.iter().map(|task| (*task, part(task))).collect()
}

/// Entries of the wall time with one account, summed by process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    /// Time.
    pub(crate) ns: Ns,
    /// Without the part of waits during which another own task was on a CPU.
    pub(crate) alone: Ns,
    /// How many began.
    pub(crate) count: u64,
    /// Where.
    pub(crate) places: Weights,
}

impl Sum {
    /// The sum of these entries.
    pub(crate) fn of<'e>(entries: impl Iterator<Item = &'e Entry>) -> Self {
        let mut sum = Self::default();
        for entry in entries {
            sum.ns += entry.ns;
            sum.alone += entry.alone;
            sum.count += entry.count;
            add(&mut sum.places, entry.places());
        }
        sum
    }
}

/// `ns` spent in `count` events on the path, with the part of the way there and back, `way` ns
/// each, that lies in the program's own time: at most half of that.
pub(crate) fn with_the_way(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    ns: Ns,
    count: u64,
    way: u64,
) -> Ns {
    let own: Ns = found.wall.user_time_of(process).map(|e| e.ns).sum();
    ns + Ns(count.saturating_mul(way)).min(Ns(own.0 / 2))
}

/// Own time of a process in library code that was called from the same lines as `places`: what a
/// call needs around it (paths put together, buffers, descriptors) goes when the line goes.
pub(crate) fn library_code_for(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    places: &Weights,
) -> Ns {
    let symbols = found.case.symbols();
    let lines: BTreeSet<_> = places.keys().filter_map(|spot| called_from(symbols, *spot)).collect();
    let entries = found.wall.user_time_of(process).map(|entry| {
        let there = |spot: &Spot| called_from(symbols, *spot).is_some_and(|l| lines.contains(&l));
        let samples = entry.samples.iter().filter(|(spot, _)| there(spot));
        let samples: u64 = samples.map(|(_, weight)| weight.amount).sum();
        entry.ns.part(samples as f64 / entry.sampled().max(1) as f64)
    });
    entries.sum()
}

/// The processes that an account's entries belong to, in order.
pub(crate) fn processes_in<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<ProcessId> {
    let mut found: Vec<ProcessId> = entries.map(|e| e.process).collect();
    found.sort_unstable();
    found.dedup();
    found
}
