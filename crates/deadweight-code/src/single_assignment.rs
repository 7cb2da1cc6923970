//! Registers that a function only ever puts one thing into, and the calls through them.
//!
//! Compilers keep a pointer from the GOT or a constant length in a register that calls leave alone, and
//! use it in a loop, where no straight line shows what it holds. Not for values that change (`roles::values`).

use super::instruction::{Instruction, Kind, Reg, Registers};

/// How many instructions before a call what it calls through may have been loaded.
const BEFORE: usize = 12;

/// What is put into a register.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// This number.
    Constant(i64),
    /// What is at this address.
    At(u64),
}

/// The only thing that is put into each register, of those that calls leave alone.
#[derive(Clone, Debug)]
pub(super) struct SingleAssignment([Option<Source>; Reg::COUNT]);

impl SingleAssignment {
    /// Of a function with these instructions. `saved`: the registers that calls leave alone.
    pub(super) fn of(instructions: &[Instruction], saved: Registers) -> Self {
        let mut single = [None; Reg::COUNT];
        let mut several = Registers::default();
        for instruction in instructions {
            // What the caller had there comes back before the function returns.
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

    /// The constant that `register` holds wherever it is used, if that is so.
    pub(super) fn constant(&self, register: Reg) -> Option<i64> {
        match self.0[register.index()] {
            Some(Source::Constant(value)) => Some(value),
            _ => None,
        }
    }

    /// The fixed place whose content call `at` goes to, if it goes through a register.
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
