//! System calls that runs can skip: they return 0 and do nothing.
//!
//! Calls whose result or effect the program needs are not skipped: reads and writes, and waits for an event with a
//! time-out, which would end as if the time had passed.

use crate::account::{AccountId, Detail};
use crate::cost::SYNCS;
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::{Change, Removal, SkippedCall};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Calls that sleep, with the argument that is 0 if nothing else is waited for.
const SLEEPS: [SkippedCall; 6] = [
    SkippedCall { name: "clock_nanosleep", only: None },
    SkippedCall { name: "nanosleep", only: None },
    SkippedCall { name: "poll", only: Some((1, 0)) },
    SkippedCall { name: "ppoll", only: Some((1, 0)) },
    SkippedCall { name: "pselect6", only: Some((0, 0)) },
    SkippedCall { name: "select", only: Some((0, 0)) },
];
/// A smaller part of a finding proves little about the rest.
pub(super) const SMALL: f64 = 0.1;

/// The syncs that a process waits for.
pub(super) fn syncs(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    let of = found.facts.call_groups.of_process(process);
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, group) in of.filter(|(_, group)| SYNCS.contains(&group.name)) {
        *times.entry(group.name).or_default() += group.calls;
    }
    let mut names: Vec<(&'static str, u64)> =
        SYNCS.iter().filter_map(|name| Some((*name, *times.get(name)?))).collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if names.is_empty() {
        return Vec::new();
    }
    let words: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    // All of them: a sync that is left writes what the skipped ones did not.
    let calls = SYNCS.iter().map(|name| SkippedCall { name, only: None }).collect();
    let what = format!("the syncs ({})", words.join(", "));
    let share = sync_share(found, process).unwrap_or(1.0);
    vec![Removal { what, share, change: Ok(Change::SkippedCalls(calls)) }]
}

/// The share of syncs in the time of a process's calls that wait until data is stored; none without such calls.
pub(super) fn sync_share(found: &Inspection<'_, '_>, process: ProcessId) -> Option<f64> {
    let (mut syncs, mut all) = (Ns::ZERO, Ns::ZERO);
    for (_, group) in found.facts.call_groups.of_process(process) {
        let sync = SYNCS.contains(&group.name);
        syncs += if sync { group.time } else { Ns::ZERO };
        all += if sync || group.durable { group.time } else { Ns::ZERO };
    }
    (all > Ns::ZERO).then(|| syncs.share_of(all))
}

/// The sleeps of a process: those that nothing but the clock ends.
pub(super) fn sleeps(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    let account = AccountId::of_class("wait-sleep");
    let (mut slept, mut all) = (Ns::ZERO, Ns::ZERO);
    for entry in found.wall.of_process(account, process) {
        all += entry.ns;
        if matches!(entry.detail, Detail::Waits(WaitsFor::Sleep, _)) {
            slept += entry.ns;
        }
    }
    let share = slept.share_of(all);
    if share < SMALL {
        return Vec::new();
    }
    vec![Removal {
        what: "the sleeps".into(),
        share,
        change: Ok(Change::SkippedCalls(SLEEPS.to_vec())),
    }]
}
