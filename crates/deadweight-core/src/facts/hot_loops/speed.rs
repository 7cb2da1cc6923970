//! How fast a loop turns, by registers that count its turns.
//!
//! Between two samples of one thread a counter moves by so many steps: the time between them, divided by the steps, is
//! the time of a turn, without any disturbance. A loop that is over before the next sample begins again in the
//! meantime; then the counters of the loops around it tell how often, and how far this one counts is seen from its
//! samples. Not for why a turn takes as long.

use super::{HotLoop, LoopSample};
use crate::facts::Facts;
use deadweight_code::instruction::Reg;
use deadweight_code::machine_code::FunctionId;
use deadweight_code::{Cycle, Step};
use deadweight_trace::ids::LocationId;
use deadweight_trace::units::FileAddr;
use std::collections::BTreeSet;

/// So many callers of a loop's function may count its runs.
const CALLERS: usize = 2;
/// Loops in each other that are regarded.
const LEVELS: usize = 3;
/// Fewer pairs of samples do not tell.
const PAIRS: usize = 10;
/// The middle half of the pairs differs by this part of the median, at most.
const SPREAD: f64 = 0.5;
/// So many of the pairs go forward.
const FORWARD: f64 = 0.6;
/// Samples further apart than this many periods are not paired: the thread did something else in between.
const APART: u64 = 3;
/// Nanoseconds of a cycle: that of a CPU of 2.5 GHz. A faster one makes a loop look less slow than it is. Where the CPU's own
/// was measured, see [`Speed::ratio_here`].
const CYCLE: f64 = 0.4;

/// Up to so many times the cycles in which elements wait for those before them are explained by that.
const PASSED_ON: f64 = 1.5;

/// A turn that took less than this part of the least time was no turn: the register counts something else.
const FASTEST: f64 = 0.2;
/// From one sample to the next, a loop goes this part of its way at most: one that was over several times in between
/// may seem to have gone any part.
const OF_ITS_WAY: f64 = 0.125;
/// The same where loops around it count its runs: their ways are longer.
const OF_SEVERAL: f64 = 0.34;

/// How fast a loop turns.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Speed {
    /// The time of a turn, in ns.
    pub(crate) turn: f64,
    /// The least time of a turn, in ns, if nothing is waited for; at 2.5 GHz, as the next.
    pub(crate) least: f64,
    /// The time in ns in which its instructions can begin, if none waits for another.
    pub(crate) begun: f64,
    /// A cycle of the CPU as a part of one at 2.5 GHz; 1 if that was not measured.
    here: f64,
}

impl Speed {
    /// How many times as long as needed a turn takes.
    pub(crate) fn ratio(&self) -> f64 {
        self.turn / self.least
    }

    /// The least time of a turn on the CPU that it ran on.
    pub(crate) fn least_here(&self) -> f64 {
        self.least * self.here
    }

    /// The time in which its instructions can begin on that CPU.
    pub(crate) fn begun_here(&self) -> f64 {
        self.begun * self.here
    }

    /// The ratio to the least time there.
    pub(crate) fn ratio_here(&self) -> f64 {
        self.turn / self.least_here()
    }
}

/// A loop's counter, read at a sample in turns.
struct Counter {
    register: Reg,
    step: Step,
}

impl Counter {
    /// The number of turns that the register stands for.
    fn turns(&self, general: &[u64; 32]) -> Option<f64> {
        let value = general.get(self.register.index())?.cast_signed();
        let step = match self.step {
            Step::By(by) => by,
            Step::Of(by, times) => general
                .get(by.index())?
                .cast_signed()
                .checked_mul(times)
                .filter(|step| *step != 0)?,
        };
        Some(value as f64 / step as f64)
    }
}

/// The first counter of a loop that no function below it changes.
fn counter(cycle: &Cycle<'_>, free: impl Fn(Reg) -> bool) -> Option<Counter> {
    let mut found = cycle.counters().into_iter().filter(|(register, _)| free(*register));
    found.next().map(|(register, step)| Counter { register, step })
}

/// The value of the innermost counter of a loop at its samples, in turns; none without a counter.
pub(crate) fn positions(facts: &Facts<'_>, hot: &HotLoop) -> Option<Vec<f64>> {
    let counters = of(facts, hot);
    let first = counters.first()?;
    hot.samples.iter().map(|sample| first.turns(&sample.general)).collect()
}

/// The counters of a loop and of those around it, also in the callers of its function; innermost first, as far as each
/// has one.
fn of(facts: &Facts<'_>, hot: &HotLoop) -> Vec<Counter> {
    let machine = &facts.machine;
    let mut below: BTreeSet<_> = hot.samples.iter().map(|s| s.function).collect();
    below.remove(&hot.function);
    let mut found = Vec::new();
    let mut place = Some((hot.function, hot.head));
    let mut callers = callers(facts, hot).into_iter();
    while let Some((function, at)) = place {
        let code = machine.function(function);
        for cycle in code.cycles_around(at) {
            let free = |register| below.iter().all(|id| !machine.function(*id).changes(register));
            let Some(counter) = counter(&cycle, free).filter(|_| found.len() < LEVELS) else {
                return found;
            };
            found.push(counter);
        }
        below.insert(function);
        place = callers.next();
    }
    found
}

