//! Bounds checks in loops: only the code around each branch that leads to a panic is decoded in full.
//!
//! The rules are those of `roles::checks`; here is which instructions they look at.

use super::quick::Quick;
use super::{Match, Pattern};
use crate::code::Code;
use crate::decode::{self, Sort, Way, quick};
use crate::instruction::{Instruction, Kind};
use crate::roles::routine::{self, Routine};
use crate::roles::{self, AROUND_CHECK, Part};
use deadweight_trace::units::FileAddr;

/// The most instructions of a cold block before it panics, see `roles::checks`.
const COLD: usize = 16;
/// So many instructions between two checks are decoded rather than forgetting those around the first.
const NEAR: usize = 256;

/// The outcome is not known from the quick pass.
struct Unclear;

/// The bounds checks in loops, in order of address; none if the function must be read completely.
pub(super) fn matches(quick: &Quick<'_, '_>) -> Option<Vec<Match>> {
    let mut found = Vec::new();
    let mut window = Window::new(quick);
    for turn in quick.passed.turns.iter().filter(|turn| turn.falls) {
        let Some(target) = turn.target else { continue };
        let may = quick.passed.may_be_in_loop(turn.at);
        let depth = if may { quick.depth(turn.at) } else { 0 };
        if depth == 0 {
            continue;
        }
        let taken = outcome(quick, target).ok()?;
        let end = match taken {
            Some(routine) => Some(routine),
            None => outcome(quick, quick.addr(turn.end)).ok()?,
        };
        if end != Some(Routine::BoundsPanic) {
            continue;
        }
        let at = quick.passed.starts.binary_search(&turn.at).ok()?;
        let hot = if taken.is_some() {
            Some(at + 1)
        } else {
            quick.passed.instruction(quick.code, target)
        };
        if !window.is_after_load(at, hot)? {
            let at = FileAddr(quick.addr(turn.at));
            let pattern = Pattern::BoundsCheck;
            found.push(Match { pattern, at, depth, amount: 1, callee: None });
        }
    }
    Some(found)
}

