//! A function's instructions as the rules read them: with blocks, names of callees, and registers of one value.
//!
//! Not for roles; see `roles`.

use crate::abi::Convention;
use crate::code::Names;
use crate::instruction::{Instruction, Kind};
use crate::single_assignment::SingleAssignment;
use deadweight_trace::units::FileAddr;

/// The input of the rules.
pub(crate) struct Body<'a, 'n> {
    pub(crate) instructions: &'a [Instruction],
    /// By instruction: whether it is the first one or the target of a jump or branch in the function.
    pub(crate) entered: &'a [bool],
    pub(crate) convention: Convention,
    pub(crate) names: &'a Names<'n>,
    pub(crate) single: SingleAssignment,
}

impl Body<'_, '_> {
    /// The name of the code that an instruction calls or jumps to.
    pub(crate) fn callee(&self, instruction: &Instruction) -> Option<&str> {
        let through = || self.single.pointer(self.instructions, self.at(instruction.addr)?);
        (self.names)(FileAddr(instruction.callee().or_else(through)?))
    }

    /// The instruction that begins at `addr`.
    pub(crate) fn at(&self, addr: u64) -> Option<usize> {
        self.instructions.binary_search_by_key(&addr, |i| i.addr).ok()
    }

    /// Whether a basic block begins at instruction `i`.
    pub(crate) fn begins_block(&self, i: usize) -> bool {
        self.entered[i] || self.instructions[i - 1].ends_block()
    }

    /// Basic blocks as ranges of indexes; calls do not end one.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut start = 0;
        std::iter::from_fn(move || {
            let count = self.instructions.len();
            (start < count).then(|| {
                let end = (start + 1..count).find(|i| self.begins_block(*i)).unwrap_or(count);
                std::mem::replace(&mut start, end)..end
            })
        })
    }
}

/// The instruction that holds `addr`.
pub(crate) fn find(instructions: &[Instruction], addr: u64) -> Option<usize> {
    let i = instructions.partition_point(|i| i.addr <= addr).checked_sub(1)?;
    (addr < instructions[i].end()).then_some(i)
}

/// By instruction: whether it is the first one or the target of a jump or branch among them.
pub(crate) fn entered(instructions: &[Instruction]) -> Vec<bool> {
    let mut entered = vec![false; instructions.len()];
    if let Some(first) = entered.first_mut() {
        *first = true;
    }
    for target in instructions.iter().filter_map(Instruction::target) {
        if let Ok(i) = instructions.binary_search_by_key(&target, |i| i.addr) {
            entered[i] = true;
        }
    }
    entered
}

/// Whether an instruction leaves the function: a return or a tail call.
pub(crate) fn leaves(body: &Body<'_, '_>, instruction: &Instruction) -> bool {
    match instruction.kind {
        Kind::Return => true,
        Kind::Jump(Some(target)) => body.at(target).is_none(),
        _ => false,
    }
}
