//! What a turn of a loop does: how registers and addresses move from one turn to the next, and where the way ahead is
//! open.
//!
//! Not for how long that takes ([`super::chain`]), nor for what memory or branches cost; registers that were recorded show that. Registers that a turn changes in two
//! places, or perhaps not at all, are left out.

use super::Function;
use super::nest::NaturalLoop;
use super::steps;
use super::steps::{Step, add, advanced, times};
use super::ways;
use crate::body::find;
use crate::instruction::{Instruction, Kind, Memory, Reg, Registers};
use crate::roles::Role;
use deadweight_trace::units::FileAddr;
use std::collections::BTreeSet;

/// Through how many registers an address is followed.
const DEPTH: u32 = 6;
/// A loop with more instructions is no inner loop: how its registers move is not asked.
const LARGEST: usize = 1024;
/// General registers have lower numbers.
const GENERAL: usize = 32;

/// How an address moves from turn to turn.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// It does not.
    Fixed,
    /// By the same step.
    Strided(Step),
    /// It is what the access itself loaded in the turn before: a chain of pointers.
    Chased,
    /// It comes from another load or computation.
    Open,
}

/// An access to memory by one instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The operand.
    pub memory: Memory,
    /// How its address moves in the loop; [`Pattern::Open`] outside of loops.
    pub pattern: Pattern,
    /// The register that the instruction loads, if it is also part of the address: then that is lost after it.
    pub replaces: Option<Reg>,
}

/// A natural loop of a function.
#[derive(Copy, Clone, Debug)]
pub struct Cycle<'f> {
    pub(super) function: &'f Function,
    pub(super) natural: &'f NaturalLoop,
}

impl Function {
    /// The natural loops that hold the instruction at `addr`, innermost first.
    #[must_use]
    pub fn cycles_around(&self, addr: FileAddr) -> Vec<Cycle<'_>> {
        let Some(at) = find(&self.instructions, addr.0) else { return Vec::new() };
        let holding = self.natural_loops().iter().filter(|natural| natural.holds(at));
        let mut found: Vec<_> = holding.map(|natural| Cycle { function: self, natural }).collect();
        found.sort_by_key(|cycle| cycle.natural.members.len());
        found
    }

    /// The innermost natural loop whose turns begin at `head`.
    #[must_use]
    pub fn cycle_at(&self, head: FileAddr) -> Option<Cycle<'_>> {
        self.cycles_around(head).into_iter().find(|cycle| cycle.head() == head)
    }

    /// The access of the instruction at `addr`, if it reads or writes memory; in a loop with its pattern.
    #[must_use]
    pub fn access(&self, addr: FileAddr, within: Option<&Cycle<'_>>) -> Option<Access> {
        let at = find(&self.instructions, addr.0)?;
        let instruction = &self.instructions[at];
        let memory = instruction.memory.filter(|m| m.read || m.written)?;
        if matches!(instruction.kind, Kind::Address | Kind::Nop) {
            return None;
        }
        let part = |register: &Reg| instruction.writes.has(*register);
        let replaces = memory.base.filter(part).or(memory.index.filter(part));
        let within = within.filter(|cycle| cycle.natural.members.len() <= LARGEST);
        let pattern = within.map_or(Pattern::Open, |cycle| cycle.pattern(&memory, at, at, DEPTH));
        Some(Access { memory, pattern, replaces })
    }

    /// The load that the instruction at `addr` needs, if that is one of the few before it in its block.
    #[must_use]
    pub fn load_before(&self, addr: FileAddr, reach: usize) -> Option<FileAddr> {
        let at = find(&self.instructions, addr.0)?;
        let mut needed = self.instructions[at].reads;
        for before in (at.saturating_sub(reach)..at).rev() {
            let instruction = &self.instructions[before];
            if instruction.ends_block() || self.entered[before + 1] {
                return None;
            }
            if needed.meets(instruction.writes) {
                let loads = instruction.memory.is_some_and(|m| m.read && !m.written);
                if loads && instruction.kind != Kind::Address {
                    return Some(FileAddr(instruction.addr));
                }
                needed = needed.without(instruction.writes).and(instruction.reads);
            }
        }
        None
    }

    /// Whether what the instruction at `addr` computes is only compared, by one of the next instructions.
    #[must_use]
    pub fn is_only_compared(&self, addr: FileAddr, reach: usize) -> bool {
        let Some(at) = find(&self.instructions, addr.0) else { return false };
        let result = self.instructions[at].writes;
        let mut after = self.instructions[at + 1..].iter().take(reach);
        let uses = after.find(|i| i.reads.meets(result) || i.writes.meets(result));
        uses.is_some_and(|i| i.kind == Kind::Compare && i.reads.meets(result))
    }

    /// Whether the function changes a register.
    #[must_use]
    pub fn changes(&self, register: Reg) -> bool {
        self.instructions.iter().any(|i| i.writes.has(register))
    }

    /// The accesses of the function, or only of a loop of it, through the same registers as `like`.
    pub fn accesses_like<'f>(
        &'f self,
        like: &'f Memory,
        within: Option<Cycle<'f>>,
    ) -> impl Iterator<Item = Memory> + 'f {
        let inside =
            move |i: &&Instruction| within.is_none_or(|cycle| cycle.holds(FileAddr(i.addr)));
        let all = self.instructions.iter().filter(inside);
        let accessed = all.filter(|i| !matches!(i.kind, Kind::Address | Kind::Nop));
        let memory = accessed.filter_map(|i| i.memory);
        let key = |m: &Memory| (m.base, m.index, m.scale);
        memory.filter(move |m| (m.read || m.written) && key(m) == key(like))
    }
}

