//! Loops that look through a list for a value.
//!
//! Such a loop stores nothing, goes on by the same step up to an end, and is left before it where what it loads is equal to
//! a value that stays the same. Not whether that happens again and again: registers that were recorded show it. Lists of
//! bytes are texts, and a search that goes on where the last one ended is no search of the whole list: both are left out.

use super::steps::{Step, sum};
use super::turns::{Cycle, Pattern};
use crate::instruction::{Instruction, Kind, Reg, Registers};
use deadweight_trace::units::FileAddr;

/// How many instructions before a branch its comparison may be, and before that a call whose result it compares.
const BEFORE: usize = 4;
/// A loop with more instructions does more than search.
const LARGEST: usize = 96;
/// Elements of a list have so many bytes at least: smaller ones are text.
const LEAST_ELEMENT: u64 = 4;

/// By what a search ends before its list does.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// What is loaded is equal to a value that stays the same.
    Value,
    /// What a function says that is called in each turn.
    Call,
    /// Something else.
    Other,
}

/// A loop that may search a list.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The register that advances in each turn.
    pub counter: Reg,
    /// By how much.
    pub by: i64,
    /// The register with the value at which the list ends; none if that is a number.
    pub end: Option<Reg>,
    /// A register that stays the same and is part of each element's address, if there is one.
    pub base: Option<Reg>,
    /// The bytes of the list that a turn goes on by.
    pub stride: u64,
    /// By what it ends before.
    pub found: Found,
}

/// A branch that may leave a loop, and what decides it.
struct Exit<'f> {
    branch: &'f Instruction,
    decider: usize,
    /// Whether it goes out if its target is taken.
    by_target: bool,
}

