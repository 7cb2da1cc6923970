//! The part of what was charged that lies under one function (`--in`).
//!
//! The program's own time is divided by its samples; calls, faults and waits by the stacks that were taken
//! at them. Time without a stack (a wait for a CPU, an interrupt) is taken in proportion to the own time of
//! its process. Start-up, exit, tracing overhead and the time of other programs are outside.

use super::{AccountId, Attribution, Detail, EXIT, Entry, OBSERVER, in_process};
use crate::facts::call_site::{CallSite, Weights, amount};
use crate::facts::processes::ProcessId;
use deadweight_trace::ids::NameId;
use deadweight_trace::symbols::{SourceFrame, Symbols};
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// A function as a reader names it: `parse` also means `query::parse` and `(*parser).parse`.
#[derive(Debug)]
pub(crate) struct Function {
    names: BTreeSet<NameId>,
}

impl Function {
    /// The functions of the trace that `name` fits.
    pub(crate) fn named(symbols: &Symbols, name: &str) -> Self {
        let functions: BTreeSet<NameId> =
            symbols.locations.iter().flat_map(|l| l.frames.iter().map(|f| f.function)).collect();
        let names = functions.into_iter().filter(|id| fits(symbols.name(*id), name)).collect();
        Self { names }
    }

    /// Whether a frame belongs to it.
    pub(crate) fn is(&self, frame: &SourceFrame) -> bool {
        self.names.contains(&frame.function)
    }

    /// Whether a place is under it.
    pub(crate) fn holds(&self, symbols: &Symbols, site: CallSite) -> bool {
        site.frames(symbols).any(|(_, frame)| self.is(frame))
    }
}

/// Whether `name` means `function`: in full, or by its last parts.
fn fits(function: &str, name: &str) -> bool {
    let bare =
        function.split_once('(').filter(|(head, _)| !head.is_empty() && !head.ends_with('.'));
    let plain = bare.map_or(function, |(head, _)| head);
    [function, plain].into_iter().any(|whole| {
        whole == name
            || whole
                .strip_suffix(name)
                .is_some_and(|before| before.ends_with([':', '.', '/', ' ', '>']))
    })
}

impl Attribution {
    /// The part of it that was spent under `function`. Empty if the function was not seen.
    pub(crate) fn inside(&self, symbols: &Symbols, function: &Function) -> Self {
        let holds = |site: &CallSite| function.holds(symbols, *site);
        let mut own: BTreeMap<ProcessId, (u64, u64)> = BTreeMap::new();
        for entry in self.user_time() {
            let sum = own.entry(entry.process).or_default();
            let inside = entry.samples.iter().filter(|(site, _)| holds(site));
            sum.0 += inside.map(|(_, weight)| weight.amount).sum::<u64>();
            sum.1 += entry.sampled();
        }
        let share = |process| {
            let (inside, all) = own.get(&process).copied().unwrap_or_default();
            inside as f64 / all.max(1) as f64
        };
        let parts = self.entries.iter().map(|entry| entry.part(share(entry.process), &holds));
        let entries: Vec<Entry> = parts.flatten().filter(|entry| entry.ns > Ns::ZERO).collect();
        let in_process = in_process(&entries, self.in_process.len());
        // Time of other programs is in no part.
        Self::of_entries(entries, in_process, Ns::ZERO)
    }
}

impl Entry {
    /// The part of it for which `holds` is true; `share` is that of its process' own time.
    fn part(&self, share: f64, holds: &dyn Fn(&CallSite) -> bool) -> Option<Self> {
        let outside = [OBSERVER, EXIT, AccountId::of_class("start-up")];
        if outside.contains(&self.account) || self.is_disturbance() {
            return None;
        }
        let kept = |weights: &Weights| {
            let kept = weights.iter().filter(|(site, _)| holds(site));
            kept.map(|(site, weight)| (*site, *weight)).collect::<Weights>()
        };
        let (sites, samples) = (kept(&self.sites), kept(&self.samples));
        let part = match self.detail {
            Detail::Held(_) => share,
            _ if self.is_sampled() => ratio(amount(&samples), self.sampled()),
            _ if amount(&self.sites) > 0 => ratio(amount(&sites), amount(&self.sites)),
            _ => share,
        };
        let count = Ns(self.count).part(part).0;
        let recording = (amount(&samples), 0);
        let (ns, alone) = (self.ns.part(part), self.alone.part(part));
        Some(Self { ns, alone, count, sites, samples, recording, ..self.clone() })
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn functions_go_by_their_last_parts() {
        for (function, name) in [
            ("query::parse", "parse"),
            ("main.(*window).feed", "feed"),
            ("main.(*window).feed", "(*window).feed"),
            ("Session::receive(std::string_view)", "receive"),
            ("sum", "sum"),
        ] {
            assert!(fits(function, name), "{function} {name}");
        }
        for (function, name) in
            [("checksum", "sum"), ("query::parse", "query"), ("a::b(c::d)", "d")]
        {
            assert!(!fits(function, name), "{function} {name}");
        }
    }
}
