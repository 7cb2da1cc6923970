//! Loops that compute floating-point numbers one by one where a register holds several.
//!
//! An innermost loop of a single way, whose numbers lie side by side in memory, which nothing but counters ends, and whose
//! turns need nothing of each other but a sum. Loops that were made for several at once leave a rest, which is computed one
//! by one: a function that also has instructions for several of the same kind is left out. Not for what the compiler knew: whether
//! arrays overlap, and how many turns there are.

mod memory;
mod trips;
mod turn;

use super::quick::Quick;
use super::{Floats, Match, Pattern};
use crate::decode::{self, Operations};
use crate::function::Function;
use crate::instruction::Instruction;
use crate::roles::RolesFor;
use crate::{Abi, Code};
use deadweight_trace::units::FileAddr;
use turn::Turn;

/// A loop with more bytes is no inner loop.
const LARGEST: u32 = 2048;
/// More jumps and branches, those of checks included, are not looked at.
const TURNS: usize = 24;
/// How many instructions before a loop its first counter is searched.
const BEFORE: usize = 256;
/// With fewer numbers in all, several at once gain little.
const FEW: u64 = 32;

/// The loops of a function.
pub(super) fn matches(quick: &Quick<'_, '_>) -> Vec<Match> {
    let passed = quick.passed;
    let mut found = Vec::new();
    for (number, turn) in passed.turns.iter().enumerate() {
        let first = turn.target.and_then(|to| to.checked_sub(quick.code.addr.0));
        let Some(first) = first.and_then(|first| u32::try_from(first).ok()) else { continue };
        if first > turn.at || turn.at - first > LARGEST {
            continue;
        }
        let from = passed.scalars.partition_point(|(at, _)| *at < first);
        let inside = passed.scalars[from..].iter().take_while(|(at, _)| *at < turn.at);
        let computed = inside.fold(Operations::default(), |all, (_, how)| all.and(*how));
        if computed == Operations::default() || computed.are_in(passed.packed) {
            continue;
        }
        let earlier = passed.turns[..number].iter().rev().take_while(|turn| turn.at >= first);
        let is_inner = |turn: &super::passed::Turn| {
            let to = turn.target.and_then(|to| to.checked_sub(quick.code.addr.0));
            !to.is_some_and(|to| (u64::from(first)..=u64::from(turn.at)).contains(&to))
        };
        if earlier.clone().count() <= TURNS && earlier.clone().all(is_inner) {
            found.extend(in_loop(quick, first, turn.at));
        }
    }
    found
}

/// Where a loop begins: its first instruction, or the one that a jump before it leads to. None if code outside of the loop
/// leads to another one: then some turns go another way.
fn entry(quick: &Quick<'_, '_>, first: u32, last: u32) -> Option<u32> {
    let inside = |target: u64| {
        let at = target.checked_sub(quick.code.addr.0).and_then(|at| u32::try_from(at).ok());
        at.filter(|at| (first..=last).contains(at))
    };
    let outside = quick.passed.turns.iter().filter(|turn| !(first..=last).contains(&turn.at));
    let mut entry = first;
    for (turn, at) in outside.filter_map(|turn| Some((turn, inside(turn.target?)?))) {
        if turn.at > last || at != first && turn.falls {
            return None;
        }
        entry = entry.max(at);
    }
    Some(entry)
}

/// The loop between these two instructions.
fn in_loop(quick: &Quick<'_, '_>, first: u32, last: u32) -> Option<Match> {
    let starts = &quick.passed.starts;
    let entry = starts.binary_search(&entry(quick, first, last)?).ok()?;
    let [first, last] = [first, last].map(|at| starts.binary_search(&at).ok());
    let (first, last) = (first?, last?);
    // Of Go's functions only the first instruction is where they start again.
    let code = Code { abi: Abi::Platform, ..quick.passed.part(quick.code, first, last)? };
    let roles = RolesFor { moves: false, checks: false };
    let function = Function::read_for(&code, &|_| None, roles);
    let at = FileAddr(function.instructions().last()?.addr);
    let cycle = *function.cycles_around(at).first()?;
    let ways = function.natural_loops().iter();
    let natural =
        ways.filter(|natural| natural.holds(last - first)).min_by_key(|n| n.members.len())?;
    let turn: Option<Vec<usize>> = natural.turn.iter().copied().collect();
    let mut turn = turn.filter(|turn| turn.len() == natural.members.len())?;
    let begins = turn.iter().position(|at| *at == entry - first).unwrap_or(0);
    turn.rotate_left(begins);
    let turn: Vec<&Instruction> = turn.iter().map(|at| &function.instructions()[*at]).collect();
    let all = Turn { code: &code, function: &function, cycle, instructions: &turn };
    let computed = all.computed()?;
    let before = first
        .checked_sub(1)
        .and_then(|before| quick.passed.part(quick.code, first.saturating_sub(BEFORE), before));
    let before = before.map(|code| decode::instructions(&code)).unwrap_or_default();
    let turns = trips::turns(&all, &before);
    let few = turns.is_some_and(|turns| turns.saturating_mul(computed.numbers) < FEW);
    let offset = u32::try_from(computed.at.wrapping_sub(quick.code.addr.0)).ok()?;
    let depth = quick.depth(offset);
    let (at, amount) = (FileAddr(computed.at), computed.operations);
    let floats = Floats { double: computed.double, reduces: computed.reduces };
    let pattern = Pattern::ScalarFloats(floats);
    (depth > 0 && !few).then_some(Match { pattern, at, depth, amount, callee: None })
}

#[cfg(test)]
mod tests;
