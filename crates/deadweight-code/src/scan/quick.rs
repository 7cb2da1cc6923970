//! Matches in loops from the quick pass: only the instructions in question are decoded in full.
//!
//! Atomic operations, divisions, and calls of small functions and of Go's allocator. For what needs the code around it see
//! [`super::checks`] and [`super::copies`].

use super::passed::{Depths, Event, Passed};
use super::{Callees, Match, Pattern, allocates_in_go, divisions};
use crate::code::Code;
use crate::decode;
use crate::instruction::{Division, Kind};
use deadweight_trace::units::FileAddr;
use std::cell::OnceCell;

/// A function after its quick pass.
pub(super) struct Quick<'q, 'c> {
    pub(super) code: &'q Code<'q>,
    pub(super) passed: &'q Passed,
    pub(super) callees: &'q Callees<'c>,
    /// Once they are asked for.
    depths: OnceCell<Depths>,
}

impl<'q, 'c> Quick<'q, 'c> {
    pub(super) fn new(code: &'q Code<'q>, passed: &'q Passed, callees: &'q Callees<'c>) -> Self {
        Self { code, passed, callees, depths: OnceCell::new() }
    }

    /// The depth of the instruction at this offset.
    pub(super) fn depth(&self, offset: u32) -> u32 {
        self.depths.get_or_init(|| Depths::of(self.code, self.passed)).at(offset)
    }

    /// The matches in loops but for bounds checks, in order of address.
    pub(super) fn matches(&self) -> Vec<Match> {
        let mut found = Vec::new();
        for (offset, event) in &self.passed.events {
            // The depth needs the loops of the whole function.
            let may = self.passed.may_be_in_loop(*offset);
            let depth = if may { self.depth(*offset) } else { 0 };
            if depth == 0 {
                continue;
            }
            let (what, callee) = match event {
                Event::Slow => (self.slow(*offset), None),
                Event::Call(to) => (self.called(FileAddr(*to)), Some(FileAddr(*to))),
            };
            let at = FileAddr(self.addr(*offset));
            let found_here =
                what.map(|(pattern, amount)| Match { pattern, at, depth, amount, callee });
            found.extend(found_here);
        }
        found
    }

    /// The address at this offset.
    pub(super) fn addr(&self, offset: u32) -> u64 {
        self.code.addr.0.wrapping_add(u64::from(offset))
    }

    /// An atomic operation or a division by a variable.
    fn slow(&self, offset: u32) -> Option<(Pattern, u32)> {
        let number = self.passed.starts.binary_search(&offset).ok()?;
        let code = self.passed.part(self.code, number, number)?;
        let instruction = decode::search(&code, Some)?;
        if instruction.kind == Kind::Atomic {
            return Some((Pattern::Atomic, 1));
        }
        let divides = instruction.kind == Kind::Compute
            && matches!(decode::division(&code, &instruction), Some(Division::Integer(_)));
        let part = divides.then(|| {
            let first = number.saturating_sub(divisions::LOOK_BACK);
            self.passed.part(self.code, first, number)
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

    /// Whether the block of the instruction at this offset ends with a jump to or before it.
    pub(super) fn is_before_jump_back(&self, offset: u32) -> bool {
        let turns = &self.passed.turns;
        let turn = turns.get(turns.partition_point(|turn| turn.at < offset));
        turn.and_then(|turn| turn.target).is_some_and(|to| to <= self.addr(offset))
    }

    /// Whether a match is at a branch back.
    pub(super) fn ends_own_block(&self, found: &Match) -> bool {
        let turns = &self.passed.turns;
        let offset = found.at.0.wrapping_sub(self.code.addr.0);
        let turn = turns.iter().find(|turn| u64::from(turn.at) == offset);
        found.pattern == Pattern::BoundsCheck
            && turn.and_then(|turn| turn.target).is_some_and(|to| to <= found.at.0)
    }
}
