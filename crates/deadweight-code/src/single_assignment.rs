//! Registers that a function assigns a single value to, and calls through them.
//!
//! Compilers keep a pointer from the GOT or a constant length in a callee-saved register and use it in a loop, where no
//! basic block shows its value. Not for values that change; see `roles::values`.

use super::instruction::{Instruction, Kind, Reg, Registers};
use std::collections::BTreeSet;

/// How many instructions before a call its pointer may have been loaded.
const BEFORE: usize = 12;
/// How many instructions, on all ways to a call, are searched for its pointer.
const ON_ALL_WAYS: usize = 512;

/// A value assigned to a register.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// This number.
    Constant(i64),
    /// The content of this address.
    At(u64),
}

/// The single value of each callee-saved register, if it has one.
#[derive(Clone, Debug)]
pub(super) struct SingleAssignment {
    only: [Option<Source>; Reg::COUNT],
    saved: Registers,
    /// Where the branches and jumps go, with their index; empty if nothing is called through a
    /// register, or not all are known.
    branches: Vec<(u64, usize)>,
}

impl SingleAssignment {
    /// For a function with these instructions. `saved`: the callee-saved registers.
    pub(super) fn of(instructions: &[Instruction], saved: Registers) -> Self {
        let mut single = [None; Reg::COUNT];
        let mut several = Registers::default();
        for instruction in instructions {
            // A pop restores the caller's value before the return.
            if instruction.kind == Kind::Pop || saved.without(instruction.writes) == saved {
                continue;
            }
            for register in instruction.writes.iter().filter(|r| saved.has(*r)) {
                let source = source(instruction).filter(|_| instruction.data[0] == Some(register));
                let known = &mut single[register.index()];
                match (source, *known) {
                    (Some(new), None) => *known = Some(new),
                    (Some(new), Some(old)) if new == old => {}
                    _ => several.insert(register),
                }
            }
        }
        several.iter().for_each(|register| single[register.index()] = None);
        let mut branches = Vec::new();
        let through_register = |i: &Instruction| i.kind == Kind::Call(None) && i.memory.is_none();
        // A table of jumps may go anywhere.
        let jumps = |i: &Instruction| i.kind == Kind::Jump(None) && i.callee().is_none();
        if instructions.iter().any(through_register) && !instructions.iter().any(jumps) {
            let with = instructions.iter().enumerate();
            branches.extend(with.filter_map(|(at, i)| Some((i.target()?, at))));
            branches.sort_unstable();
        }
        Self { only: single, saved, branches }
    }

    /// Where nothing is known of the whole function.
    pub(super) fn unknown(saved: Registers) -> Self {
        Self { only: [None; Reg::COUNT], saved, branches: Vec::new() }
    }

    /// The constant that `register` holds at every use, if it does.
    pub(super) fn constant(&self, register: Reg) -> Option<i64> {
        match self.only[register.index()] {
            Some(Source::Constant(value)) => Some(value),
            _ => None,
        }
    }

    /// The fixed address whose content an indirect call `at` through a register jumps to.
    pub(super) fn pointer(&self, instructions: &[Instruction], at: usize) -> Option<u64> {
        let call = &instructions[at];
        if !matches!(call.kind, Kind::Call(None) | Kind::Jump(None)) || call.memory.is_some() {
            return None;
        }
        let mut before = instructions[..at].iter().rev().take(BEFORE);
        let through = |i: &&Instruction| i.writes.meets(call.reads) && i.kind == Kind::Load;
        let near = before.find(|i| i.ends_block() || through(i)).filter(through);
        let nearest = near.and_then(|load| {
            let register = load.data[0].filter(|r| call.reads.has(*r))?;
            let between = instructions[..at].iter().rev().take_while(|i| i.addr > load.addr);
            let kept = between.clone().all(|i| !i.writes.has(register));
            kept.then(|| source(load)).flatten()
        });
        let only = || call.reads.iter().find_map(|register| self.only[register.index()]);
        let same = || call.reads.iter().find_map(|r| self.on_all_ways(instructions, at, r));
        match nearest.or_else(only).or_else(same) {
            Some(Source::At(place)) => Some(place),
            _ => None,
        }
    }
}

impl SingleAssignment {
    /// What a callee-saved register was last assigned before instruction `at`, if that is the same on all
    /// ways there.
    fn on_all_ways(
        &self,
        instructions: &[Instruction],
        at: usize,
        register: Reg,
    ) -> Option<Source> {
        if !self.saved.has(register) || self.branches.is_empty() {
            return None;
        }
        let mut found = None;
        let mut ends = self.before(instructions, at)?;
        let mut seen = BTreeSet::new();
        while let Some(at) = ends.pop() {
            if !seen.insert(at) {
                continue;
            }
            let instruction = &instructions[at];
            if !instruction.writes.has(register) {
                ends.extend(self.before(instructions, at)?);
            } else if instruction.data[0] == Some(register) && instruction.kind != Kind::Pop {
                let new = source(instruction)?;
                if *found.get_or_insert(new) != new {
                    return None;
                }
            } else {
                return None;
            }
            if seen.len() > ON_ALL_WAYS {
                return None;
            }
        }
        found
    }

    /// The instructions that run just before instruction `at`; none at the entry of the function, or where
    /// something unknown may jump to.
    fn before(&self, instructions: &[Instruction], at: usize) -> Option<Vec<usize>> {
        let addr = instructions[at].addr;
        let first = self.branches.partition_point(|(to, _)| *to < addr);
        let jumps = self.branches[first..].iter().take_while(|(to, _)| *to == addr);
        let mut before: Vec<usize> = jumps.map(|(_, from)| *from).collect();
        let last = at.checked_sub(1)?;
        if instructions[last].falls_through() {
            before.push(last);
        }
        (!before.is_empty()).then_some(before)
    }
}

fn source(instruction: &Instruction) -> Option<Source> {
    match instruction.kind {
        Kind::Constant(value) => Some(Source::Constant(value)),
        Kind::Load => instruction.memory.and_then(|m| m.fixed()).map(Source::At),
        _ => None,
    }
}
