//! How many turns a loop makes, where constants in the code before it say so.
//!
//! In order of address and not along every path: it decides only what is not worth a word.

use super::turn::Turn;
use crate::decode;
use crate::function::steps;
use crate::instruction::{Instruction, Kind, Reg};

/// Through how many registers a value is followed.
const DEPTH: usize = 6;

/// What a register holds: what another one did at some instruction before (none: nothing), and a number more.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Value {
    origin: Option<(Reg, Option<u64>)>,
    more: i64,
}

/// The value of a register after these instructions.
fn value(before: &[Instruction], register: Reg) -> Value {
    let (mut before, mut register, mut more) = (before, register, 0_i64);
    for _ in 0..DEPTH {
        let Some(at) = before.iter().rposition(|i| i.writes.has(register)) else {
            return Value { origin: Some((register, None)), more };
        };
        let instruction = &before[at];
        let own = instruction.data[0] == Some(register);
        match (instruction.kind, steps::sum(instruction)) {
            (Kind::Constant(value), _) if own => {
                return Value { origin: None, more: more.wrapping_add(value) };
            }
            (_, Some((from, number))) if own => {
                more = more.wrapping_add(number);
                // The stack pointer is taken to be the same everywhere.
                if from == STACK {
                    return Value { origin: Some((from, None)), more };
                }
                (before, register) = (&before[..at], from);
            }
            _ => return Value { origin: Some((register, Some(instruction.addr))), more },
        }
    }
    Value { origin: Some((register, before.last().map(|i| i.addr))), more }
}

/// RSP.
const STACK: Reg = Reg::general(4);

/// How many turns a loop makes, if that is constant. `before`: the code before it.
pub(super) fn turns(turn: &Turn<'_, '_>, before: &[Instruction]) -> Option<u64> {
    let counters = turn.counters();
    let step = |register: Reg| counters.iter().find(|(r, _)| *r == register).map(|(_, step)| *step);
    let mut known = None;
    let mut compares = 0;
    for compare in turn.instructions.iter().filter(|i| i.kind == Kind::Compare) {
        compares += 1;
        let number = decode::compared(turn.code, compare);
        let number =
            number.map(|(register, number)| (register, Value { origin: None, more: number }));
        let pairs: Vec<(Reg, Value)> = match number {
            Some(pair) => vec![pair],
            None => {
                let all = compare.reads.iter();
                let other = |register| compare.reads.iter().find(|other| *other != register);
                all.filter_map(|r| Some((r, value(before, other(r)?)))).collect()
            }
        };
        for (register, end) in pairs {
            let Some(step) = step(register) else { continue };
            let start = value(before, register);
            if start.origin == end.origin {
                let turns =
                    end.more.wrapping_sub(start.more).unsigned_abs() / step.unsigned_abs().max(1);
                known = Some(known.map_or(turns, |known: u64| known.min(turns)));
            }
        }
    }
    if compares > 0 {
        return known;
    }
    let counted = counters.iter().filter_map(|(register, step)| {
        let start = value(before, *register);
        let turns = start.more.unsigned_abs() / step.unsigned_abs().max(1);
        (start.origin.is_none() && turns > 0).then_some(turns)
    });
    counted.min()
}
