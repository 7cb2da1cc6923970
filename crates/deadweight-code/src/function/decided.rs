//! What a branch waits for: the load of the value that it is decided by. Not whether the branch goes where the CPU expects.
//!
//! A CPU runs a comparison and its branch as one, so a sample that waited for the load of the comparison comes behind the
//! branch, on either way.

use super::Function;
use super::steps;
use super::turns::{Access, Cycle};
use crate::body::find;
use crate::instruction::{Instruction, Kind, Memory, Reg};
use deadweight_trace::units::FileAddr;

impl Function {
    /// The load that decides which way leads to the instruction at `addr`, or which way a branch there goes, with its
    /// address as the registers give it after that instruction. None if several loads lead there that walk over
    /// different memory, or if a register of the address is lost. `reach`: how far before the comparison it may be.
    #[must_use]
    pub fn decided_by(
        &self,
        addr: FileAddr,
        within: &Cycle<'_>,
        reach: usize,
    ) -> Option<(FileAddr, Access)> {
        let at = find(&self.instructions, addr.0)?;
        let leads_here = |branch: &usize| {
            let instruction = &self.instructions[*branch];
            let falls = *branch + 1 == at && matches!(instruction.kind, Kind::Branch(_));
            falls || instruction.kind == Kind::Branch(addr.0)
        };
        let is_branch = matches!(self.instructions[at].kind, Kind::Branch(_));
        let branches =
            within.members().filter(|b| if is_branch { *b == at } else { leads_here(b) });
        let mut loads = branches.map(|branch| self.compared_by(branch, reach));
        let (load, branch) = loads.next()??;
        let operand = |load: usize| self.instructions[load].memory;
        let key = |m: Memory| (m.base, m.index, m.scale);
        let alike = |other: Option<(usize, usize)>| {
            other.is_some_and(|(other, _)| operand(other).map(key) == operand(load).map(key))
        };
        if !loads.all(alike) {
            return None;
        }
        let by = FileAddr(self.instructions[load].addr);
        let mut access = self.access(by, Some(within))?;
        let since = &self.instructions[load..=branch];
        let parts = [(access.memory.base, 1), (access.memory.index, access.memory.scale)];
        for (register, scale) in parts.into_iter().filter_map(|(r, scale)| Some((r?, scale))) {
            if since.iter().any(|i| i.writes.has(register)) {
                return None;
            }
            let moved = if is_branch { 0 } else { moved(&self.instructions[at], register)? };
            access.memory.offset -= moved.checked_mul(scale.into())?;
        }
        Some((by, access))
    }

    /// The load that the comparison before a branch needs, and the branch.
    fn compared_by(&self, branch: usize, reach: usize) -> Option<(usize, usize)> {
        let compare = branch.checked_sub(1).filter(|_| !self.entered[branch])?;
        let instruction = &self.instructions[compare];
        if instruction.kind != Kind::Compare {
            return None;
        }
        if instruction.memory.is_some_and(|m| m.read && !m.written) {
            return Some((compare, branch));
        }
        let load = self.load_before(FileAddr(instruction.addr), reach)?;
        Some((find(&self.instructions, load.0)?, branch))
    }
}

/// By how much an instruction moves a register; none if it holds something else after it.
fn moved(instruction: &Instruction, register: Reg) -> Option<i64> {
    if !instruction.writes.has(register) {
        return Some(0);
    }
    let (from, more) = steps::sum(instruction)?;
    (from == register && instruction.data[0] == Some(register)).then_some(more)
}

#[cfg(test)]
mod tests {
    use crate::function::Function;
    use crate::function::steps::Step;
    use crate::function::turns::Pattern;
    use crate::tests::hex;
    use crate::{Abi, Code};
    use deadweight_trace::syscall::Arch;
    use deadweight_trace::units::FileAddr;

    // 0: add rdi, 256; 7: cmp rdi, r8; a: je 18; c: cmp [rdi], esi; e: jne 0; 10: addsd xmm0, xmm1; 14: jmp 0; 16: ret
    const FIELD: &str = "4881c700010000 4c39c7 740a 3937 75f0 f20f58c1 ebea c3";

    fn read(code: &str) -> Function {
        let bytes = hex(code);
        let abi = Abi::Platform;
        Function::read(&Code { arch: Arch::X86_64, abi, addr: FileAddr(0), bytes: &bytes }, &|_| {
            None
        })
    }

    fn decided(function: &Function, addr: u64) -> Option<(u64, i64, Pattern)> {
        let around = function.cycles_around(FileAddr(addr)).into_iter().next()?;
        let (by, access) = function.decided_by(FileAddr(addr), &around, 4)?;
        Some((by.0, access.memory.offset, access.pattern))
    }

    #[test]
    fn both_ways_of_a_branch_wait_for_what_it_compares() {
        let field = read(FIELD);
        let strided = Pattern::Strided(Step::By(256));
        // The branch itself, and behind it; at its target the register has moved on.
        assert_eq!(decided(&field, 0xe), Some((0xc, 0, strided)));
        assert_eq!(decided(&field, 0x10), Some((0xc, 0, strided)));
        assert_eq!(decided(&field, 0), Some((0xc, -256, strided)));
        // The end of the loop compares registers.
        assert_eq!(decided(&field, 0xa), None);
    }
}