/// The calls that led to a loop's function, innermost first, at the first of its samples.
fn callers(facts: &Facts<'_>, hot: &HotLoop) -> Vec<(FunctionId, FileAddr)> {
    let Some(sample) = hot.samples.first() else { return Vec::new() };
    let machine = &facts.machine;
    let frames = facts.symbols().stack(sample.stack).iter();
    let known = |at: &LocationId| Some((machine.function_at(*at)?, machine.place(*at)?));
    let outside = frames.skip_while(|at| machine.function_at(**at) != Some(hot.function)).skip(1);
    outside.map_while(known).take(CALLERS).collect()
}

/// How fast a loop turns; none if no register shows it.
pub(super) fn measure(facts: &Facts<'_>, hot: &HotLoop) -> Option<Speed> {
    let counters = of(facts, hot);
    let period = facts.trace.meta.sample_period;
    let levels = (1..=counters.len()).rev();
    let turn = levels.into_iter().find_map(|levels| {
        let turn = turn(&hot.samples, &counters[..levels], period)?;
        // Outer loops do other work too.
        Some(if levels > 1 { turn * time_in(facts, hot) } else { turn })
    })?;
    let machine = &facts.machine;
    let outside = || hot.samples.iter().filter(|sample| sample.function != hot.function);
    let called: f64 = outside().map(|s| machine.function(s.function).cycles_of_all()).sum();
    let called = called / outside().count().max(1) as f64;
    let cycle = hot.cycle(facts)?;
    let [least, begun] =
        [cycle.least_cycles(), cycle.begun_cycles()].map(|cycles| (cycles + called) * CYCLE);
    let here = match facts.trace.meta.cycle {
        0 => 1.0,
        ps => ps as f64 / 1000.0 / CYCLE,
    };
    (turn >= least * FASTEST).then_some(Speed { turn, least, begun, here })
}

/// Whether a turn takes hardly longer than elements of an array take to wait for those before them, through memory.
pub(super) fn is_passed_on(facts: &Facts<'_>, hot: &HotLoop) -> bool {
    let cycles = || hot.cycle(facts).map_or(0.0, |cycle| cycle.passed_on_cycles());
    hot.speed.is_some_and(|speed| speed.turn < PASSED_ON * cycles() * CYCLE)
}

/// The part of the time from one sample of a loop to the next that it ran: as often as the sample after one in it is in
/// it too, or as its part of all samples, if that is more. Other work that alternates with it lies between two samples;
/// a phase of other work does not.
fn time_in(facts: &Facts<'_>, hot: &HotLoop) -> f64 {
    let (mut next, mut inside, mut all) = (0_usize, 0_usize, 0_usize);
    for run in hot.samples.chunk_by(|a, b| a.task == b.task) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let samples = &facts.timeline.task(first.task).samples;
        let before = |at| samples.partition_point(|sample| sample.at < at);
        let follows = |pair: &&[LoopSample]| before(pair[1].at) == before(pair[0].at) + 1;
        next += run.windows(2).filter(follows).count();
        inside += run.len();
        all += before(last.at) + 1 - before(first.at);
    }
    next.max(inside * inside / all.max(1)) as f64 / inside.max(1) as f64
}

/// How far the values at samples of one thread are from each other, at most.
fn way(samples: &[LoopSample], values: &[f64]) -> f64 {
    let (mut widest, mut from) = (0.0_f64, 0);
    for run in samples.chunk_by(|a, b| a.task == b.task) {
        let of = &values[from..from + run.len()];
        let (low, high) = of.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
        widest = widest.max(high - low);
        from += run.len();
    }
    widest
}

/// The time of a turn in ns by these counters, innermost first.
fn turn(samples: &[LoopSample], counters: &[Counter], period: u64) -> Option<f64> {
    let values: Option<Vec<Vec<f64>>> = samples
        .iter()
        .map(|s| counters.iter().map(|counter| counter.turns(&s.general)).collect())
        .collect();
    let values = values?;
    let mut weights = vec![1.0];
    for level in 0..counters.len() - 1 {
        let of: Vec<f64> = values.iter().map(|v| v[level]).collect();
        weights.push(weights[level] * (way(samples, &of) + 1.0));
    }
    let position = |v: &Vec<f64>| -> f64 { v.iter().zip(&weights).map(|(v, w)| v * w).sum() };
    let positions: Vec<f64> = values.iter().map(position).collect();
    let whole = way(samples, &positions);
    let mut turns = Vec::new();
    let mut steps = Vec::new();
    let mut pairs = 0_usize;
    for (pair, at) in samples.windows(2).zip(positions.windows(2)) {
        let ns = pair[1].at - pair[0].at;
        if pair[0].task != pair[1].task || ns.0 == 0 || ns.0 > period * APART {
            continue;
        }
        pairs += 1;
        let moved = at[1] - at[0];
        if moved >= 1.0 {
            turns.push(ns.0 as f64 / moved);
            steps.push(moved);
        }
    }
    if turns.len() < PAIRS || (turns.len() as f64) < FORWARD * pairs as f64 {
        return None;
    }
    steps.sort_by(f64::total_cmp);
    let most = if counters.len() > 1 { OF_SEVERAL } else { OF_ITS_WAY };
    if steps[steps.len() / 2] > most * whole {
        return None;
    }
    turns.sort_by(f64::total_cmp);
    let at = |part: usize| turns[part * (turns.len() - 1) / 4];
    (at(3) - at(1) <= SPREAD * at(2)).then(|| at(2))
}
