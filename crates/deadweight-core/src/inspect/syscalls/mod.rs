//! System calls that a finding may save, and the work around them.

pub(crate) mod entry_cost;
pub(crate) mod interpreter;
pub(crate) mod small_calls;

use crate::facts::call_site::{Weights, entered};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// Own time of a process in the library functions that `places` were called through, from the same lines: the
/// work around a call (building paths, buffers, descriptors) goes when the line goes. A library may do other
/// work below that line, which stays: more than the calls' own time, `ns`, is not taken for work around them.
pub(crate) fn library_code_for(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    places: &Weights,
    ns: Ns,
) -> Ns {
    let symbols = found.facts.symbols();
    let through: BTreeSet<_> = places.keys().filter_map(|site| entered(symbols, *site)).collect();
    let there = |site| entered(symbols, site).is_some_and(|e| through.contains(&e));
    let around: Ns = found.wall.user_time_of(process).map(|entry| entry.sampled_at(there)).sum();
    if around > ns { Ns::ZERO } else { around }
}