impl Cycle<'_> {
    /// The address of the first instruction of each turn.
    #[must_use]
    pub fn head(&self) -> FileAddr {
        FileAddr(self.function.instructions[self.natural.head].addr)
    }

    /// Whether the instruction at `addr` is in it.
    #[must_use]
    pub fn holds(&self, addr: FileAddr) -> bool {
        find(&self.function.instructions, addr.0).is_some_and(|at| self.natural.holds(at))
    }

    /// Its instructions.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.natural.members.iter().map(|at| &self.function.instructions[*at])
    }

    /// The numbers of its instructions in the function.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> {
        self.natural.members.iter().copied()
    }

    /// The registers that advance by the same in each turn, outside of loops in it.
    #[must_use]
    pub fn counters(&self) -> Vec<(Reg, Step)> {
        if self.natural.members.len() > LARGEST {
            return Vec::new();
        }
        let written = self.instructions().fold(Registers::default(), |all, i| all.and(i.writes));
        let general = written.iter().filter(|register| !register.is_vector());
        general.filter_map(|register| Some((register, self.step(register)?))).collect()
    }

    /// Where the program goes on after the branches in it whose way can differ from turn to turn: not checks, and
    /// not the ends of a loop. For a jump through a table these are the blocks that nothing else leads to.
    #[must_use]
    pub fn ways(&self) -> BTreeSet<FileAddr> {
        let Self { function, natural } = self;
        let by_table = self.instructions().any(|i| i.kind == Kind::Jump(None));
        let mut ways = BTreeSet::new();
        for at in natural.members.iter().copied() {
            let (instruction, role) = (&function.instructions[at], &function.roles[at]);
            let behind = at > 0 && !function.instructions[at - 1].falls_through();
            if by_table && behind && !function.entered[at] {
                ways.insert(FileAddr(instruction.addr));
            }
            let Kind::Branch(target) = instruction.kind else { continue };
            let checks = matches!(role, Role::BoundsCheck { .. } | Role::OtherCheck);
            let both = self.holds(FileAddr(target)) && self.holds(FileAddr(instruction.end()));
            if !checks && both && !self.ends_loop(at, target) {
                ways.extend([FileAddr(target), FileAddr(instruction.end())]);
            }
        }
        ways
    }

    /// Whether a branch goes back to the head of a loop that it is in.
    fn ends_loop(&self, branch: usize, target: u64) -> bool {
        let instructions = &self.function.instructions;
        let mut around = self.function.natural_loops().iter().filter(|l| l.holds(branch));
        around.any(|natural| instructions[natural.head].addr == target)
    }

    /// The only instruction in it that writes a register.
    fn only_writer(&self, register: Reg) -> Option<usize> {
        let writes = |at: &&usize| self.function.instructions[**at].writes.has(register);
        let mut writers = self.natural.members.iter().filter(writes);
        writers.next().copied().filter(|_| writers.next().is_none())
    }

    /// Whether a register holds the same in all turns.
    #[must_use]
    pub fn is_constant(&self, register: Reg) -> bool {
        self.instructions().all(|i| !i.writes.has(register))
    }

    /// By how much a register advances in each turn: it is written once, by a sum with what it, or a register that
    /// advances itself, was at the start of the turn.
    fn step(&self, register: Reg) -> Option<Step> {
        let Some(at) = self.only_writer(register) else {
            return ways::step(self.function, self.natural, register);
        };
        let instruction = &self.function.instructions[at];
        if let Some((of, Step::Of(by, times))) = advanced(instruction)
            && self.natural.always().any(|passed| passed == at)
        {
            return (of == register && self.is_constant(by)).then_some(Step::Of(by, times));
        }
        let (origin, _) = self.value_after(at, register)?;
        let (start, step) = self.value_after(usize::MAX, origin)?;
        (start == origin && step != 0).then_some(Step::By(step))
    }

    /// What a register holds after instruction `last` of a turn, or at the turn's end: what another one, or itself, held
    /// at the turn's start, and a number more.
    fn value_after(&self, last: usize, register: Reg) -> Option<(Reg, i64)> {
        let instructions = &self.function.instructions;
        let passed = |at: &usize| self.natural.always().any(|passed| passed == *at);
        let others = self.natural.members.iter().filter(|at| !passed(at));
        let changed =
            others.fold(Registers::default(), |all, at| all.and(instructions[*at].writes));
        let mut held: [Option<(Reg, i64)>; GENERAL] =
            std::array::from_fn(|n| Some((Reg::general(u8::try_from(n).unwrap_or(0)), 0)));
        for at in &self.natural.turn {
            let Some(at) = *at else {
                for (n, held) in (0..).zip(&mut held) {
                    *held = held.filter(|_| !changed.has(Reg::general(n)));
                }
                continue;
            };
            let instruction = &instructions[at];
            let value = steps::sum(instruction).and_then(|(from, more)| {
                let (origin, before) = (*held.get(from.index())?)?;
                Some((origin, before.wrapping_add(more)))
            });
            for written in instruction.writes.iter() {
                let result = instruction.data[0] == Some(written) || instruction.step != 0;
                if let Some(held) = held.get_mut(written.index()) {
                    *held = value.filter(|_| result);
                }
            }
            if at == last {
                break;
            }
        }
        *held.get(register.index())?
    }

    /// How the address of an operand of the instruction `user` moves, as part of that of the instruction `of`.
    fn pattern(&self, memory: &Memory, user: usize, of: usize, depth: u32) -> Pattern {
        let base = memory.base.map(|register| (register, 1));
        let index = memory.index.map(|register| (register, i64::from(memory.scale)));
        let parts = base.into_iter().chain(index);
        self.sum(parts, |register| self.moves(register, user, of, depth))
    }

    /// How a sum of registers, each times a number, moves.
    fn sum(
        &self,
        parts: impl Iterator<Item = (Reg, i64)>,
        moves: impl Fn(Reg) -> Pattern,
    ) -> Pattern {
        let mut sum = Step::By(0);
        for (register, scale) in parts {
            match moves(register) {
                Pattern::Fixed => {}
                Pattern::Strided(step) => match add(sum, times(step, scale)) {
                    Some(both) => sum = both,
                    None => return Pattern::Open,
                },
                other => return other,
            }
        }
        if sum == Step::By(0) { Pattern::Fixed } else { Pattern::Strided(sum) }
    }

    /// The instruction that writes what a register holds when a turn comes to the instruction `before`, if that is one
    /// of those that each turn passes.
    fn writer_before(&self, before: usize, register: Reg) -> Option<usize> {
        let Self { function, natural } = self;
        let at = natural.turn.iter().position(|passed| *passed == Some(before))?;
        let writes = |at: &usize| function.instructions[*at].writes.has(register);
        let passed = |at: &usize| natural.always().any(|passed| passed == *at);
        let perhaps = || natural.members.iter().any(|at| writes(at) && !passed(at));
        for earlier in natural.turn[..at].iter().rev() {
            match earlier {
                Some(at) if writes(at) => return Some(*at),
                None if perhaps() => return None,
                _ => {}
            }
        }
        None
    }

    /// How what a register holds at the instruction `user` moves from turn to turn, as part of the address of the
    /// instruction `of`.
    fn moves(&self, register: Reg, user: usize, of: usize, depth: u32) -> Pattern {
        if self.is_constant(register) {
            return Pattern::Fixed;
        }
        if let Some(step) = self.step(register) {
            return Pattern::Strided(step);
        }
        let only = self.only_writer(register);
        let writer = only.or_else(|| self.writer_before(user, register));
        let Some(at) = writer.filter(|_| depth > 0) else { return Pattern::Open };
        let instruction = &self.function.instructions[at];
        let follow = |from: Reg| self.moves(from, at, of, depth - 1);
        match (instruction.kind, instruction.memory, instruction.data) {
            (Kind::Move, _, [_, from]) => from.map_or(Pattern::Open, follow),
            (Kind::Advance(_), _, [Some(from), _]) => follow(from),
            (Kind::Compute, None, [Some(to), Some(by)]) => {
                self.sum([(to, 1), (by, 1)].into_iter(), follow)
            }
            (Kind::Address, Some(m), _) => match (m.base, m.index) {
                (Some(base), None) => follow(base),
                _ => self.pattern(&m, at, of, depth - 1),
            },
            (Kind::Load | Kind::Compute, Some(m), _) if loads_only(instruction) => {
                let through = |from: Reg| {
                    from == register && only.is_some()
                        || depth > 1 && matches!(follow(from), Pattern::Chased)
                };
                let mut parts = [m.base, m.index].into_iter().flatten();
                let chased = at == of || parts.any(through);
                if chased { Pattern::Chased } else { Pattern::Open }
            }
            _ => Pattern::Open,
        }
    }
}

