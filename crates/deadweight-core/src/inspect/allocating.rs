//! The cost of allocating in a process: time in the allocator, in library functions that are mostly
//! allocation, and waits for allocator and collector.
//!
//! Used by `allocation`, `gc` and `growth`. They judge whether it is worth a finding.

use super::shares::{Share, samples_of};
use super::{Inspection, parts_of_tasks};
use crate::account::{AccountId, Detail, OBSERVER};
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::path::cpu_holder::CpuHolder;
use deadweight_code::symbol_role::SymbolRole;
use deadweight_trace::ids::{NameId, TaskId};
use deadweight_trace::symbols::SourceFrame;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// The class whose account holds the allocator's time.
const CLASS: &str = "allocation";
/// A library function is mostly allocation if this share of its time is.
const MOSTLY: f64 = 0.5;
/// The part of the remaining time that is saved too. From pairs of programs, as the share of allocating and
/// the share of the time that was saved without it: C++ 26 and 33 %, Rust 48 to 52 and 57 to 60 %, Go 86 and
/// 94 %.
const WAITING: f64 = 0.35;
/// A library function that copies fills what it allocates if this share of its time is allocation.
const FILLS_IT: f64 = 0.2;
/// Call sites of samples outside the allocator, in library functions that are mostly allocation: judged by
/// the calling line of the program and the function.
pub(crate) fn mostly_allocation(
    found: &Inspection<'_, '_>,
    process: ProcessId,
) -> BTreeSet<CallSite> {
    let account = AccountId::of_class(CLASS);
    let mut calls: BTreeMap<Call, (u64, u64)> = BTreeMap::new();
    for (claimed, site, amount) in samples_of(found, process) {
        let inside = u64::from(claimed == account) * amount;
        for key in library_calls(found, site) {
            let call = calls.entry(key).or_default();
            *call = (call.0 + amount, call.1 + inside);
        }
    }
    let copies = AccountId::of_class("buffer-copies");
    // A copy into memory that the same call allocates is saved with it; growth is another finding.
    let goes = |claimed: AccountId, site: CallSite| {
        let grows = || site.stack().is_some_and(|s| found.facts.sample(s).under(SymbolRole::Grow));
        let least = if claimed == copies && !grows() { FILLS_IT } else { MOSTLY };
        library_calls(found, site).iter().any(|call| {
            let (all, inside) = calls.get(call).copied().unwrap_or_default();
            inside as f64 >= least * all as f64
        })
    };
    samples_of(found, process)
        .filter(|(claimed, ..)| *claimed != account && *claimed != AccountId::of_class("gc"))
        .filter(|(claimed, site, _)| goes(*claimed, *site))
        .map(|(_, site, _)| site)
        .collect()
}

/// What to do where Go's `+` puts texts together, if most of what a process allocates and copies comes from there.
pub(crate) fn joins_texts(found: &Inspection<'_, '_>, process: ProcessId) -> Option<&'static str> {
    let symbols = found.facts.symbols();
    let counted = [CLASS, "buffer-copies"].map(AccountId::of_class);
    let (mut joined, mut all) = (0.0, 0.0);
    for (_, site, amount) in samples_of(found, process).filter(|(of, ..)| counted.contains(of)) {
        let joins = |(_, frame): (_, &SourceFrame)| {
            symbols.name(frame.function).starts_with("runtime.concatstring")
        };
        all += amount as f64;
        joined += if site.frames(symbols).any(joins) { amount as f64 } else { 0.0 };
    }
    (joined > 0.0 && joined >= MOSTLY * all).then_some(
        "Put the text together in a strings.Builder (WriteString; Grow where the size is known) or with strings.Join, \
         instead of `+` or `+=` in a loop: each of them copies all that came before.",
    )
}

/// The allocator's own time in a process, and what is saved with it.
pub(crate) struct Allocating {
    /// In the allocator.
    pub(crate) share: Share,
    /// In library functions that are mostly allocation.
    pub(crate) beside: Ns,
}