/// The routine that the code at `addr` reaches without a branch, as in `roles::checks`.
fn outcome(quick_pass: &Quick<'_, '_>, addr: u64) -> Result<Option<Routine>, Unclear> {
    let Quick { code, passed, callees, .. } = quick_pass;
    let named = |addr: u64| (callees.names)(FileAddr(addr)).and_then(routine::named);
    let ends = |routine: Routine| {
        matches!(routine, Routine::BoundsPanic | Routine::OtherPanic | Routine::WriteBarrier)
    };
    let offset = |addr: u64| Some(passed.starts[passed.instruction(code, addr)?] as usize);
    let Some(mut at) = offset(addr) else { return Ok(named(addr).filter(|r| ends(*r))) };
    let mut jumped = false;
    for _ in 0..COLD {
        let rest = code.bytes.get(at..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let (len, sort) = quick(rest, code.addr.0.wrapping_add(at as u64)).ok_or(Unclear)?;
        let (to, calls) = match sort {
            Sort::Call(to) => (to, true),
            Sort::To { target, falls: false } => (target, false),
            Sort::Through(slot, way @ (Way::Calls | Way::Jumps)) => (slot, way == Way::Calls),
            Sort::Leaves(Way::Calls | Way::Jumps) if passed.loads_panic => return Err(Unclear),
            Sort::Leaves(_) | Sort::Stops | Sort::To { .. } => return Ok(None),
            _ => {
                at += len;
                continue;
            }
        };
        match (named(to), sort) {
            (Some(routine), _) if ends(routine) => return Ok(Some(routine)),
            (Some(Routine::PanicValue), _) if calls => at += len,
            (_, Sort::To { .. }) if !jumped => {
                jumped = true;
                let Some(target) = offset(to) else { return Ok(None) };
                at = target;
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Consecutive instructions of a function that are decoded in full.
struct Window<'w, 'c> {
    quick: &'w Quick<'w, 'c>,
    /// Where jumps lead, in order.
    entered: Vec<u32>,
    /// The number of the first one.
    first: usize,
    instructions: Vec<Instruction>,
    is_entered: Vec<bool>,
}

impl<'w, 'c> Window<'w, 'c> {
    fn new(quick: &'w Quick<'w, 'c>) -> Self {
        let (first, instructions, is_entered) = (0, Vec::new(), Vec::new());
        Self { quick, entered: Vec::new(), first, instructions, is_entered }
    }

    /// Whether the index of the check at branch `at` was just loaded; `hot`: where it goes on without a panic.
    fn is_after_load(&mut self, at: usize, hot: Option<usize>) -> Option<bool> {
        let Some(hot) = hot else { return Some(false) };
        if self.entered.is_empty() {
            self.entered = self.quick.passed.entered(self.quick.code);
        }
        let (before, behind, round) = AROUND_CHECK;
        let starts = &self.quick.passed.starts;
        let from = *starts.get(at.saturating_sub(before))?;
        let later = self.entered.partition_point(|entered| *entered < from);
        // At the head of a loop the last instructions of its turn come before.
        let is_near = self.entered.get(later).is_some_and(|entered| *entered <= starts[at]);
        let behind = if is_near { round } else { behind };
        self.hold(at.saturating_sub(before).min(hot), (at + behind).max(hot + before))?;
        for number in at.saturating_sub(before)..(at + behind).min(self.end()) {
            let instruction = &self.instructions[number - self.first];
            let memory = instruction.memory.filter(|m| m.read && m.base.is_some());
            let reads = memory.is_some_and(|m| m.index.is_none() && !m.thread_local);
            if reads
                && matches!(instruction.kind, Kind::Load | Kind::Compute)
                && let Some((first, last)) = self.round(number)
            {
                self.hold(first, last + 1)?;
            }
        }
        let (instructions, entered) = (&self.instructions, &self.is_entered);
        let part = Part { instructions, entered, entry: &[] };
        let code = self.quick.code;
        Some(roles::is_after_load(code, part, at - self.first, hot - self.first))
    }

    fn end(&self) -> usize {
        self.first + self.instructions.len()
    }

    /// The first jump back within reach over instruction `number`, and its target, as in `roles::checks`.
    fn round(&self, number: usize) -> Option<(usize, usize)> {
        let Quick { code, passed, .. } = self.quick;
        let from = *passed.starts.get(number)?;
        let reach = passed.starts.get(number + roles::ROUND).copied().unwrap_or(u32::MAX);
        let turns = &passed.turns[passed.turns.partition_point(|turn| turn.at < from)..];
        let within = turns.iter().take_while(|turn| turn.at < reach);
        let here = self.quick.addr(from);
        within.filter(|turn| turn.target.is_some_and(|to| to <= here)).find_map(|turn| {
            let first = passed.instruction(code, turn.target?)?;
            Some((first, passed.starts.binary_search(&turn.at).ok()?))
        })
    }

    /// Decodes the instructions from number `first` up to `end`, if they are not there yet; none if they are too many.
    fn hold(&mut self, first: usize, end: usize) -> Option<()> {
        let end = end.min(self.quick.passed.starts.len());
        if self.first <= first && end <= self.end() {
            return Some(());
        }
        let apart = first > self.end() + NEAR || end + NEAR < self.first;
        if apart || self.instructions.is_empty() {
            self.instructions.clear();
            self.is_entered.clear();
            self.first = first;
        }
        if first < self.first {
            let before = self.decoded(first, self.first)?;
            self.instructions.splice(0..0, before);
            self.is_entered.clear();
            self.first = first;
        }
        if self.end() < end {
            let count = self.instructions.len() + end - self.end();
            let code = self.code(self.end(), end)?;
            decode::more_instructions(&code, &mut self.instructions);
            if self.instructions.len() != count {
                return None;
            }
        }
        for instruction in &self.instructions[self.is_entered.len()..] {
            let at = u32::try_from(instruction.addr.wrapping_sub(self.quick.code.addr.0)).ok()?;
            self.is_entered.push(at == 0 || self.entered.binary_search(&at).is_ok());
        }
        Some(())
    }

    /// The instructions from number `first` up to `end`.
    fn decoded(&self, first: usize, end: usize) -> Option<Vec<Instruction>> {
        let code = self.code(first, end)?;
        Some(decode::instructions(&code)).filter(|found| found.len() == end - first)
    }

    /// Their bytes.
    fn code(&self, first: usize, end: usize) -> Option<Code<'w>> {
        self.quick.passed.part(self.quick.code, first, end.checked_sub(1)?)
    }
}
