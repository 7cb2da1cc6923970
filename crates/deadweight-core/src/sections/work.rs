//! The program's own work by function of machine code: the part of the row `net-work` in each function, the
//! functions inlined there, and the small functions it calls.
//!
//! Two builds of one program divide their work differently among functions; `compare` joins the parts
//! again. Not for showing: `top` lists what a reader wants to see.

use crate::account::Attribution;
use crate::account::NET_WORK;
use crate::cost::called_small;
use crate::facts::Facts;
use deadweight_report::report::{FunctionWork, Report};
use deadweight_report::stats::apportion::apportion;
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// Functions with less than this share of the work are left out.
const SMALL: f64 = 0.002;

/// What is known of one function.
#[derive(Default)]
struct Code<'s> {
    samples: u64,
    inlined: BTreeSet<&'s str>,
    calls: BTreeSet<&'s str>,
}

/// The functions of the wall time.
pub(crate) fn by_function(facts: &Facts<'_>, wall: &Attribution) -> Vec<FunctionWork> {
    let symbols: &Symbols = facts.symbols();
    let mut functions: BTreeMap<&str, Code<'_>> = BTreeMap::new();
    for entry in wall.user_time() {
        for (site, weight) in &entry.samples {
            let Some(sample) = site.stack().map(|stack| facts.sample(stack)) else { continue };
            let name = |id| symbols.name(facts.machine.code(id).name);
            let Some(function) = sample.waited.function.map(name) else { continue };
            let code = functions.entry(function).or_default();
            let at = symbols.locations.get(sample.waited.at.index());
            let frames = at.map_or(&[][..], |at| &at.frames[..at.frames.len().saturating_sub(1)]);
            code.inlined.extend(frames.iter().map(|frame| symbols.name(frame.function)));
            if entry.account == NET_WORK {
                code.samples += weight.amount;
            }
            if let Some(callee) = called_small(&sample).map(|called| name(called.function))
                && callee != function
            {
                code.calls.insert(callee);
            }
        }
    }
    let whole: Ns = wall.in_account(NET_WORK).map(|entry| entry.ns).sum();
    let weights: Vec<u64> = functions.values().map(|code| code.samples).collect();
    let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect();
    let work = functions.into_iter().zip(apportion(whole.0, &weights)).map(|((name, code), ns)| {
        let function = name.to_owned();
        FunctionWork { function, ns, inlined: owned(code.inlined), calls: owned(code.calls) }
    });
    kept(work.collect())
}

/// The mean of several runs, whose ledgers are shares of `target`.
pub(crate) fn pooled(
    runs: &[Report],
    net: impl Fn(&Report) -> u64,
    target: u64,
) -> Vec<FunctionWork> {
    let mut functions: BTreeMap<&str, (f64, FunctionWork)> = BTreeMap::new();
    for run in runs {
        for work in &run.work {
            let (share, known) = functions.entry(&work.function).or_default();
            *share += work.ns as f64 / net(run).max(1) as f64 / runs.len() as f64;
            known.function.clone_from(&work.function);
            for (into, more) in
                [(&mut known.inlined, &work.inlined), (&mut known.calls, &work.calls)]
            {
                into.extend(more.iter().cloned());
                into.sort_unstable();
                into.dedup();
            }
        }
    }
    let scaled = functions.into_values().map(|(share, work)| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of it")]
        let ns = (share * target as f64) as u64;
        FunctionWork { ns, ..work }
    });
    kept(scaled.collect())
}

fn kept(mut work: Vec<FunctionWork>) -> Vec<FunctionWork> {
    let whole: u64 = work.iter().map(|work| work.ns).sum();
    work.retain(|work| {
        work.ns as f64 >= SMALL * whole as f64 && work.ns > 0 || !work.calls.is_empty()
    });
    work.sort_by_key(|work| std::cmp::Reverse(work.ns));
    work
}