impl Cycle<'_> {
    /// What it does if it may be a search.
    #[must_use]
    pub fn search(&self) -> Option<Search> {
        if self.members().count() > LARGEST || self.changes_memory() {
            return None;
        }
        let counters = self.counters();
        let exits: Vec<Exit<'_>> = self.members().filter_map(|at| self.exit(at)).collect();
        let (mut ends, mut early) = (Vec::new(), Vec::new());
        for exit in &exits {
            match self.end(exit, &counters) {
                Some(end) => ends.push(end),
                None => early.push(self.found(exit)),
            }
        }
        let (counter, by, end) = *ends.first()?;
        let found = early.into_iter().min().filter(|_| !self.goes_on(counter))?;
        // A comparison that it calls may be the only one that reads the list.
        let steps = counters.iter().map(|(_, step)| match step {
            Step::By(by) => by.unsigned_abs(),
            Step::Of(..) => 0,
        });
        let by_counter = || Some((None, steps.max()?)).filter(|_| found == Found::Call);
        let (base, stride) = self.list().or_else(by_counter)?;
        if stride < LEAST_ELEMENT {
            return None;
        }
        Some(Search { counter, by, end, base, stride, found })
    }

    fn instruction(&self, at: usize) -> &Instruction {
        &self.function.instructions[at]
    }

    /// Whether a turn stores something that the next one does not overwrite.
    fn changes_memory(&self) -> bool {
        let stores = |i: &&Instruction| {
            i.memory.is_some_and(|m| m.written) && !matches!(i.kind, Kind::Push | Kind::Call(_))
        };
        self.instructions().filter(stores).any(|i| {
            let access = self.function.access(FileAddr(i.addr), Some(self));
            i.kind == Kind::Atomic || access.is_none_or(|a| a.pattern != Pattern::Fixed)
        })
    }

    /// A branch of which one way leads out.
    fn exit(&self, at: usize) -> Option<Exit<'_>> {
        let branch = self.instruction(at);
        let Kind::Branch(target) = branch.kind else { return None };
        let by_target = !self.holds(FileAddr(target));
        if !by_target && self.holds(FileAddr(branch.end())) {
            return None;
        }
        let entered = |at: usize| self.function.entered[at + 1];
        let sets = |i: &Instruction| match i.kind {
            Kind::Compare | Kind::Compute => true,
            // An address (`lea`) sets no flags.
            Kind::Advance(_) => i.memory.is_none(),
            _ => false,
        };
        let straight = |at: &usize| !entered(*at) && !self.instruction(*at).ends_block();
        let mut before = (at.saturating_sub(BEFORE)..at).rev().take_while(straight);
        let decider = before.find(|at| sets(self.instruction(*at)))?;
        Some(Exit { branch, decider, by_target })
    }

    /// The counter that decides an exit, its step, and the register that it is compared with.
    fn end(&self, exit: &Exit<'_>, counters: &[(Reg, Step)]) -> Option<(Reg, i64, Option<Reg>)> {
        let decider = self.instruction(exit.decider);
        let (counter, by) = counters.iter().find_map(|(counter, step)| match step {
            Step::By(by) if decider.reads.has(*counter) => Some((*counter, *by)),
            _ => None,
        })?;
        match decider.kind {
            // It counts down to zero.
            Kind::Advance(_) if decider.data[0] == Some(counter) => Some((counter, by, None)),
            Kind::Compare => {
                // The end may be in memory, which stays the same.
                let place = self.function.access(FileAddr(decider.addr), Some(self));
                let address = address(decider);
                let is_fixed = place.is_none_or(|access| access.pattern == Pattern::Fixed);
                let others = decider.reads.without(address).without(Registers::of(&[counter]));
                let (mut others, end) = (others.iter(), others.iter().next());
                let is_end = end.is_none_or(|end| self.is_constant(end) && place.is_none());
                let known = is_fixed && !address.has(counter) && is_end;
                (known && others.nth(1).is_none()).then_some((counter, by, end))
            }
            _ => None,
        }
    }

    /// By what an exit ends the search.
    fn found(&self, exit: &Exit<'_>) -> Found {
        let decider = self.instruction(exit.decider);
        if decider.kind != Kind::Compare {
            return Found::Other;
        }
        let on_equal = exit.branch.on_equal;
        let if_equal = on_equal == Some(true) && exit.by_target
            || on_equal == Some(false) && !self.holds(FileAddr(exit.branch.end()));
        if if_equal && self.compares_element(decider) {
            return Found::Value;
        }
        let before = exit.decider.saturating_sub(BEFORE)..exit.decider;
        let calls = before.rev().map(|at| self.instruction(at)).take_while(|i| !i.ends_block());
        let mut calls = calls.filter(|i| matches!(i.kind, Kind::Call(_)));
        if decider.memory.is_none() && calls.next().is_some() { Found::Call } else { Found::Other }
    }

    /// Whether a comparison is between something of the list and a register that stays the same.
    fn compares_element(&self, compare: &Instruction) -> bool {
        let is_element = |i: &Instruction| {
            let access = self.function.access(FileAddr(i.addr), Some(self));
            access.is_some_and(|a| a.memory.read && matches!(a.pattern, Pattern::Strided(_)))
        };
        if compare.memory.is_some() {
            let mut others = compare.reads.without(address(compare)).iter();
            return is_element(compare) && others.any(|register| self.is_constant(register));
        }
        let loaded = |register: Reg| {
            let mut writers = self.instructions().filter(|i| i.writes.has(register));
            writers.all(|i| i.kind == Kind::Load && is_element(i))
        };
        let (same, changed): (Vec<Reg>, Vec<Reg>) =
            compare.reads.iter().partition(|register| self.is_constant(*register));
        same.len() == 1 && changed.len() == 1 && loaded(changed[0])
    }

    /// The memory that a turn goes on in: its base, if that is a register that stays the same, and by how many bytes.
    fn list(&self) -> Option<(Option<Reg>, u64)> {
        let accesses =
            self.instructions().filter_map(|i| self.function.access(FileAddr(i.addr), Some(self)));
        let walks = accesses.filter(|access| access.memory.read).filter_map(|access| {
            let Pattern::Strided(Step::By(by)) = access.pattern else { return None };
            let mut parts = access.memory.base.into_iter().chain(access.memory.index);
            let base = parts.find(|register| self.is_constant(*register));
            Some((base, by.unsigned_abs()))
        });
        walks.max_by_key(|(_, stride)| *stride)
    }

    /// Whether the counter begins where it was before: the loop around this one does not set it anew.
    fn goes_on(&self, counter: Reg) -> bool {
        let around = self.function.cycles_around(self.head());
        let is_larger = |cycle: &&Cycle<'_>| cycle.members().count() > self.members().count();
        let Some(outer) = around.iter().find(is_larger) else { return false };
        let is_own = |at: &usize| self.holds(FileAddr(self.instruction(*at).addr));
        let mut writers =
            outer.members().filter(|at| !is_own(at) && self.instruction(*at).writes.has(counter));
        !writers.any(|at| outer.sets_anew(at))
    }

    /// Whether what an instruction writes has nothing to do with what was before in this loop: a constant, or something from
    /// memory, also by way of a register.
    fn sets_anew(&self, at: usize) -> bool {
        let instruction = self.instruction(at);
        let Some((from, _)) = sum(instruction) else {
            return matches!(instruction.kind, Kind::Constant(_) | Kind::Load);
        };
        let straight = (0..at).rev().take_while(|before| !self.function.entered[before + 1]);
        let mut before = straight.map(|before| self.instruction(before));
        let set = before.find(|i| i.writes.has(from) || !i.falls_through());
        match set.filter(|i| i.writes.has(from)) {
            Some(set) => matches!(set.kind, Kind::Constant(_) | Kind::Load),
            None => self.is_constant(from) || self.only_loads(from),
        }
    }

    /// Whether a register is loaded from memory wherever the loop writes it.
    fn only_loads(&self, register: Reg) -> bool {
        let mut writers = self.instructions().filter(|i| i.writes.has(register));
        writers.all(|i| i.kind == Kind::Load)
    }
}

