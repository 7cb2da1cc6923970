//! The calls by which locks wait and wake.

use crate::account::{Detail, Entry};
use crate::cost::Inspection;
use crate::facts::processes::ProcessId;
use crate::inspect::Sum;
use deadweight_trace::units::Ns;

/// The time on the path in the kernel's calls by which so many waits for a lock begin and end: two calls each.
pub(super) fn handing_over(found: &Inspection<'_, '_>, process: ProcessId, waits: u64) -> Ns {
    let of_locks = |entry: &&Entry| match entry.detail {
        Detail::Calls(group) => found.facts.call_groups.get(group).name == "futex",
        _ => false,
    };
    let calls = Sum::of(found.wall.in_process(process).filter(of_locks));
    calls.ns.part((2.0 * waits as f64 / calls.count.max(1) as f64).min(1.0))
}
