//! Callers of library code for which only the instruction was recorded.
//!
//! The instruction is known of every page fault, the stack of some. For an instruction in a library,
//! `memmove` for instance, stacks taken in the same function show its callers: faults without a stack are
//! divided among them. Instructions of the program's own code are left alone.

use super::{CallSite, Weight, Weights, is_own};
use deadweight_report::stats::apportion::apportion;
use deadweight_trace::symbols::Symbols;
use std::collections::BTreeMap;

/// Divides the weights of library instructions among the stacks taken in the same function. Counts
/// and amounts keep their sums; where no stack was taken, nothing changes.
pub(super) fn divided(symbols: &Symbols, weights: &Weights) -> Weights {
    let mut stacks: BTreeMap<&str, Vec<(CallSite, Weight)>> = BTreeMap::new();
    for (site, weight) in weights.iter().filter(|(s, _)| matches!(s, CallSite::Stack(_))) {
        if let Some(function) = library(symbols, *site) {
            stacks.entry(function).or_default().push((*site, *weight));
        }
    }
    let (mut all, mut alone) = (Weights::new(), BTreeMap::<&str, Weight>::new());
    for (site, weight) in weights {
        let function = matches!(site, CallSite::At(_)).then(|| library(symbols, *site)).flatten();
        match function.filter(|function| stacks.contains_key(function)) {
            Some(function) => sum(alone.entry(function).or_default(), *weight),
            None => sum(all.entry(*site).or_default(), *weight),
        }
    }
    // One division per function, however many instructions and stacks it has.
    for (function, weight) in alone {
        divide(&mut all, weight, &stacks[function]);
    }
    all
}

fn divide(all: &mut Weights, weight: Weight, stacks: &[(CallSite, Weight)]) {
    let amounts: Vec<u64> = stacks.iter().map(|(_, w)| w.amount.max(1)).collect();
    let counts = apportion(weight.count, &amounts);
    for (((site, _), count), amount) in
        stacks.iter().zip(counts).zip(apportion(weight.amount, &amounts))
    {
        sum(all.entry(*site).or_default(), Weight { count, amount });
    }
}

fn sum(sum: &mut Weight, more: Weight) {
    sum.count += more.count;
    sum.amount += more.amount;
}

/// The function of the innermost frame, if it is not the program's own.
fn library(symbols: &Symbols, site: CallSite) -> Option<&str> {
    let (location, frame) = site.frames(symbols).next()?;
    let function = symbols.name(frame.function);
    (!function.is_empty() && !is_own(symbols, location, frame)).then_some(function)
}
