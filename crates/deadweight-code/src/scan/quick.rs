//! Matches in loops from the quick pass: only the instructions in question are decoded in full.
//!
//! Atomic operations, divisions, and calls of small functions and of Go's allocator. For bounds checks only whether there
//! may be any. Not for copies; see `moves`.

use super::passed::{Depths, Event, Passed};
use super::{Callees, Match, Pattern, allocates_in_go, divisions};
use crate::code::Code;
use crate::decode::{self, Sort, Way, quick};
use crate::instruction::{Division, Kind};
use crate::roles::routine::{self, Routine};
use deadweight_trace::units::FileAddr;

/// The most instructions of a cold block before it panics, see `roles::checks`.
const COLD: usize = 16;

/// A function after its quick pass.
pub(super) struct Quick<'q, 'c> {
    pub(super) code: &'q Code<'q>,
    pub(super) passed: &'q Passed,
    pub(super) depths: &'q Depths,
    pub(super) callees: &'q Callees<'c>,
}

impl Quick<'_, '_> {
    /// The matches in loops but for bounds checks, in order of address.
    pub(super) fn matches(&self) -> Vec<Match> {
        let mut found = Vec::new();
        for (offset, event) in &self.passed.events {
            let depth = self.depths.at(*offset);
            if depth == 0 {
                continue;
            }
            let (what, callee) = match event {
                Event::Slow => (self.slow(*offset), None),
                Event::Call(to) => (self.called(FileAddr(*to)), Some(FileAddr(*to))),
            };
            let at = FileAddr(self.addr(*offset));
            found.extend(what.map(|(pattern, amount)| Match {
                pattern,
                at,
                depth,
                amount,
                callee,
            }));
        }
        found
    }

    fn addr(&self, offset: u32) -> u64 {
        self.code.addr.0.wrapping_add(u64::from(offset))
    }

    /// The code from instruction `first` on up to the end of instruction `last`.
    fn part(&self, first: usize, last: usize) -> Option<Code<'_>> {
        let starts = &self.passed.starts;
        let from = *starts.get(first)?;
        let to = starts.get(last + 1).map_or(self.code.bytes.len(), |to| *to as usize);
        let bytes = self.code.bytes.get(from as usize..to)?;
        Some(Code { addr: FileAddr(self.addr(from)), bytes, ..*self.code })
    }

    /// An atomic operation or a division by a variable.
    fn slow(&self, offset: u32) -> Option<(Pattern, u32)> {
        let number = self.passed.starts.binary_search(&offset).ok()?;
        let code = self.part(number, number)?;
        let instruction = decode::search(&code, Some)?;
        if instruction.kind == Kind::Atomic {
            return Some((Pattern::Atomic, 1));
        }
        let divides = instruction.kind == Kind::Compute
            && matches!(decode::division(&code, &instruction), Some(Division::Integer(_)));
        let part = divides.then(|| {
            let first = number.saturating_sub(divisions::LOOK_BACK);
            self.part(first, number)
        });
        let code = part.flatten()?;
        let instructions = decode::instructions(&code);
        let last = instructions.len().checked_sub(1)?;
        divisions::by_variable(&instructions, &code, last).then_some((Pattern::Division, 1))
    }

    /// What a call is.
    fn called(&self, to: FileAddr) -> Option<(Pattern, u32)> {
        if (self.callees.names)(to).is_some_and(allocates_in_go) {
            return Some((Pattern::GoAllocation, 1));
        }
        let own = self.code.holds(to);
        let small = (!own).then(|| (self.callees.small)(to)).flatten();
        small.map(|instructions| (Pattern::SmallCall, instructions))
    }

    /// Whether a branch in a loop may be a bounds check.
    pub(super) fn may_check(&self) -> bool {
        self.passed.turns.iter().any(|turn| {
            let Some(target) = turn.target.filter(|_| turn.falls) else { return false };
            self.depths.at(turn.at) > 0
                && (self.may_panic(target) || self.may_panic(self.addr(turn.end)))
        })
    }

    /// Whether the code at `addr` may reach a panic because of an index, as in `roles::checks`.
    fn may_panic(&self, addr: u64) -> bool {
        let named = |addr: u64| (self.callees.names)(FileAddr(addr)).and_then(routine::named);
        let offset = |addr: u64| {
            let number = self.passed.instruction(self.code, addr)?;
            Some(self.passed.starts[number] as usize)
        };
        let Some(mut at) = offset(addr) else { return named(addr) == Some(Routine::BoundsPanic) };
        let mut jumped = false;
        for _ in 0..COLD {
            let rest = self.code.bytes.get(at..).unwrap_or_default();
            let addr = self.code.addr.0.wrapping_add(at as u64);
            let Some((len, sort)) = quick(rest, addr) else { return !rest.is_empty() };
            let calls = |way| way == Way::Calls;
            let (to, calls) = match sort {
                Sort::Call(to) => (to, true),
                Sort::To { target, falls: false } => (target, false),
                Sort::Through(slot, way @ (Way::Calls | Way::Jumps)) => (slot, calls(way)),
                Sort::Leaves(Way::Calls | Way::Jumps) => return self.passed.loads_panic,
                Sort::Leaves(Way::Ends) | Sort::Stops | Sort::To { .. } => return false,
                _ => {
                    at += len;
                    continue;
                }
            };
            match (named(to), sort) {
                (Some(Routine::BoundsPanic), _) => return true,
                (Some(Routine::OtherPanic | Routine::WriteBarrier), _) => return false,
                (Some(Routine::PanicValue), _) if calls => at += len,
                (_, Sort::To { .. }) if !jumped => {
                    jumped = true;
                    let Some(target) = offset(to) else { return false };
                    at = target;
                }
                _ => return false,
            }
        }
        false
    }
}
