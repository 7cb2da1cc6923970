//! Growth piece by piece in a program with a collector: a slice by append, a text by `+=`.
//!
//! Every step allocates memory, copies the old contents and leaves the old memory to the collector: one
//! cause, with its cost in three accounts. Where growth causes most of all three, the finding of the copies
//! reports all. Not a class: used by `buffer_copies`, `allocation` and `gc`.

use super::Inspection;
use super::allocating::{Allocating, waited};
use super::shares::{Share, samples_of};
use crate::account::AccountId;
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use deadweight_code::symbol_role::{self, SymbolRole};
use deadweight_trace::units::Ns;

/// Growth is the cause if it is this share of what the program's own lines allocate, copy and collect.
const MOST: f64 = 0.7;
/// With a smaller share of copies, the cost is the allocating.
const COPIES: f64 = 0.1;

/// The title of a finding about blocks that the program's own lines enlarge.
pub(crate) const GROWTH: &str = "memory grown piece by piece";

/// Whether a line of the program enlarges a block of memory itself, and this is the allocator's part of it.
/// Growth of containers is recognised by the container's functions.
pub(crate) fn is_by_hand(sample: &UserSample<'_>) -> bool {
    let outermost = sample.symbol_roles.len().checked_sub(1).filter(|_| sample.own.is_some());
    let Some((_, frame)) = outermost.and_then(|at| sample.frames().nth(at)) else { return false };
    symbol_role::is_realloc(sample.symbols.name(frame.function))
}

/// What is saved with the copies of growth: allocating, collecting, and waiting for both. None if growth
/// does not cause most of that.
pub(crate) fn saved_with_growth(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Ns> {
    if !["Go", "Crystal"].contains(&&*found.facts.processes.get(process).language) {
        return None;
    }
    let account = AccountId::of_class;
    let copies = account("buffer-copies");
    let of_it = [account("allocation"), account("gc"), account("zeroing"), copies];
    let (mut all, mut grown, mut copied) = (0_u64, 0_u64, 0_u64);
    for (claimed, site, amount) in samples_of(found, process) {
        let sample = site.stack().map(|stack| found.facts.sample(stack));
        let Some(sample) = sample.filter(|s| of_it.contains(&claimed) && s.own.is_some()) else {
            continue;
        };
        all += amount;
        if grows(&sample) {
            grown += amount;
            copied += u64::from(claimed == copies) * amount;
        }
    }
    if grown == 0 || (grown as f64) < MOST * all as f64 || (copied as f64) < COPIES * grown as f64 {
        return None;
    }
    if marking(found, process) > copied {
        return None;
    }
    let allocating = Allocating::of(found, process)?;
    let own = |id| Share::of(found.wall, account(id), process).map_or(Ns::ZERO, |share| share.ns);
    let waited = waited(found, process);
    Some(allocating.share.ns + own("gc") + own("zeroing") + waited)
}

/// Samples in which a collector follows live pointers, on any thread: what is grown and given up costs it sweeping, but no
/// marking.
fn marking(found: &Inspection<'_, '_>, process: ProcessId) -> u64 {
    let symbols = found.facts.symbols();
    let gc = AccountId::of_class("gc");
    let marks = |site: &CallSite| {
        site.stack().is_some_and(|stack| symbols.functions(stack).any(symbol_role::marks))
    };
    let entries = found.cpu.user_time_of(process).filter(|entry| entry.account == gc);
    let samples = entries.flat_map(|entry| &entry.samples);
    samples.filter(|(site, _)| marks(site)).map(|(_, weight)| weight.amount).sum()
}

/// Whether a container or a text is enlarged.
fn grows(sample: &UserSample<'_>) -> bool {
    let concatenates = || {
        let mut library = sample.frames().take(sample.symbol_roles.len());
        library.any(|(_, f)| sample.symbols.name(f.function).starts_with("runtime.concatstring"))
    };
    let adds = || {
        let line = sample.own_frame().map(|(_, frame)| sample.symbols.source_line(frame));
        line.is_some_and(|line| line.contains("+="))
    };
    sample.under(SymbolRole::Grow) || concatenates() && adds()
}
