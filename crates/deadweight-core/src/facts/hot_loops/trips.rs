//! How many turns a loop makes each time that it is entered, from its counter and the end that it is compared with.
//!
//! Samples are too far apart to see one run of a short loop, but each shows how many turns are left: most of what is left
//! at any sample is a run. Not for how fast it turns.

use super::HotLoop;
use crate::facts::Facts;
use deadweight_code::instruction::{Kind, Reg};
use deadweight_code::{Cycle, Step};

/// The turns of a run, at most; none if no comparison shows them.
pub(super) fn trips(facts: &Facts<'_>, hot: &HotLoop) -> Option<f64> {
    let cycle = hot.cycle(facts)?;
    let counters = cycle.counters();
    let compared = cycle.instructions().filter(|i| i.kind == Kind::Compare && i.memory.is_none());
    let runs = compared.filter_map(|compare| {
        let (counter, by) = counters.iter().find_map(|(counter, step)| match step {
            Step::By(by) if compare.reads.has(*counter) => Some((*counter, *by)),
            _ => None,
        })?;
        let mut others = compare.reads.iter().filter(|register| *register != counter);
        match (others.next(), others.next()) {
            (Some(end), None) => to_register(hot, &cycle, (counter, by), end),
            (None, _) => Some(to_number(hot, counter, by)),
            _ => None,
        }
    });
    runs.min_by(f64::total_cmp)
}

/// The most turns that were left at a sample, where a register holds the end.
fn to_register(
    hot: &HotLoop,
    cycle: &Cycle<'_>,
    (counter, by): (Reg, i64),
    end: Reg,
) -> Option<f64> {
    let own = hot.samples.iter().filter(|sample| sample.function == hot.function);
    let mut most: Option<f64> = None;
    for sample in own.filter(|_| cycle.is_constant(end)) {
        let value = |register: Reg| sample.general.get(register.index()).copied();
        let left = value(end)?.wrapping_sub(value(counter)?).cast_signed() as f64 / by as f64;
        if left < -1.0 {
            return None;
        }
        most = Some(most.unwrap_or(0.0).max(left + 1.0));
    }
    most
}

/// The way of a counter that ends at a number, in turns.
fn to_number(hot: &HotLoop, counter: Reg, by: i64) -> f64 {
    let own = hot.samples.iter().filter(|sample| sample.function == hot.function);
    let values = own.filter_map(|sample| sample.general.get(counter.index()).copied());
    let (low, high) = values.fold((u64::MAX, 0), |(low, high), v| (low.min(v), high.max(v)));
    high.saturating_sub(low) as f64 / by.unsigned_abs().max(1) as f64 + 1.0
}
