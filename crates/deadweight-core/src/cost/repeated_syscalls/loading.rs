//! The function that loads a file each time: what it makes of the contents need not be made again either.

use crate::account::Entry;
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, heaviest, is_own};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::same_files::{SeenOpenings, opened_paths};
use deadweight_report::wording::time;
use deadweight_trace::ids::NameId;
use deadweight_trace::units::Ns;

/// The process's own time in the program's function that makes most of these calls. Nothing if no other function of the
/// program calls it: it may do everything.
pub(super) fn of_function(found: &Inspection<'_, '_>, process: ProcessId, places: &Weights) -> Ns {
    let symbols = found.facts.symbols();
    let own = |site: CallSite| -> Vec<NameId> {
        let frames = site.frames(symbols).filter(|(at, frame)| is_own(symbols, at, frame));
        frames.map(|(_, frame)| frame.function).collect()
    };
    let [function, _, ..] = own(heaviest(places))[..] else { return Ns::ZERO };
    let there = |entry: &Entry| {
        let samples = entry.samples.iter().filter(|(site, _)| own(**site).contains(&function));
        let samples: u64 = samples.map(|(_, weight)| weight.amount).sum();
        entry.ns.part(samples as f64 / entry.sampled().max(1) as f64)
    };
    found.wall.user_time_of(process).map(there).sum()
}

/// What else is known: library code around the calls, and of how many paths they are.
pub(super) fn evidence(
    facts: &Facts<'_>,
    process: ProcessId,
    around: Ns,
    is_of_files: bool,
) -> Vec<String> {
    let library = (around > Ns::ZERO)
        .then(|| format!("{} more in library code around these calls", time(around)));
    let paths = is_of_files.then(|| {
        opened_paths(facts, process).or_else(|| SeenOpenings::of(facts, process).sentence())
    });
    library.into_iter().chain(paths.flatten()).collect()
}