/// The registers of an instruction's address.
fn address(instruction: &Instruction) -> Registers {
    let memory = instruction.memory;
    memory.into_iter().flat_map(|m| [m.base, m.index]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Function;
    use crate::tests::hex;
    use crate::{Abi, Code};
    use deadweight_trace::syscall::Arch;

    /// The search of the innermost loop at this address.
    fn search(code: &str, at: u64) -> Option<Search> {
        let bytes = hex(code);
        let abi = Abi::Platform;
        let code = Code { arch: Arch::X86_64, abi, addr: FileAddr(0), bytes: &bytes };
        let function = Function::read(&code, &|_| None);
        function.cycles_around(FileAddr(at)).first()?.search()
    }

    const RAX: Reg = Reg::general(0);
    const RSI: Reg = Reg::general(6);
    const RDI: Reg = Reg::general(7);

    // 0: cmp [rdi], rdx; 3: je e; 5: add rdi, 8; 9: cmp rdi, rsi; c: jne 0; e: ret
    const POINTER: &str = "483917 7409 4883c708 4839f7 75f2 c3";

    #[test]
    fn a_pointer_that_looks_for_a_value_is_a_search() {
        let found = search(POINTER, 0).unwrap();
        let expected = Search {
            counter: RDI,
            by: 8,
            end: Some(RSI),
            base: None,
            stride: 8,
            found: Found::Value,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn an_index_that_looks_for_a_value_is_a_search() {
        // 0: xor eax, eax; 2: jmp 7; 4: inc rax; 7: cmp rax, rsi; a: jge 15; c: mov ecx, [rdi+rax*4]; f: cmp ecx, edx; 11: jne 4
        let code = "31c0 eb03 48ffc0 4839f0 7d07 8b0c87 39d1 75f1 c3";
        let found = search(code, 7).unwrap();
        assert_eq!((found.counter, found.end, found.base), (RAX, Some(RSI), Some(RDI)));
        assert_eq!((found.by, found.stride, found.found), (1, 4, Found::Value));
    }

    #[test]
    fn a_search_that_calls_a_comparison_is_known_as_that() {
        // 0: mov rdi, [rbx]; 3: mov rsi, r12; 6: call; b: test eax, eax; d: je 18; f: add rbx, 8; 13: cmp rbx, rbp; 16: jne 0
        let code = "488b3b 4c89e6 e800100000 85c0 7409 4883c308 4839eb 75e8 c3";
        assert_eq!(search(code, 0).map(|search| search.found), Some(Found::Call));
        // Only the call reads the list; its length is in memory.
        // 0: mov rsi, r12; 3: mov rdi, rbx; 6: call; b: test eax, eax; d: je 1d; f: add rbx, 32; 13: inc ebp; 15: cmp ebp, [rip+16]; 1b: jl 0
        let code = "4c89e6 4889df e800100000 85c0 740e 4883c320 ffc5 3b2d10000000 7ce3 c3";
        let found = search(code, 0).unwrap();
        assert_eq!((found.found, found.end, found.stride), (Found::Call, None, 32));
    }

    #[test]
    fn what_stores_or_compares_two_lists_or_reads_text_or_has_no_end_is_refused() {
        // The same with a store to [rdi+8].
        assert_eq!(search("483917 740d 48895708 4883c708 4839f7 75ee c3", 0), None);
        // It leaves where the element differs: cmp [rdi], rdx; jne.
        let differs = search("483917 7509 4883c708 4839f7 75f2 c3", 0);
        assert_eq!(differs.map(|search| search.found), Some(Found::Other));
        // mov rax, [rdi]; cmp rax, [rdi+rcx]; jne out; add rdi, 8; cmp rdi, rsi; jne: two lists.
        let two = search("488b07 483b040f 7509 4883c708 4839f7 75ee c3", 0);
        assert_eq!(two.map(|search| search.found), Some(Found::Other));
        // Bytes: cmp [rdi], dl; je; inc rdi; cmp rdi, rsi; jne.
        assert_eq!(search("3817 7408 48ffc7 4839f7 75f4 c3", 0), None);
        // Only the value ends it.
        assert_eq!(search("483917 7406 4883c708 ebf5 c3", 0), None);
        // Only the end does.
        assert_eq!(search("480307 4883c708 4839f7 75f4 c3", 0), None);
    }

    #[test]
    fn a_search_that_goes_on_where_the_last_one_ended_is_refused() {
        // 0: inc rcx; 3: the pointer's search; 13: add rdi, 8; 17: dec rbx; 1a: jne 0; 1c: ret
        let on = "48ffc1 483917 740b 4883c708 4839f7 75f2 eb09 4883c708 48ffcb 75e4 c3";
        assert_eq!(search(on, 3), None);
        // 0: mov rax, [rsp+8]; 5: mov rdi, rax; 8: the search; 18: lea rax, [rdi+8]; 1c: dec rbx; 1f: jne 0; 21: ret
        let loaded =
            "488b442408 4889c7 483917 740b 4883c708 4839f7 75f2 eb09 488d4708 48ffcb 75df c3";
        assert_eq!(search(loaded, 8).map(|search| search.counter), Some(RDI));
        // 0: mov rdi, r8; 3: the search; 13: inc rcx; 16: dec rbx; 19: jne 0; 1b: ret
        let anew = "4c89c7 483917 740b 4883c708 4839f7 75f2 eb08 48ffc1 48ffcb 75e5 c3";
        assert_eq!(search(anew, 3).map(|search| search.counter), Some(RDI));
    }
}
