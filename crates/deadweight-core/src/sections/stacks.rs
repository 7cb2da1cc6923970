//! Charged time by call stack: each nanosecond of the ledger at a row, a task, a stack and an event.
//!
//! The ledger comes first: what it charged to a process is divided further, so the sums are the rows' to the nanosecond.
//! A process's own time is divided by the samples of each of its tasks, in proportion to the tasks' time. A call or
//! page fault whose stack was not taken counts as those of its kind whose stack was; a wait does not.
//!
//! Not for frames in the kernel: what the kernel did is the event.

use super::ledger::event;
use crate::account::{AccountId, Attribution, Detail, Entry, NET_WORK};
use crate::attribute::OfTask;
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, amount};
use crate::facts::processes::ProcessId;
use deadweight_report::stats::apportion::apportion;
use deadweight_trace::ids::TaskId;
use deadweight_trace::symbols::{Location, SourceFrame, Symbols};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Time with everything in common that a profile shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackTime {
    /// The row of the ledger.
    pub account: AccountId,
    /// The task whose time it is.
    pub task: TaskId,
    /// What happened at the stack (`read`, `page fault`, `a lock or condition, until x woke it`); empty for the program's own code.
    pub event: String,
    /// How long.
    pub ns: Ns,
    site: CallSite,
}

impl StackTime {
    /// Its frames, leaf first, inlined ones expanded. Empty where no stack is known.
    pub fn frames<'s>(
        &self,
        symbols: &'s Symbols,
    ) -> impl Iterator<Item = (&'s Location, &'s SourceFrame)> + use<'s> {
        self.site.frames(symbols)
    }
}

/// A stack of a task, with its part of some time.
type Part = ((TaskId, CallSite), u64);

/// The entries of each task, by what they have in common.
type Raw<'r> = BTreeMap<(AccountId, ProcessId, Detail), Vec<&'r OfTask>>;

/// Divides what was charged. The parts add up to its total exactly; they are in order of row, task, event and stack.
pub(crate) fn stacks(
    facts: &Facts<'_>,
    charged: &Attribution,
    by_task: &[OfTask],
) -> Vec<StackTime> {
    let mut raw = Raw::new();
    for of in by_task {
        let Entry { account, process, detail, .. } = of.entry;
        raw.entry((account, process, detail)).or_default().push(of);
    }
    let mut sums: BTreeMap<(AccountId, TaskId, String, CallSite), Ns> = BTreeMap::new();
    for entry in &charged.entries {
        let parts = if entry.is_sampled() {
            let own = raw.get(&(NET_WORK, entry.process, Detail::Plain));
            own_time(facts, entry.account, own.map_or(&[], Vec::as_slice))
        } else {
            let own = raw.get(&(entry.account, entry.process, entry.detail));
            events(entry.detail, own.map_or(&[], Vec::as_slice))
        };
        let words = event(facts, entry);
        for ((task, site), ns) in divided(facts, entry, parts) {
            *sums.entry((entry.account, task, words.clone(), site)).or_default() += ns;
        }
    }
    let each = sums.into_iter().filter(|(_, ns)| *ns > Ns::ZERO);
    each.map(|((account, task, event, site), ns)| StackTime { account, task, event, ns, site })
        .collect()
}

/// The entry's time at each of these parts; at its process's first task, without a stack, if there are none.
fn divided(facts: &Facts<'_>, entry: &Entry, parts: Vec<Part>) -> Vec<((TaskId, CallSite), Ns)> {
    if parts.iter().all(|(_, weight)| *weight == 0) {
        let first = facts.processes.get(entry.process).tasks.first();
        return vec![((first.copied().unwrap_or_default(), CallSite::default()), entry.ns)];
    }
    let weights: Vec<u64> = parts.iter().map(|(_, weight)| *weight).collect();
    let times = apportion(entry.ns.0, &weights).into_iter().map(Ns);
    parts.into_iter().map(|(at, _)| at).zip(times).collect()
}

/// The part of each task's own time that samples give to this account, stack by stack.
fn own_time(facts: &Facts<'_>, account: AccountId, tasks: &[&OfTask]) -> Vec<Part> {
    let mut parts = Vec::new();
    for OfTask { task, entry } in tasks {
        let known = amount(&entry.samples);
        let own = entry.recording.0.saturating_sub(entry.recording.1 + entry.in_kernel).max(known);
        for (site, weight) in &entry.samples {
            if facts.account_of_sample(*site) == account {
                let site = site.stack().map_or(*site, |stack| facts.site_of_sample(stack));
                parts.push(((*task, site), entry.ns.scaled(weight.amount, own).0));
            }
        }
        if account == NET_WORK {
            // Without a sample, all of it.
            let unknown = if own == 0 { entry.ns } else { entry.ns.scaled(own - known, own) };
            parts.push(((*task, CallSite::default()), unknown.0));
        }
    }
    parts
}

/// The parts of each task's calls, faults, waits and the like, stack by stack.
fn events(detail: Detail, tasks: &[&OfTask]) -> Vec<Part> {
    let mut parts = Vec::new();
    for OfTask { task, entry } in tasks {
        let known = amount(entry.places());
        let timed = !entry.sites.is_empty();
        let alike = matches!(detail, Detail::Calls(_) | Detail::Faults) && known > 0;
        let whole = match timed {
            true if alike => known,
            true => entry.ns.0.max(known),
            false => entry.recording.0.max(known),
        };
        for (site, weight) in entry.places() {
            parts.push(((*task, *site), entry.ns.scaled(weight.amount, whole).0));
        }
        let unknown = if whole == 0 { entry.ns } else { entry.ns.scaled(whole - known, whole) };
        parts.push(((*task, CallSite::default()), unknown.0));
    }
    parts
}