/// Whether an instruction loads a value as it is, or with its sign extended: it needs nothing but the address.
fn loads_only(instruction: &Instruction) -> bool {
    let Some(m) = instruction.memory.filter(|m| m.read && !m.written) else { return false };
    let address: Registers = [m.base, m.index].into_iter().flatten().collect();
    instruction.reads.without(address).is_empty()
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
        Function::read(&code, &|_| None)
    }

    fn cycle(function: &Function, addr: u64) -> Cycle<'_> {
        *function.cycles_around(FileAddr(addr)).first().unwrap()
    }

    fn pattern(function: &Function, addr: u64) -> Pattern {
        let around = cycle(function, addr);
        function.access(FileAddr(addr), Some(&around)).unwrap().pattern
    }

    #[test]
    fn arrays_columns_and_lists_move_in_their_ways() {
        // 0: add rax, [rdi+rcx*8]; 4: add rcx, 1; 8: cmp rcx, rsi; b: jne 0; d: ret
        let array = read("480304cf 4883c101 4839f1 75f3 c3");
        assert_eq!(pattern(&array, 0), Pattern::Strided(Step::By(8)));
        let around = cycle(&array, 0);
        assert_eq!(around.counters(), [(Reg::general(1), Step::By(1))]);
        assert!((around.least_cycles() - 1.0).abs() < 1e-9);
        // 0: addss xmm0, [rdx]; 4: add rdx, rdi; 7: add eax, 1; a: cmp eax, esi; c: jne 0; e: ret
        let column = read("f30f5802 4801fa 83c001 39f0 75f2 c3");
        assert_eq!(pattern(&column, 0), Pattern::Strided(Step::Of(Reg::general(7), 1)));
        let around = cycle(&column, 0);
        assert!((around.least_cycles() - 3.0).abs() < 1e-9, "the sum of floats");
        // 0: add rax, [rdi+8]; 4: mov rdi, [rdi]; 7: test rdi, rdi; a: jne 0; c: ret
        let list = read("48034708 488b3f 4885ff 75f4 c3");
        assert_eq!(pattern(&list, 0), Pattern::Chased);
        assert_eq!(pattern(&list, 4), Pattern::Chased);
        let around = cycle(&list, 0);
        assert_eq!(around.counters(), []);
        assert!((around.least_cycles() - 4.0).abs() < 1e-9, "a load from the first cache");
        let next = list.access(FileAddr(4), Some(&around)).unwrap();
        assert_eq!(next.replaces, Some(Reg::general(7)));
    }

    #[test]
    fn an_index_that_was_loaded_is_open() {
        // 0: mov eax, [rsi+rcx*4]; 3: add rdx, [rdi+rax*8]; 7: inc rcx; a: cmp rcx, r8; d: jne 0; f: ret
        let gather = read("8b048e 480314c7 48ffc1 4c39c1 75f1 c3");
        assert_eq!(pattern(&gather, 0), Pattern::Strided(Step::By(4)));
        assert_eq!(pattern(&gather, 3), Pattern::Open);
        assert_eq!(gather.load_before(FileAddr(3), 4), Some(FileAddr(0)));
    }

    #[test]
    fn ways_are_those_of_branches_inside_a_loop() {
        // 0: movzx edx, [rdi]; 3: test dl, dl; 5: jns a; 7: add rax, rdx; a: inc rdi; d: cmp rsi, rdi; 10: jne 0; ret
        let choice = read("0fb617 84d2 7903 4801d0 48ffc7 4839fe 75ee c3");
        let around = cycle(&choice, 7);
        let ways: Vec<u64> = around.ways().iter().map(|a| a.0).collect();
        assert_eq!(ways, [7, 10]);
        assert_eq!(around.counters(), [(Reg::general(7), Step::By(1))]);
    }

    #[test]
    fn a_copy_of_a_counter_counts_too() {
        // As Go compiles a loop over a slice of structs.
        // 0: jmp 6; 2: lea rcx, [r8+1]; 6: cmp rbx, rcx; 9: jle 1b; b: mov r8, rcx; e: shl rcx, 4
        // 12: add rsi, [rax+rcx]; 16: mov rcx, rsi; 19: jmp 2; 1b: ret
        let slice = read("eb04 498d4801 4839cb 7e10 4989c8 48c1e104 48033408 4889f1 ebe7 c3");
        let around = cycle(&slice, 0x12);
        assert_eq!(around.counters(), [(Reg::general(8), Step::By(1))]);
    }

    #[test]
    fn addresses_of_addresses_come_to_an_end() {
        // 0: lea rax, [rax+rbx]; 4: lea rbx, [rbx+rax]; 8: add rcx, [rax+rbx]; c: dec rsi; f: jne 0; 11: ret
        let sums = read("488d0418 488d1c03 48030c18 48ffce 75ef c3");
        assert_eq!(pattern(&sums, 8), Pattern::Open);
    }

    #[test]
    fn an_address_in_a_register_that_is_used_twice_moves_by_its_last_value() {
        // As Go compiles a sum of products of two arrays.
        // 0: lea rsi, [rcx+rax]; 4: lea rsi, [rsi+8]; 8: movss xmm1, [rsi+rbx*4]; d: lea rsi, [rdx+rax]; 11: lea rsi, [rsi+8]
        // 15: mulss xmm1, [rsi+rbx*4]; 1a: addss xmm0, xmm1; 1e: inc rbx; 21: cmp rbx, 96; 25: jl 0; 27: ret
        let code = "488d3401 488d7608 f30f100c9e 488d3402 488d7608 f30f590c9e f30f58c1 48ffc3 4883fb60 7cd9 c3";
        let products = read(code);
        assert_eq!(pattern(&products, 8), Pattern::Strided(Step::By(4)));
        assert_eq!(pattern(&products, 0x15), Pattern::Strided(Step::By(4)));
        let sums = [8, 0x15, 0x1a].map(|at| cycle(&products, at).adds_up(FileAddr(at)));
        assert_eq!(sums, [false, false, true]);
        // With a load in place of the first address: mov rsi, [rcx+rbx*8]
        let rows = read(&code.replacen("488d3401", "488b34d9", 1));
        assert_eq!(pattern(&rows, 8), Pattern::Open);
        assert_eq!(pattern(&rows, 0x15), Pattern::Strided(Step::By(4)));
    }

    #[test]
    fn a_chain_of_indexes_is_one_whatever_computes_the_address() {
        // 0: mov r8d, eax; 3: mov [rdx], r8d; 6: lea rdx, [r14+rax*4]; a: mov eax, [rdx]; c: test eax, eax; e: jns 0; 10: ret
        let rings = read("4189c0 448902 498d1486 8b02 85c0 79f0 c3");
        assert_eq!(pattern(&rings, 0xa), Pattern::Chased);
        // Two links in each turn. 0: movsxd rax, [rdi+rdx*4]; 4: test rax, rax; 7: js 18; 9: movsxd r8, [rdi+rax*4]
        // d: mov [rdi+rdx*4], r8d; 11: mov rdx, r8; 14: cmp rsi, r8; 17: ja 0; 19: ret
        let roots = read("48630497 4885c0 780e 4c630487 44890497 4c89c2 4c39c6 77e7 c3");
        assert_eq!([0, 9].map(|at| pattern(&roots, at)), [Pattern::Chased; 2]);
    }

    #[test]
    fn what_a_turn_may_skip_does_not_count_turns() {
        // 0: test dl, 1; 3: je 8; 5: inc rax; 8: dec rsi; b: jne 0; d: ret
        let some = read("f6c201 7403 48ffc0 48ffce 75f3 c3");
        let around = cycle(&some, 8);
        assert_eq!(around.counters(), [(Reg::general(6), Step::By(-1))]);
    }

    #[test]
    fn cases_of_a_switch_are_ways_of_the_loop() {
        // 0: mov eax, [rdi]; 2: jmp [rsi+rax*8]; 5: inc ecx; 7: jmp b; 9: dec ecx; b: inc rdi; e: cmp rdi, r8; 11: jne 0; ret
        let switch = read("8b07 ff24c6 ffc1 eb02 ffc9 48ffc7 4c39c7 75ed c3");
        let around = cycle(&switch, 5);
        let ways: Vec<u64> = around.ways().iter().map(|a| a.0).collect();
        assert_eq!(ways, [5, 9]);
        assert_eq!(around.counters(), [(Reg::general(7), Step::By(1))]);
        assert_eq!(around.head(), FileAddr(0));
        assert!((around.least_cycles() - 1.625).abs() < 1e-9, "{}", around.least_cycles());
    }
}
