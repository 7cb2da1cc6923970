//! The kernel entry and exit cost of system calls, on the user side.
//!
//! The kernel records when a call begins and ends inside it. Entry and exit lie outside of that, where they
//! look like the program's own time. A sample that is due during them is taken in the kernel's first or
//! last steps, or at the first instruction after the call: that makes the time measurable. The kernel's
//! work for the call is not included.

use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, called_from, is_own};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::with_user_side;
use deadweight_report::account::OBSERVER;
use deadweight_trace::ids::{ImageId, LocationId, NameId};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// One sample must be small beside the measured time: calls that took fewer sample periods than this are
/// too short.
const PERIODS: u64 = 16;
/// The part of a call's entry and exit, in ns, that shows as the program's own time where the program is
/// stopped at its calls. Elsewhere calibration puts it into the call.
const USER_SIDE: u64 = 60;
/// Calibrations of one machine differ by so many ns a call.
const UNSURE: u64 = 30;
/// The cost of moving one piece to or from a buffer, which replaces a call.
const NS_PER_PIECE: u64 = 2;

/// The saving in the kernel, `ns`, if `count` calls at these `places` became a few, with the saving on the
/// user side. Without enough samples: the calibrated entry cost, at most half of the own time.
pub(crate) fn with_syscall_entry(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    ns: Ns,
    count: u64,
    places: &Weights,
) -> Ns {
    match own_side(found, process, ns, places) {
        // Entry and exit do not take longer than the call.
        Some(own) => ns + (own.min(ns) - Ns(count.saturating_mul(NS_PER_PIECE))),
        None => with_user_side(found, process, ns, count, user_side_per_call(found.facts)),
    }
}

/// The certain part of the saving `ns` in `count` calls.
pub(crate) fn at_least(found: &Inspection<'_, '_>, ns: Ns, count: u64) -> Ns {
    let stops = found.facts.trace.meta.rung == "stops";
    let tracing = found.wall.of(OBSERVER).share_of(found.wall.total);
    certain(ns, count, if stops { tracing } else { 0.0 })
}

/// The division of calls' time between user and kernel side is calibrated to some [`UNSURE`] ns each. A call that is
/// stopped at finds its data out of the caches, and the calibrated cost of a stop does not know how much: less is certain the
/// more of the run was `stopping`, 0 to 1.
fn certain(ns: Ns, count: u64, stopping: f64) -> Ns {
    let known = ns - Ns(count.saturating_mul(UNSURE)).min(ns.part(0.5));
    known.part(1.0 - stopping)
}

/// The part of a call on the user side, in ns.
pub(crate) fn user_side_per_call(facts: &Facts<'_>) -> u64 {
    if facts.trace.meta.rung == "stops" { USER_SIDE } else { 0 }
}

/// The process' own time on the entry and exit of the calls at these places: all that was not sampled
/// elsewhere. Samples in entry and exit are not counted, because recording a call takes time at the same
/// place: that time is already taken out, which is not possible for samples.
fn own_side(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    ns: Ns,
    places: &Weights,
) -> Option<Ns> {
    let facts = found.facts;
    let period = facts.trace.meta.sample_period;
    if period == 0 || ns.0 / period < PERIODS {
        return None;
    }
    let entries = EntryPoints::of(facts.symbols(), places);
    let (mut own, mut elsewhere) = (Ns::ZERO, 0);
    for entry in found.wall.user_time_of(process) {
        own += entry.ns;
        let in_entry = entry.samples.iter().filter(|(site, _)| entries.include(**site));
        elsewhere += entry.sampled().saturating_sub(in_entry.map(|(_, w)| w.amount).sum());
    }
    let each = period.saturating_sub(facts.overhead.sample);
    Some(own - Ns(elsewhere.saturating_mul(each)))
}

/// Where calls enter the kernel.
pub(super) struct EntryPoints<'s> {
    symbols: &'s Symbols,
    /// The addresses that they come from and return to.
    at: BTreeSet<(ImageId, u64)>,
    /// The library functions that make them, and the lines that call those.
    wrappers: BTreeSet<Wrapper>,
}

/// A library function that makes calls, and the program's own line that called it.
type Wrapper = (ImageId, NameId, (NameId, NameId, u32));

impl<'s> EntryPoints<'s> {
    pub(super) fn of(symbols: &'s Symbols, places: &Weights) -> Self {
        let mut entries = Self { symbols, at: BTreeSet::new(), wrappers: BTreeSet::new() };
        for site in places.keys() {
            let Some(leaf) = leaf(symbols, *site) else { continue };
            let Some(location) = symbols.locations.get(leaf.index()) else { continue };
            // A call's stack has its own address: one less than the return address. Samples in the kernel's
            // entry and exit have it, too.
            entries.at.extend([0, 1].map(|more| (location.image, location.addr.0 + more)));
            entries.wrappers.extend(wrapper(symbols, *site));
        }
        entries
    }

    /// Whether a sample at this site was taken in the entry or exit of one of these calls.
    pub(super) fn include(&self, site: CallSite) -> bool {
        let leaf = leaf(self.symbols, site).and_then(|id| self.symbols.locations.get(id.index()));
        leaf.is_some_and(|l| self.at.contains(&(l.image, l.addr.0)))
            || wrapper(self.symbols, site).is_some_and(|w| self.wrappers.contains(&w))
    }
}

fn leaf(symbols: &Symbols, site: CallSite) -> Option<LocationId> {
    symbols.stack(site.stack()?).first().copied()
}

/// The innermost function, if it is a library's, with the program's own line that called it.
fn wrapper(symbols: &Symbols, site: CallSite) -> Option<Wrapper> {
    let location = symbols.locations.get(leaf(symbols, site)?.index())?;
    let frame = location.frames.last().filter(|frame| !is_own(symbols, location, frame))?;
    Some((location.image, frame.function, called_from(symbols, site)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_is_certain_of_short_calls_and_where_each_was_stopped_at() {
        assert_eq!(certain(Ns(100_000), 1_000, 0.0), Ns(70_000));
        assert_eq!(certain(Ns(40_000), 1_000, 0.0), Ns(20_000), "at least half");
        assert_eq!(certain(Ns(100_000), 1_000, 0.5), Ns(35_000));
    }
}
