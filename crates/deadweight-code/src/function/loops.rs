//! Loops of a function, found by backward jumps: the instructions that run with a hot one.
//!
//! Innermost loops only, without nesting or induction variables: enough for the share of a loop's instructions with a
//! role. Not a compiler's analysis.

use super::Function;
use crate::body::find;
use crate::flow;
use crate::instruction::{Instruction, Kind, Registers};
use crate::roles::Role;
use deadweight_trace::units::FileAddr;

/// How many instructions ahead the loop's backward jump is searched.
const REACH: usize = 512;
/// A loop that only waits has at most so many instructions.
const WAITING: usize = 24;

/// A stretch of instructions that runs repeatedly.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Its first instruction ...
    pub first: FileAddr,
    /// ... and its last.
    pub last: FileAddr,
    /// How many instructions it has.
    pub instructions: u32,
    /// How many of them compare an index with a length, or branch on the result, without having just loaded
    /// the index.
    pub checks: u32,
    /// How many of them belong to another check that ends in a panic, mostly of overflow.
    pub other_checks: u32,
    /// Whether it treats all elements alike, apart from checks: no other branches, no calls, no index that it has just
    /// loaded, and at least one store. A compiler could vectorise it without the checks.
    pub uniform: bool,
    /// Whether it reads memory and changes nothing that its next turn reads: it waits for another thread.
    pub stands_still: bool,
}

impl Loop {
    /// Whether the instruction at `addr` is in it.
    #[must_use]
    pub fn holds(&self, addr: FileAddr) -> bool {
        (self.first..=self.last).contains(&addr)
    }

    /// The share of bounds checks among its instructions, in 0..=1.
    #[must_use]
    pub fn bounds_check_share(&self) -> f64 {
        f64::from(self.checks) / f64::from(self.instructions.max(1))
    }

    /// The share of checks of any kind among its instructions, in 0..=1.
    #[must_use]
    pub fn check_share(&self) -> f64 {
        f64::from(self.checks + self.other_checks) / f64::from(self.instructions.max(1))
    }
}

impl Function {
    /// The smallest loop that holds the instruction at `addr`; none outside loops.
    #[must_use]
    pub fn loop_around(&self, addr: FileAddr) -> Option<Loop> {
        let inside = find(&self.instructions, addr.0)?;
        let behind = self.instructions.iter().enumerate().skip(inside).take(REACH);
        let back = |(last, i): (usize, &Instruction)| {
            let target = i.target().filter(|to| *to <= self.instructions[inside].addr)?;
            let first = self.instructions.binary_search_by_key(&target, |i| i.addr).ok()?;
            Some((first, last))
        };
        let mut back: Vec<_> = behind.filter_map(back).collect();
        back.sort_unstable_by_key(|(first, last)| last - first);
        let (first, last) = back.into_iter().find(|back| self.goes_round(*back, inside))?;
        Some(self.describe(first, last))
    }

    /// Whether `inside` is on a path from the first to the last of these instructions that stays among them. A jump back
    /// from cold code behind the function's hot part spans instructions that are no loop.
    fn goes_round(&self, (first, last): (usize, usize), inside: usize) -> bool {
        let within = |at: usize| (first..=last).contains(&at) && at != first;
        let reaches = |ends| flow::reaches(&self.instructions, ends, within);
        reaches((first, inside)) && reaches((inside, last))
    }

    /// The instructions that [`Loop::checks`] counts.
    pub fn checks_in(&self, around: &Loop) -> impl Iterator<Item = FileAddr> {
        let inside = *around;
        let checks = self.instructions.iter().zip(&self.roles).filter(|(_, role)| is_check(role));
        checks.map(|(i, _)| FileAddr(i.addr)).filter(move |addr| inside.holds(*addr))
    }

    fn describe(&self, first: usize, last: usize) -> Loop {
        let roles = &self.roles[first..=last];
        let body = &self.instructions[first..=last];
        let other_way = |(i, role): (&Instruction, &Role)| match i.kind {
            Kind::Branch(to) => {
                to != body[0].addr && !matches!(role, Role::BoundsCheck { .. } | Role::OtherCheck)
            }
            Kind::Jump(_) | Kind::Call(_) | Kind::Return | Kind::Atomic | Kind::System => true,
            _ => *role == Role::BoundsCheck { after_load: true },
        };
        let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Loop {
            first: FileAddr(body[0].addr),
            last: FileAddr(body[body.len() - 1].addr),
            instructions: small(body.iter().filter(|i| i.kind != Kind::Nop).count()),
            checks: small(roles.iter().filter(|role| is_check(role)).count()),
            other_checks: small(roles.iter().filter(|role| **role == Role::OtherCheck).count()),
            uniform: body.iter().any(|i| i.kind == Kind::Store)
                && !body.iter().zip(roles).any(other_way),
            stands_still: stands_still(body),
        }
    }
}

