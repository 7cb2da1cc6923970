//! The divisions of a hot loop that another computation could replace, and where its samples wait for them.
//!
//! A sample comes just after the division, or later: a CPU begins the next instructions meanwhile, and those that need the
//! result are finished long after it. Then the chain from the division to the sample says what the time went to. Not for
//! what replaces a division.

use super::memory::cache;
use super::{HotLoop, LoopSample, SAMPLES, address};
use crate::facts::Facts;
use deadweight_code::instruction::{Division, Reg};
use deadweight_code::machine_code::FunctionId;
use deadweight_code::{Cycle, Pattern};
use deadweight_trace::units::FileAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Where samples wait for divisions: the instructions that they come after, each with the division.
pub(crate) type Divisions = BTreeMap<(FunctionId, FileAddr), FileAddr>;

/// Inverses of so many divisors can be computed before.
const DIVISORS: usize = 8;
/// A root is compared within so many instructions.
const AFTER_ROOT: usize = 6;
/// So many cycles a turn takes for an integer division, or one of floating-point numbers, if it does nothing else: the
/// least of today's CPUs (Agner Fog, instruction tables: Zen 3 and 4, Ice Lake).
const INTEGER: f64 = 10.0;
const FLOAT: f64 = 5.0;
/// What else a turn does takes at most this part of that: or it would go on meanwhile.
const REST: f64 = 0.5;
/// Where the time of a turn is known, it is this many times what the other instructions need, or more ...
const LONGER: f64 = 1.3;
/// ... and at most so many ns: 90 cycles for a division of 64-bit numbers on Skylake. Then it waits for something else.
const LONGEST: f64 = 40.0;

/// The samples just after divisions in a loop that another computation could replace: the divisor is the same in all
/// turns, or one of a few, so that inverses can be computed before; or a root is only compared, as its square could be.
pub(super) fn avoidable(facts: &Facts<'_>, hot: &HotLoop) -> Divisions {
    let places: BTreeSet<_> = hot.samples.iter().map(|s| (s.function, s.waited)).collect();
    let avoidable = places.into_iter().filter(|(function, at)| {
        let there = |s: &LoopSample, _| (s.function, s.waited) == (*function, *at);
        is_avoidable(facts, hot, (*function, *at), there)
    });
    avoidable.map(|(function, at)| ((function, at), at)).collect()
}

/// The samples after instructions that need the result of such a division, where nothing else explains the wait: a turn
/// does little else, and the memory that they use fits the second cache.
pub(super) fn waited_for(facts: &Facts<'_>, hot: &HotLoop) -> Divisions {
    let mut found = Divisions::new();
    let Some(cycle) = hot.cycle(facts).filter(|_| !hot.calls() && may_divide(hot)) else {
        return found;
    };
    for instruction in cycle.instructions() {
        let at = FileAddr(instruction.addr);
        let least = match facts.machine.division(hot.function, at) {
            Some(Division::Integer(_)) => INTEGER,
            Some(Division::Float(_)) => FLOAT,
            Some(Division::Root) | None => continue,
        };
        if cycle.least_cycles() > least * REST {
            continue;
        }
        let waiting = cycle.waiting_for(at);
        let there = |s: &LoopSample, divisor| {
            let after = s.waited == at || waiting.contains(&s.waited) && s.waited > at;
            after && keeps(&cycle, at, s.waited, divisor)
        };
        if is_avoidable(facts, hot, (hot.function, at), there)
            && uses_near_memory(facts, hot, &cycle, &waiting)
        {
            found.extend(waiting.into_iter().map(|addr| ((hot.function, addr), at)));
            found.insert((hot.function, at), at);
        }
    }
    found
}

/// Whether a turn takes as long as a division may.
fn may_divide(hot: &HotLoop) -> bool {
    hot.speed.is_none_or(|speed| speed.ratio() >= LONGER && speed.turn <= LONGEST)
}

/// Whether a register has the same value from the instruction at `from` until a sample that waited for `last`.
fn keeps(cycle: &Cycle<'_>, from: FileAddr, last: FileAddr, register: Reg) -> bool {
    let since = cycle.instructions().filter(|i| (from.0..=last.0).contains(&i.addr));
    since.into_iter().all(|i| !i.writes.has(register))
}

/// Whether what some instructions access lies so close together that it fits the second cache; not if that is not known.
fn uses_near_memory(
    facts: &Facts<'_>,
    hot: &HotLoop,
    cycle: &Cycle<'_>,
    waiting: &BTreeSet<FileAddr>,
) -> bool {
    let code = facts.machine.function(hot.function);
    let accesses = waiting.iter().filter_map(|at| Some((*at, code.access(*at, Some(cycle))?)));
    let mut open = accesses.filter(|(_, a)| matches!(a.pattern, Pattern::Open | Pattern::Chased));
    open.all(|(at, access)| {
        let parts = [access.memory.base, access.memory.index];
        let known = |s: &&LoopSample| {
            s.waited >= at && parts.into_iter().flatten().all(|r| keeps(cycle, at, s.waited, r))
        };
        let samples = hot.samples.iter().filter(known);
        let used: Vec<u64> = samples.filter_map(|s| address(&access.memory, &s.general)).collect();
        let span = used.iter().max().zip(used.iter().min()).map(|(high, low)| high - low);
        let near = |span: u64| span as f64 <= cache(facts, 2);
        used.len() >= SAMPLES / 2 && span.is_some_and(near)
    })
}

/// Whether another computation could replace a division. `there`: the samples at which a register still has the divisor.
fn is_avoidable(
    facts: &Facts<'_>,
    hot: &HotLoop,
    (function, at): (FunctionId, FileAddr),
    there: impl Fn(&LoopSample, Reg) -> bool,
) -> bool {
    let machine = &facts.machine;
    let Some(division) = machine.division(function, at) else { return false };
    let code = machine.function(function);
    let cycle = hot.cycle(facts).filter(|_| function == hot.function);
    let same = |register: Reg| cycle.is_some_and(|cycle| cycle.is_constant(register));
    let few = |of: &dyn Fn(&LoopSample) -> Option<u64>, by: Reg| {
        let values: BTreeSet<_> = hot.samples.iter().filter(|s| there(s, by)).map(of).collect();
        (1..=DIVISORS).contains(&values.len()) && !values.contains(&None)
    };
    match division {
        Division::Integer(Some(register)) => {
            same(register) || few(&|s| s.general.get(register.index()).copied(), register)
        }
        Division::Float(Some(register)) => same(register),
        Division::Integer(None) | Division::Float(None) => {
            let memory = code.access(at, None).map(|access| access.memory);
            memory.is_some_and(|m| {
                let mut parts = [m.base, m.index].into_iter().flatten();
                let varies = parts.find(|register| !same(*register));
                varies.is_none_or(|part| few(&|s| address(&m, &s.general), part))
            })
        }
        Division::Root => code.is_only_compared(at, AFTER_ROOT),
    }
}
