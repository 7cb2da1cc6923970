//! Registers that a function assigns a single value to, and calls through them.
//!
//! Compilers keep a pointer from the GOT or a constant length in a callee-saved register and use it in a loop, where no
//! basic block shows its value. Not for values that change; see `roles::values`.

use super::instruction::{Instruction, Kind, Reg, Registers};

/// How many instructions before a call its pointer may have been loaded.
const BEFORE: usize = 12;

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
pub(super) struct SingleAssignment([Option<Source>; Reg::COUNT]);

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
        Self(single)
    }

    /// The constant that `register` holds at every use, if it does.
    pub(super) fn constant(&self, register: Reg) -> Option<i64> {
        match self.0[register.index()] {
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
        let only = || call.reads.iter().find_map(|register| self.0[register.index()]);
        match nearest.or_else(only) {
            Some(Source::At(place)) => Some(place),
            _ => None,
        }
    }
}

fn source(instruction: &Instruction) -> Option<Source> {
    match instruction.kind {
        Kind::Constant(value) => Some(Source::Constant(value)),
        Kind::Load => instruction.memory.and_then(|m| m.fixed()).map(Source::At),
        _ => None,
    }
}
