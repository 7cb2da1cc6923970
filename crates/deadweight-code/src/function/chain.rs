//! The least time that a turn of a loop takes: its instructions, or the longest chain of them from turn to turn.
//!
//! Not for what memory or branches cost; registers that were recorded show that.

use super::Function;
use super::steps::Step;
use super::turns::{Cycle, Pattern};
use crate::code::Code;
use crate::decode;
use crate::instruction::{Instruction, Kind, Memory, Reg};
use deadweight_trace::units::FileAddr;
use std::collections::BTreeSet;

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

    /// The divisions among the few instructions before the one at `addr`. `code`: the function's bytes.
    pub fn divisions_before<'f>(
        &'f self,
        code: &'f Code<'_>,
        addr: FileAddr,
        reach: usize,
    ) -> impl Iterator<Item = FileAddr> + 'f {
        let at = self.instructions.partition_point(|i| i.addr < addr.0);
        let before = &self.instructions[at.saturating_sub(reach)..at];
        let divisions = before.iter().filter(|i| decode::division(code, i).is_some());
        divisions.map(|i| FileAddr(i.addr))
    }
}

impl Cycle<'_> {
    /// The least number of cycles for a turn, if all that it needs is in the first cache and no branch is a surprise. Of
    /// code that only some turns pass, half counts; of the cases of a jump through a table, one of them.
    #[must_use]
    pub fn least_cycles(&self) -> f64 {
        let passed: Vec<&Instruction> =
            self.natural.always().map(|at| &self.function.instructions[at]).collect();
        self.begun_cycles().max(carried(&passed).into())
    }

    /// The same if no instruction waits for the result of another one.
    #[must_use]
    pub fn begun_cycles(&self) -> f64 {
        let by_table = self.instructions().any(|i| i.kind == Kind::Jump(None));
        let counts = |i: &&Instruction| i.kind != Kind::Nop;
        let all = self.instructions().filter(counts).count() as f64;
        let passed = self.natural.always().map(|at| &self.function.instructions[at]);
        let always = passed.filter(counts).count() as f64;
        let cases = if by_table { self.ways().len().max(2) as f64 } else { 2.0 };
        ((always + (all - always) / cases) / WIDTH).max(1.0)
    }

    /// The cycles of a turn in which each element of an array waits for the one that was stored before it, and was loaded
    /// again: all such elements count, also those that only some turns store, and as if they were one chain.
    #[must_use]
    pub fn passed_on_cycles(&self) -> f64 {
        let (head, mut turn) = (self.head(), self.instructions().collect::<Vec<_>>());
        turn.sort_by_key(|i| (i.addr < head.0, i.addr));
        let moves =
            |i: &Instruction| match self.function.access(FileAddr(i.addr), Some(self))?.pattern {
                Pattern::Strided(Step::By(by)) if by != 0 => Some(by),
                _ => None,
            };
        let key = |m: Memory| (m.base, m.index, m.scale);
        let (mut stored, mut loaded) = (Vec::new(), Vec::new());
        for (at, instruction) in turn.iter().enumerate() {
            let Some(memory) = instruction.memory else { continue };
            let Some(step) = moves(instruction) else { continue };
            // Behind the place where they move on, registers are a step ahead.
            let of = |r: Reg| memory.base == Some(r) || memory.index == Some(r);
            let ahead = turn[..at].iter().any(|i| i.writes.iter().any(of));
            let offset = memory.offset.wrapping_add(if ahead { step } else { 0 });
            match instruction.kind {
                Kind::Store => stored.push((key(memory), offset, step, at)),
                _ if memory.read && !memory.written => loaded.push((key(memory), offset, step, at)),
                _ => {}
            }
        }
        let is_loaded = |s: &(_, i64, i64, usize)| {
            loaded.iter().any(|l| {
                let later = l.1 == s.1 && l.3 > s.3;
                (l.0, l.2) == (s.0, s.2) && (later || l.1.wrapping_add(s.2) == s.1)
            })
        };
        let places: BTreeSet<i64> = stored.iter().filter(|s| is_loaded(s)).map(|s| s.1).collect();
        places.len() as f64 * f64::from(THROUGH_MEMORY + 1)
    }

    /// The instructions of a turn, and of the next up to there, that need the result of the one at `addr`, at one or more
    /// removes; no branches. None if a turn may go without it.
    #[must_use]
    pub fn waiting_for(&self, addr: FileAddr) -> BTreeSet<FileAddr> {
        let turn: Vec<&Instruction> =
            self.natural.always().map(|at| &self.function.instructions[at]).collect();
        let Some(at) = turn.iter().position(|i| i.addr == addr.0) else { return BTreeSet::new() };
        let (mut results, mut waiting) = (turn[at].writes, BTreeSet::new());
        for instruction in turn[at + 1..].iter().chain(&turn[..at]) {
            if instruction.reads.meets(results) {
                results = results.and(instruction.writes);
                if !instruction.ends_block() {
                    waiting.insert(FileAddr(instruction.addr));
                }
            } else {
                results = results.without(instruction.writes);
            }
        }
        waiting
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

#[cfg(test)]
mod tests {
    use crate::tests::hex;
    use crate::{Abi, Code, Function};
    use deadweight_trace::syscall::Arch;
    use deadweight_trace::units::FileAddr;

    /// The cycles that elements pass on in the loop at 0.
    fn passed_on(bytes: &str) -> f64 {
        let bytes = hex(bytes);
        let abi = Abi::Platform;
        let code = Code { arch: Arch::X86_64, abi, addr: FileAddr(0), bytes: &bytes };
        Function::read(&code, &|_| None).cycles_around(FileAddr(0))[0].passed_on_cycles()
    }

    #[test]
    fn an_element_that_waits_for_the_one_before_it_is_passed_on_through_memory() {
        // 0: mov eax, [rdi+rcx*4-4]; 4: add eax, [rsi+rcx*4]; 7: mov [rdi+rcx*4], eax; a: add rcx, 1; e: cmp rcx, rdx; 11: jne 0
        assert!((passed_on("8b448ffc 03048e 89048f 4883c101 4839d1 75ed c3") - 6.0).abs() < 1e-9);
        // The same behind where the counter moves on: 7: add rcx, 1; b: mov [rdi+rcx*4-4], eax
        assert!((passed_on("8b448ffc 03048e 4883c101 89448ffc 4839d1 75ec c3") - 6.0).abs() < 1e-9);
    }

    #[test]
    fn an_element_that_only_takes_its_own_new_value_is_not_passed_on() {
        // 0: mov eax, [rdi+rcx*4]; and the one that comes next: 0: mov eax, [rdi+rcx*4+4]
        assert!(passed_on("8b048f 03048e 89048f 4883c101 4839d1 75ee c3") < 1e-9);
        assert!(passed_on("8b448f04 03048e 89048f 4883c101 4839d1 75ed c3") < 1e-9);
    }

    #[test]
    fn what_needs_a_remainder_waits_for_it() {
        // 0: mov rax, rbx; 3: xor edx, edx; 5: sub rax, [r11+rcx*8]; 9: div rsi; c: movss xmm0, [rdi+rdx*4]
        // 11: mulss xmm0, [r10+rcx*4]; 17: add rcx, 1; 1b: addss xmm1, xmm0; 1f: cmp rcx, r8; 22: jne 0; 24: ret
        let bytes =
            hex("4889d8 31d2 492b04cb 48f7f6 f30f100497 f3410f59048a 4883c101 f30f58c8 4c39c1 \
             75dc c3");
        let abi = Abi::Platform;
        let code = Code { arch: Arch::X86_64, abi, addr: FileAddr(0), bytes: &bytes };
        let taps = Function::read(&code, &|_| None);
        let cycle = taps.cycles_around(FileAddr(9))[0];
        let waiting: Vec<u64> = cycle.waiting_for(FileAddr(9)).iter().map(|at| at.0).collect();
        assert_eq!(waiting, [0xc, 0x11, 0x1b]);
        let divisions = |at| taps.divisions_before(&code, FileAddr(at), 4).next();
        assert_eq!((divisions(0x11), divisions(9)), (Some(FileAddr(9)), None));
    }
}