impl Allocating {
    pub(crate) fn of(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Self> {
        let share = Share::of(found.wall, AccountId::of_class(CLASS), process)?;
        let sites = mostly_allocation(found, process);
        let with = samples_of(found, process).filter(|(_, site, _)| sites.contains(site));
        let beside = share.time_of(with.map(|(.., amount)| amount).sum());
        Some(Self { share, beside })
    }

    /// The saving of all of it and of `more`: with a part of the rest.
    pub(crate) fn saving(&self, more: Ns) -> Ns {
        self.share.with_the_rest(self.share.ns + self.beside + more, WAITING)
    }
}

/// A line of the program, and a library function that it calls, directly or not.
type Call = (SourceFrame, NameId);

/// The library functions between a sample and the program's own innermost frame, with its line.
fn library_calls(found: &Inspection<'_, '_>, site: CallSite) -> Vec<Call> {
    let Some(stack) = site.stack() else { return Vec::new() };
    let sample = found.facts.sample(stack);
    let mut frames = sample.frames().map(|(_, frame)| *frame);
    let library: Vec<SourceFrame> = frames.by_ref().take(sample.symbol_roles.len()).collect();
    let Some(own) = frames.next().filter(|_| sample.own.is_some()) else { return Vec::new() };
    let mut calls: Vec<Call> = library.iter().map(|frame| (own, frame.function)).collect();
    calls.sort_unstable();
    calls.dedup();
    calls
}

/// Time that threads of a program with a collector wait for each other, and spend in the kernel, for
/// allocating and collecting: the larger of the two findings reports both.
pub(crate) fn waited(found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
    let symbol_roles =
        [SymbolRole::Allocate, SymbolRole::Grow, SymbolRole::Release, SymbolRole::Collect];
    waits_caused_by(found, process, &[CLASS, "gc"], &symbol_roles)
}

/// Whether a function stops all threads because the program asks the runtime about itself, not for memory.
fn asks_runtime(function: &str) -> bool {
    ["runtime.ReadMemStats", "runtime.Stack", "runtime.GC"].contains(&function)
        || function.starts_with("runtime/debug.")
}

/// How long the process waited for these accounts' work, or was in the kernel for it: without a CPU while
/// its own threads had it for that work, and in calls, faults and waits under functions with these symbol
/// roles.
pub(crate) fn waits_caused_by(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    accounts: &[&str],
    symbol_roles: &[SymbolRole],
) -> Ns {
    let mut parts: BTreeMap<TaskId, f64> = BTreeMap::new();
    for account in accounts {
        for (task, part) in parts_of_tasks(found.facts, AccountId::of_class(account), process) {
            *parts.entry(task).or_default() += part;
        }
    }
    let under = |site: &CallSite| {
        let sample = site.stack().map(|stack| found.facts.sample(stack));
        sample.is_some_and(|sample| {
            let asked_for = || found.facts.symbols().functions(sample.stack).any(asks_runtime);
            symbol_roles.iter().any(|symbol_role| sample.under(*symbol_role)) && !asked_for()
        })
    };
    let entries = found.wall.entries.iter();
    let unsampled = entries
        .filter(|e| e.process == process && !e.account.is_sampled() && e.account != OBSERVER);
    let with_it = unsampled.map(|entry| match entry.detail {
        Detail::Held(CpuHolder::Own(task)) => {
            entry.ns.part(parts.get(&task).copied().unwrap_or(0.0))
        }
        // The next task to touch the memory would have its faults instead.
        Detail::Held(_) | Detail::Faults => Ns::ZERO,
        _ => {
            let sites = entry.sites.iter().filter(|(site, _)| under(site));
            Ns(sites.map(|(_, weight)| weight.amount).sum()).min(entry.ns)
        }
    });
    with_it.sum()
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{computing, weighed};

    #[test]
    fn texts_put_together_by_go_get_advice_about_a_builder_and_other_copies_do_not() {
        let remedies = |copies: &str, allocates: &str| -> Vec<String> {
            let by = |what: &str| format!("{what} <- main.join (main.go:9) <- main.main");
            let (copies, allocates) = (by(copies), by(allocates));
            let rest = (40, "main.join (main.go:10) <- main.main");
            let text = computing("Go", &[(40, &copies), (20, &allocates), rest]);
            weighed(&text).findings.into_iter().map(|finding| finding.remedy).collect()
        };
        let joined = "runtime.concatstrings <- runtime.concatstring2";
        let texts = remedies(
            &format!("runtime.memmove <- {joined}"),
            &format!("runtime.mallocgc <- runtime.rawstring <- runtime.rawstringtmp <- {joined}"),
        );
        let builds = |text: &String| text.contains("strings.Builder (WriteString");
        assert!(!texts.is_empty() && texts.iter().all(builds), "{texts:?}");
        let others = remedies(
            "runtime.memmove <- bytes.(*Buffer).Write",
            "runtime.mallocgc <- runtime.newobject",
        );
        assert!(!others.is_empty() && !others.iter().any(builds), "{others:?}");
    }
}