/// Whether these instructions, run in a loop, read memory and change nothing that the next turn reads.
fn stands_still(body: &[Instruction]) -> bool {
    let plain = |i: &Instruction| {
        let kind = matches!(
            i.kind,
            Kind::Load
                | Kind::Move
                | Kind::Constant(_)
                | Kind::Address
                | Kind::Compare
                | Kind::Compute
                | Kind::Jump(Some(_))
                | Kind::Branch(_)
                | Kind::Nop
        );
        kind && !i.memory.is_some_and(|memory| memory.written)
    };
    let written = body.iter().fold(Registers::default(), |all, i| all.and(i.writes));
    let mut fresh = Registers::default();
    let carries = body.iter().any(|i| {
        let old = written.without(fresh);
        fresh = fresh.and(i.writes);
        i.reads.meets(old)
    });
    let reads = |i: &Instruction| {
        i.kind != Kind::Address
            && i.memory.is_some_and(|memory| memory.read && !memory.thread_local)
    };
    body.len() <= WAITING && body.iter().all(plain) && body.iter().any(reads) && !carries
}

fn is_check(role: &Role) -> bool {
    *role == Role::BoundsCheck { after_load: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::hex;
    use crate::{Abi, Code};
    use deadweight_trace::syscall::Arch;

    fn read(code: &str) -> Function {
        let bytes = hex(code);
        let abi = Abi::Platform;
        let code = Code { arch: Arch::X86_64, abi, addr: FileAddr(0), bytes: &bytes };
        Function::read(&code, &|addr| {
            (addr.0 == 0x100).then_some("core::panicking::panic_bounds_check")
        })
    }

    #[test]
    fn a_cold_block_behind_the_function_makes_no_loop() {
        // 0: cmp eax, 9; 3: jae 10
        // 5: add eax, [rdi]; 7: add eax, [rsi]; 9: ret
        // 10: mov eax, 1; 15: jmp 5
        let function = read("83f809730b030703 06c30f1f4400009090b801000000ebee");
        assert_eq!(function.loop_around(FileAddr(7)), None);
    }

    #[test]
    fn only_an_index_that_changes_in_the_loop_is_waited_for() {
        // 0: mov rcx, [rdi+10h]; 4: mov rax, r8; 7: imul rax, rcx; b: add rax, rdx
        // e: cmp rax, r10; 11: jae 24; 13: mov r9d, [rsi+rax*4]; 17: mov [r11+rdx*4], r9d
        // 1b: inc rdx; 1e: cmp rdx, rbx; 21: jne 0; 23: ret; 24: call 100
        let code =
            "488b4f104c89c0480fafc14801d04c39d07311448b0c86 45890c93 48ffc24839da75ddc3e8d7000000";
        let around = |code: &str| read(code).loop_around(FileAddr(7)).unwrap();
        assert_eq!(around(code).checks, 2);
        // 17: mov [rdi+10h], ecx; nop
        assert_eq!(around(&code.replace("45890c93", "894f1090")).checks, 0);
    }

    #[test]
    fn the_smallest_loop_is_found_with_its_checks() {
        // 0: xor eax, eax
        // 2: mov ecx, [rdi+rax*4]   outer loop
        // 5: mov edx, [rsi+rax*4]   inner loop
        // 8: cmp rax, r8
        // b: jae 24
        // d: add edx, 1
        // 10: mov [rsi+rax*4], edx
        // 13: inc rax
        // 16: cmp rax, r9
        // 19: jne 5
        // 1b: dec r10
        // 1e: jne 2
        // 20: ret; 21: nop
        // 24: mov rdi, rax; call 100
        let code = "31c08b0c878b14864c39c0\
                    7317\
                    83c201891486\
                    48ffc04c39c875ea49ffca75e2c30f1f00\
                    4889c7e8d4000000";
        let function = read(code);
        let inner = function.loop_around(FileAddr(0xd)).unwrap();
        assert_eq!((inner.first, inner.last), (FileAddr(5), FileAddr(0x19)));
        assert_eq!((inner.instructions, inner.checks, inner.uniform), (8, 2, true));
        let outer = function.loop_around(FileAddr(2)).unwrap();
        assert_eq!((outer.first, outer.uniform), (FileAddr(2), false));
        assert_eq!(function.loop_around(FileAddr(0)), None);
    }
}
