//! The least time that a turn of a loop takes: its instructions, or the longest chain of them from turn to turn.
//!
//! Not for what memory or branches cost; registers that were recorded show that.

use super::Function;
use super::turns::Cycle;
use crate::instruction::{Instruction, Kind, Reg};
use deadweight_trace::units::FileAddr;

/// Instructions that a CPU begins in one cycle: fewer than the widest of today.
const WIDTH: f64 = 4.0;
/// Cycles from operands to result: a load that hits the first cache, a sum of vectors or floating-point numbers, a
/// store that the next turn loads again (Agner Fog, instruction tables; Zen 2 to 4 and Skylake agree within a cycle).
const LOAD: u32 = 4;
const VECTOR: u32 = 3;
const THROUGH_MEMORY: u32 = 5;

impl Function {
    /// The instructions of a function that is called in a loop, as cycles.
    #[must_use]
    pub fn cycles_of_all(&self) -> f64 {
        self.instructions.iter().filter(|i| i.kind != Kind::Nop).count() as f64 / WIDTH
    }
}

impl Cycle<'_> {
    /// The least number of cycles for a turn, if all that it needs is in the first cache and no branch is a surprise. Of
    /// code that only some turns pass, half counts; of the cases of a jump through a table, one of them.
    #[must_use]
    pub fn least_cycles(&self) -> f64 {
        let Self { function, natural } = self;
        let by_table = self.instructions().any(|i| i.kind == Kind::Jump(None));
        let of = |at: &[usize]| -> Vec<&Instruction> {
            at.iter().map(|at| &function.instructions[*at]).collect()
        };
        let count =
            |body: &[&Instruction]| body.iter().filter(|i| i.kind != Kind::Nop).count() as f64;
        let passed: Vec<usize> = natural.always().collect();
        let (all, always) = (of(&natural.members), of(&passed));
        let cases = if by_table { self.ways().len().max(2) as f64 } else { 2.0 };
        let sometimes = (count(&all) - count(&always)) / cases;
        ((count(&always) + sometimes) / WIDTH).max(carried(&always).into()).max(1.0)
    }

    /// Whether the instruction at `addr` adds to a vector or floating-point number of the turn before, or something like
    /// that: samples come after it, whether the number waits for memory or for the sum before.
    #[must_use]
    pub fn adds_up(&self, addr: FileAddr) -> bool {
        let adds = |i: &Instruction, r: Reg| i.kind == Kind::Compute && i.reads.has(r);
        let only_adds =
            |r: Reg| self.instructions().filter(|i| i.writes.has(r)).all(|i| adds(i, r));
        let mut at = self.instructions().filter(|i| i.addr == addr.0);
        at.any(|i| i.writes.iter().any(|r| r.is_vector() && only_adds(r)))
    }
}

/// The cycles by which the results of one turn come later than those of the turn before: the longest chain of
/// instructions of which each needs the one before, from turn to turn.
fn carried(body: &[&Instruction]) -> u32 {
    let mut ready = [0_u32; Reg::COUNT];
    let mut after = [0_u32; 3];
    for end in &mut after {
        for instruction in body {
            let operands = instruction.reads.iter().map(|r| ready[r.index()]).max().unwrap_or(0);
            let vector = instruction.writes.iter().any(Reg::is_vector);
            let own = match (instruction.kind, instruction.memory) {
                (Kind::Move | Kind::Nop, _) => 0,
                (Kind::Load, _) => LOAD,
                (Kind::Compute | Kind::Atomic, Some(m)) if m.read && m.written => THROUGH_MEMORY,
                // What comes from memory is there before: only the computation is in the chain.
                (Kind::Compute, _) if vector => VECTOR,
                _ => 1,
            };
            for register in instruction.writes.iter() {
                ready[register.index()] = operands + own;
            }
        }
        *end = ready.iter().copied().max().unwrap_or(0);
    }
    let through_memory = body
        .iter()
        .any(|i| matches!(i.kind, Kind::Compute) && i.memory.is_some_and(|m| m.read && m.written));
    (after[2] - after[1]).max(if through_memory { THROUGH_MEMORY } else { 0 })
}
