//! System calls that a finding may save, and the work around them.

pub(crate) mod entry_cost;
pub(crate) mod interpreter;
mod on_the_way;
pub(crate) mod small_calls;

use crate::facts::call_site::{Weights, entered};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// Library code around system calls, as own time of a process: one of both is 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct LibraryCode {
    /// In the library functions that the program's lines call, all of it.
    pub(crate) whole: Ns,
    /// In those of their functions that lead to the calls.
    pub(crate) on_the_way: Ns,
}

impl LibraryCode {
    /// That in the library functions that `places` were called through, from the same lines: the work around a call
    /// (building paths, buffers, descriptors) goes when the line goes. A library may do other work below that line, which
    /// stays: if it is more than the calls' own time, `ns`, only what is on the way to them counts.
    pub(crate) fn around(
        found: &Inspection<'_, '_>,
        process: ProcessId,
        places: &Weights,
        ns: Ns,
    ) -> Self {
        let symbols = found.facts.symbols();
        let through: BTreeSet<_> =
            places.keys().filter_map(|site| entered(symbols, *site)).collect();
        let there = |site| entered(symbols, site).is_some_and(|e| through.contains(&e));
        let whole: Ns = found.wall.user_time_of(process).map(|entry| entry.sampled_at(there)).sum();
        if whole > ns {
            Self { whole: Ns::ZERO, on_the_way: on_the_way::time(found, process, places, ns) }
        } else {
            Self { whole, on_the_way: Ns::ZERO }
        }
    }

    /// Both.
    pub(crate) fn all(&self) -> Ns {
        self.whole + self.on_the_way
    }
}
