//! The functions that load a file each time: what they make of the contents need not be made again either.

use super::CLASS;
use crate::account::{AccountId, Detail, Entry};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, is_own};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::same_files::{SeenOpenings, is_read_of_files, opened_paths};
use crate::inspect::syscalls::interpreter;
use deadweight_report::wording::time;
use deadweight_trace::ids::NameId;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// A function makes these calls if it makes at least one in so many of them.
const MAKES: u64 = 10;

/// The process's own time in the program's functions that make these calls. Without those that no other function of the
/// program calls: they may do everything.
pub(super) fn of_functions(found: &Inspection<'_, '_>, process: ProcessId, places: &Weights) -> Ns {
    let symbols = found.facts.symbols();
    let own = |site: CallSite| -> Vec<NameId> {
        let frames = site.frames(symbols).filter(|(at, frame)| is_own(symbols, at, frame));
        frames.map(|(_, frame)| frame.function).collect()
    };
    let mut calls: BTreeMap<NameId, u64> = BTreeMap::new();
    let mut all = 0;
    for (site, weight) in places {
        all += weight.count;
        if let [function, _, ..] = own(*site)[..] {
            *calls.entry(function).or_default() += weight.count;
        }
    }
    calls.retain(|_, calls| *calls * MAKES >= all);
    let loads = |site: CallSite| own(site).iter().any(|function| calls.contains_key(function));
    found.wall.user_time_of(process).map(|entry| entry.sampled_at(loads)).sum()
}

/// Reading the kernel's files, which is needed as long as they are asked: what does not change, need not be.
pub(super) fn of_live_files(found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
    let reads = |entry: &&Entry| {
        let Detail::Calls(group) = entry.detail else { return false };
        let claimed = entry.account == AccountId::of_class(CLASS.id);
        !claimed && is_read_of_files(found.facts.call_groups.get(group))
    };
    let entries = found.wall.entries.iter().filter(|entry| entry.process == process);
    entries.filter(reads).map(|entry| entry.ns).sum()
}

/// What else is known: library code around the calls, and of how many paths they are.
pub(super) fn evidence(
    facts: &Facts<'_>,
    process: ProcessId,
    (around, interpreted): (Ns, Ns),
    is_of_files: bool,
) -> Vec<String> {
    let library = (around > Ns::ZERO)
        .then(|| format!("{} more in library code around these calls", time(around)));
    let paths = is_of_files.then(|| {
        opened_paths(facts, process).or_else(|| SeenOpenings::of(facts, process).sentence())
    });
    library.into_iter().chain(interpreter::evidence(interpreted)).chain(paths.flatten()).collect()
}
