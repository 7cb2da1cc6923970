//! Patches that remove a cost from a function: a call that fills memory, the checks of a loop, lock prefixes.
//!
//! - In: the bytes of a function, and what to remove.
//! - Out: patches of equal length for a copy of the binary, or the obstacle. Nothing moves. The removed code may have
//!   been needed: running the copy shows that.
//! - Must not know: which removal is worth trying, or files.

use crate::abi::Abi;
use crate::body::{Body, find};
use crate::code::{Code, Names};
use crate::decode;
use crate::decode::x86::rewrite;
use crate::function::Function;
use crate::function::loops::Loop;
use crate::instruction::{Instruction, Kind};
use crate::roles::routine::{self, Routine};
use crate::roles::{Role, checks};
use crate::single_assignment::SingleAssignment;
use deadweight_trace::patch::Patch;
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;

/// Why something cannot be removed from machine code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Only x86-64 is supported.
    #[error("only x86-64 code can be changed")]
    Architecture,
    /// The instruction neither calls a routine that fills memory nor fills a block itself.
    #[error("it is not a call of a routine that only fills memory")]
    NotAFill,
    /// The registers that a block fill changes are used later.
    #[error("later instructions use the address that it leaves in a register")]
    RegistersUsed,
    /// Nothing there can be replaced by bytes of the same length.
    #[error("its instructions cannot be replaced by others of the same length")]
    NotReplaceable,
}

/// A function with its bytes and names.
struct Reading<'c, 'n> {
    code: &'c Code<'c>,
    names: &'c Names<'n>,
    function: Function,
}

impl<'c, 'n> Reading<'c, 'n> {
    fn of(code: &'c Code<'c>, names: &'c Names<'n>) -> Result<Self, Obstacle> {
        if code.arch != Arch::X86_64 {
            return Err(Obstacle::Architecture);
        }
        Ok(Self { code, names, function: Function::read(code, names) })
    }

    /// The bytes from address `at` on, to the function's end.
    fn bytes_from(&self, at: u64) -> &'c [u8] {
        let into = usize::try_from(at.saturating_sub(self.code.addr.0)).unwrap_or(usize::MAX);
        self.code.bytes.get(into..).unwrap_or_default()
    }

    fn patch(&self, instruction: &Instruction, becomes: Vec<u8>) -> Result<Patch, Obstacle> {
        let was = self.bytes_from(instruction.addr).get(..becomes.len());
        let was = was.filter(|was| was.len() == usize::from(instruction.len));
        let was = was.ok_or(Obstacle::NotReplaceable)?.to_vec();
        Ok(Patch { addr: FileAddr(instruction.addr), was, becomes })
    }

    fn left_out(&self, instruction: &Instruction) -> Result<Patch, Obstacle> {
        self.patch(instruction, rewrite::nops(instruction.len.into()))
    }

    fn body(&self) -> Body<'_, 'n> {
        let convention = decode::convention(self.code);
        Body {
            instructions: &self.function.instructions,
            entered: &self.function.entered,
            convention,
            names: self.names,
            single: SingleAssignment::of(&self.function.instructions, convention.saved),
        }
    }
}

/// Removes the instruction at `at` that sets memory to a value, or the call that holds `at` and does so.
///
/// # Errors
/// If there is no such instruction or call, or if more than the memory would change.
pub fn without_fill(
    code: &Code<'_>,
    names: &Names<'_>,
    at: FileAddr,
) -> Result<Vec<Patch>, Obstacle> {
    let read = Reading::of(code, names)?;
    let instructions = read.function.instructions();
    let index = find(instructions, at.0).ok_or(Obstacle::NotAFill)?;
    let instruction = &instructions[index];
    if instruction.kind == Kind::FillBlock {
        if rewrite::uses_end(read.bytes_from(instruction.end())) {
            return Err(Obstacle::RegistersUsed);
        }
        let becomes = rewrite::skipped_block_fill(instruction.len.into());
        return Ok(vec![read.patch(instruction, becomes.ok_or(Obstacle::NotReplaceable)?)?]);
    }
    let body = read.body();
    let name = body.callee(instruction).unwrap_or_default();
    // Secrets are cleared for a reason that no output shows.
    if name.contains("explicit") || !routine::named(name).is_some_and(Routine::fills) {
        return Err(Obstacle::NotAFill);
    }
    let last = match instruction.kind {
        Kind::Call(_) => false,
        Kind::Jump(_) => true,
        _ => return Err(Obstacle::NotAFill),
    };
    let len = usize::from(instruction.len);
    let becomes = match code.abi {
        // Go's routines have no result.
        Abi::Go if !last => Some(rewrite::nops(len)),
        Abi::Go => None,
        Abi::Platform => rewrite::skipped_fill(len, last),
    };
    Ok(vec![read.patch(instruction, becomes.ok_or(Obstacle::NotReplaceable)?)?])
}

/// Removes the bounds checks of a loop, except checks of an index that was just loaded.
///
/// # Errors
/// If none can be removed.
pub fn without_checks(
    code: &Code<'_>,
    names: &Names<'_>,
    around: &Loop,
) -> Result<Vec<Patch>, Obstacle> {
    let read = Reading::of(code, names)?;
    let body = read.body();
    let (instructions, roles) = (read.function.instructions(), read.function.roles());
    let mut patches = Vec::new();
    for (at, instruction) in instructions.iter().enumerate() {
        let check = roles[at] == Role::BoundsCheck { after_load: false };
        if !check || !around.holds(FileAddr(instruction.addr)) {
            continue;
        }
        let Kind::Branch(target) = instruction.kind else { continue };
        let Some(panics_if_taken) = checks::panics_if_taken(&body, at) else { continue };
        let hot = if panics_if_taken { instruction.end() } else { target };
        let branch = if panics_if_taken {
            read.left_out(instruction)
        } else {
            let taken = rewrite::always_taken(read.bytes_from(instruction.addr));
            taken.ok_or(Obstacle::NotReplaceable).and_then(|bytes| read.patch(instruction, bytes))
        };
        let Ok(branch) = branch else { continue };
        patches.push(branch);
        // The compare is removed too if no other instruction reads its flags, and with it the load of a length that
        // only it uses.
        let Some(compare) = checks::compare(&body, at) else { continue };
        if rewrite::reads_flags(read.bytes_from(hot)) {
            continue;
        }
        let length = checks::length(&body, compare);
        for index in std::iter::once(compare).chain(length) {
            if roles[index] == roles[at] {
                patches.extend(read.left_out(&instructions[index]));
            }
        }
    }
    patches.sort_by_key(|patch| patch.addr);
    patches.dedup();
    if patches.is_empty() { Err(Obstacle::NotReplaceable) } else { Ok(patches) }
}

/// Removes the lock prefixes of a function: for a program with one thread this changes nothing.
///
/// # Errors
/// If there is none.
pub fn without_locks(code: &Code<'_>, names: &Names<'_>) -> Result<Vec<Patch>, Obstacle> {
    let read = Reading::of(code, names)?;
    let atomic = read.function.instructions().iter().filter(|i| i.kind == Kind::Atomic);
    let patch = |instruction: &Instruction| {
        let bytes = rewrite::unlocked(read.bytes_from(instruction.addr))?;
        read.patch(instruction, bytes).ok()
    };
    let patches: Vec<Patch> = atomic.filter_map(patch).collect();
    if patches.is_empty() { Err(Obstacle::NotReplaceable) } else { Ok(patches) }
}

#[cfg(test)]
mod tests;
