//! Findings about slow loops: what the classes of such loops share.
//!
//! - In: hot loops with their reasons.
//! - Out: the time on the path of the samples that show one, and words for it.
//! - Must not know: what to do about it. Each reason has its class.

use crate::account::AccountId;
use crate::facts::call_site::{CallSite, Weights, own_frame};
use crate::facts::hot_loops::memory::Reached;
use crate::facts::hot_loops::reason::Reason;
use crate::facts::hot_loops::{HotLoop, LoopSample};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::shares::{Own, samples_of};
use deadweight_report::wording::things;
use deadweight_trace::ids::StackId;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// The loops of a process that are slow for one kind of reason.
pub(crate) struct SlowLoops<'f, T> {
    /// Each with what the reason says.
    pub(crate) all: Vec<(&'f HotLoop, &'f T)>,
}

impl<'f, T> SlowLoops<'f, T> {
    /// Those whose reason `is` of that kind; none if there are none.
    pub(crate) fn of(
        found: &Inspection<'f, '_>,
        process: ProcessId,
        is: fn(&'f Reason) -> Option<&'f T>,
    ) -> Option<Self> {
        let loops = found.facts.hot_loops(process).iter();
        let all: Vec<_> = loops.filter_map(|hot| Some((hot, is(hot.reason.as_ref()?)?))).collect();
        (!all.is_empty()).then_some(Self { all })
    }

    /// All of their samples.
    pub(crate) fn samples(&self) -> impl Iterator<Item = &'f LoopSample> {
        self.all.iter().flat_map(|(hot, _)| &hot.samples)
    }

    /// The one with most samples.
    pub(crate) fn hottest(&self) -> Option<(&'f HotLoop, &'f T)> {
        self.all.iter().copied().max_by_key(|(hot, _)| hot.samples.len())
    }

    /// "A loop of app", "3 loops of app".
    pub(crate) fn name(&self, process: &str) -> String {
        match self.all.len() {
            1 => format!("A loop of {process}"),
            count => format!("{} of {process}", things(count as u64, "loop")),
        }
    }
}

/// The time on the path of some of the samples of loops.
#[derive(Clone, Debug)]
pub(crate) struct Waited {
    /// The time.
    pub(crate) ns: Ns,
    /// The time of all samples of these loops.
    pub(crate) of_loops: Ns,
    /// Where.
    pub(crate) places: Weights,
}

impl Waited {
    /// Of those samples of these loops that meet a condition, in accounts that count; none without a place in a source
    /// of the program's own.
    pub(crate) fn of<'l>(
        found: &Inspection<'_, '_>,
        process: ProcessId,
        samples: impl Iterator<Item = &'l LoopSample>,
        counts: fn(AccountId) -> bool,
        meets: impl Fn(&LoopSample) -> bool,
    ) -> Option<Self> {
        let mut by_stack: BTreeMap<StackId, (u64, u64)> = BTreeMap::new();
        for sample in samples {
            let of = by_stack.entry(sample.stack).or_default();
            *of = (of.0 + u64::from(meets(sample)), of.1 + 1);
        }
        let own = Own::of(found.wall, process);
        let (mut met, mut all, mut places) = (0.0, 0.0, Weights::new());
        for (account, site, amount) in samples_of(found, process) {
            let Some((hit, of)) = site.stack().and_then(|stack| by_stack.get(&stack)) else {
                continue;
            };
            if !counts(account) {
                continue;
            }
            let part = amount as f64 * *hit as f64 / *of as f64;
            (met, all) = (met + part, all + amount as f64);
            if *hit > 0 {
                places.entry(site).or_default().amount += amount * 1000 * hit / of;
            }
        }
        let symbols = found.facts.symbols();
        let has_line = |site: &CallSite| own_frame(symbols, *site).is_some_and(|(_, f)| f.line > 0);
        let known = places.keys().any(has_line);
        known.then(|| Self { ns: own.part(met), of_loops: own.part(all), places })
    }
}

/// The places of samples, where those in functions that a loop calls stand for the call.
pub(crate) fn at_calls(places: &Weights, loops: &[&HotLoop]) -> Weights {
    let called = |stack: StackId| {
        let of = |hot: &&HotLoop| {
            let other = |s: &LoopSample| s.stack == stack && s.function != hot.function;
            hot.samples.iter().any(other)
        };
        loops.iter().any(of)
    };
    let mut at_calls = Weights::new();
    for (site, weight) in places {
        let site = match site.stack() {
            Some(stack) if called(stack) => CallSite::Caller(stack),
            _ => *site,
        };
        at_calls.entry(site).or_default().amount += weight.amount;
    }
    at_calls
}

/// How many samples of a loop wait for these accesses, as evidence.
pub(crate) fn waits_behind(hot: &HotLoop, reached: &[Reached]) -> String {
    let samples: usize = reached.iter().map(|reached| reached.samples).sum();
    let access = match reached.len() {
        1 => "this access".into(),
        count => format!("{count} such accesses"),
    };
    format!(
        "{samples} of the loop's {} samples wait behind {access}; their registers give the address",
        hot.samples.len(),
    )
}

/// How fast a loop turns, as evidence.
pub(crate) fn turns(hot: &HotLoop) -> Option<String> {
    let speed = hot.speed?;
    Some(format!(
        "a turn took {:.1} ns, by the registers that count them; its instructions need about {:.1} ns if nothing is \
         waited for",
        speed.turn,
        speed.least_here()
    ))
}
