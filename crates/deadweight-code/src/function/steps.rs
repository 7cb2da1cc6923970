//! Steps: by how much a register, or a sum of registers, moves. What single instructions add; not loops.

use crate::instruction::{Instruction, Kind, Reg};

/// By how much something moves in each turn.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// By this number.
    By(i64),
    /// By what this register holds throughout, times the number.
    Of(Reg, i64),
}

/// The register whose value an instruction's result is, with a number added.
pub(crate) fn sum(instruction: &Instruction) -> Option<(Reg, i64)> {
    let first = instruction.data[0];
    match (instruction.kind, instruction.memory) {
        (Kind::Advance(by), _) => Some((first?, by)),
        (Kind::Move, _) => Some((instruction.data[1]?, 0)),
        (Kind::Address, Some(m)) if m.index.is_none() && !m.thread_local => {
            Some((m.base?, m.offset))
        }
        (_, Some(m)) if instruction.step != 0 => Some((m.base?, instruction.step)),
        _ => None,
    }
}

/// The register that an instruction advances, and by how much.
pub(super) fn advanced(instruction: &Instruction) -> Option<(Reg, Step)> {
    let register = instruction.data[0].filter(|r| !r.is_vector());
    match (instruction.kind, register, instruction.data[1]) {
        (Kind::Advance(by), Some(register), _) if by != 0 => Some((register, Step::By(by))),
        (Kind::Compute, Some(register), Some(by)) if instruction.memory.is_none() => {
            (by != register && !by.is_vector()).then_some((register, Step::Of(by, 1)))
        }
        // Post-index and pre-index addresses.
        _ if instruction.step != 0 => Some((instruction.memory?.base?, Step::By(instruction.step))),
        _ => None,
    }
}

/// A step of something that is multiplied.
pub(super) fn times(step: Step, scale: i64) -> Step {
    match step {
        Step::By(by) => Step::By(by.wrapping_mul(scale)),
        Step::Of(register, by) => Step::Of(register, by.wrapping_mul(scale)),
    }
}

/// The step of a sum; none if no single register has it.
pub(super) fn add(a: Step, b: Step) -> Option<Step> {
    match (a, b) {
        (Step::By(a), Step::By(b)) => Some(Step::By(a.wrapping_add(b))),
        (Step::By(0), step) | (step, Step::By(0)) => Some(step),
        (Step::Of(a, x), Step::Of(b, y)) if a == b => Some(Step::Of(a, x.wrapping_add(y))),
        _ => None,
    }
}
