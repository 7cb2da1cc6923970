//! Natural loops: which instructions are in each, and how deeply they are nested.
//!
//! A loop is a jump back to an instruction that every path to the jump passes, with all code that leads to the jump from
//! there. So a jump back from cold code behind a function's hot part makes no loop. Code without a known way to it
//! (landing pads) is in no loop. The targets of a jump through a register are not known: they are the blocks behind it
//! that nothing else leads to, up to the next such jump; of that one if they lead back to it, and not to the former.
//! Loops with two entries are not found. For the instructions of one loop see [`super::loops`].

use crate::instruction::{Instruction, Kind};
use std::collections::BTreeSet;

/// Steps of searches per block, after which a function is left without loops: no compiler's code needs as many.
const STEPS: usize = 2_000;

/// No block.
const NONE: usize = usize::MAX;

/// A natural loop, as indexes of instructions in order of address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NaturalLoop {
    /// The first instruction of each turn.
    pub(crate) head: usize,
    /// All of its instructions, those of loops in it included.
    pub(crate) members: Vec<usize>,
    /// Those that every turn passes once, in the order in which it does; none stands for others that it may pass there.
    pub(crate) turn: Vec<Option<usize>>,
}

impl NaturalLoop {
    /// Whether an instruction is in it.
    pub(crate) fn holds(&self, at: usize) -> bool {
        self.members.binary_search(&at).is_ok()
    }

    /// The instructions that every turn passes once, in that order.
    pub(crate) fn always(&self) -> impl Iterator<Item = usize> {
        self.turn.iter().flatten().copied()
    }
}

/// The loop depth of each instruction: 0 outside of loops. Arguments as for [`loops`].
pub(crate) fn depths(instructions: &[Instruction], entered: &[bool], resumes: bool) -> Vec<u32> {
    let Some(graph) = Graph::with_loops(instructions, entered) else {
        return vec![0; instructions.len()];
    };
    let mut of_block = vec![0; graph.next.len()];
    for blocks in graph.loops(resumes).unwrap_or_default() {
        blocks.members.iter().for_each(|block| of_block[*block] += 1);
    }
    graph.block_of.iter().map(|block| of_block[*block]).collect()
}

/// The natural loops of a function. `entered` as in [`super::Function`]. `resumes`: the first instruction is also where
/// the function starts again, as Go's functions do once their stack has grown.
pub(crate) fn loops(
    instructions: &[Instruction],
    entered: &[bool],
    resumes: bool,
) -> Vec<NaturalLoop> {
    let Some(graph) = Graph::with_loops(instructions, entered) else { return Vec::new() };
    let all = graph.loops(resumes).unwrap_or_default();
    all.iter().map(|blocks| graph.instructions_of(blocks, &all)).collect()
}

/// A natural loop, as blocks.
struct Blocks {
    head: usize,
    members: BTreeSet<usize>,
    /// Those that every turn passes, in the order in which it does.
    always: Vec<usize>,
}

/// The basic blocks of a function. Calls do not end one.
struct Graph {
    /// The block of each instruction.
    block_of: Vec<usize>,
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

impl Graph {
    /// None if no jump goes back: there is no loop.
    fn with_loops(instructions: &[Instruction], entered: &[bool]) -> Option<Self> {
        let jumps_back = |i: &Instruction| i.target().is_some_and(|to| to <= i.addr);
        instructions.iter().any(jumps_back).then(|| Self::of(instructions, entered))
    }

    fn of(instructions: &[Instruction], entered: &[bool]) -> Self {
        let mut block_of = Vec::with_capacity(instructions.len());
        let mut count = 0;
        for at in 0..instructions.len() {
            count += usize::from(at == 0 || entered[at] || instructions[at - 1].ends_block());
            block_of.push(count - 1);
        }
        let mut graph =
            Self { block_of, next: vec![Vec::new(); count], before: vec![Vec::new(); count] };
        graph.connect(instructions);
        graph
    }

    fn connect(&mut self, instructions: &[Instruction]) {
        let mut led = vec![false; self.next.len()];
        let last = |at: usize| self.block_of.get(at + 1) != Some(&self.block_of[at]);
        let ends: Vec<usize> = (0..instructions.len()).filter(|at| last(*at)).collect();
        for at in &ends {
            let instruction = &instructions[*at];
            let target = instruction.target();
            let target = target
                .and_then(|to| instructions.binary_search_by_key(&to, |i| i.addr).ok())
                .map(|to| self.block_of[to]);
            let behind = self.block_of.get(at + 1).filter(|_| instruction.falls_through()).copied();
            for to in [target, behind].into_iter().flatten() {
                self.edge(self.block_of[*at], to);
                led[to] = true;
            }
        }
        let by_table = ends.iter().filter(|at| instructions[**at].kind == Kind::Jump(None));
        let jumps: Vec<usize> = by_table.map(|at| self.block_of[*at]).collect();
        let cases: Vec<usize> = (1..led.len()).filter(|block| !led[*block]).collect();
        for case in cases {
            let behind = jumps.partition_point(|jump| *jump < case);
            let before = behind.checked_sub(1).map(|n| jumps[n]);
            let after = jumps.get(behind).copied().filter(|jump| *jump != case);
            let back_to = |jump: usize| self.leads(case, jump);
            let later = after.filter(|_| !before.is_some_and(back_to)).filter(|to| back_to(*to));
            if let Some(from) = later.or(before) {
                self.edge(from, case);
            }
        }
    }

    /// Whether a block leads to another, by few steps.
    fn leads(&self, from: usize, to: usize) -> bool {
        /// A case of a switch in a loop is soon at its next turn.
        const FAR: usize = 64;
        let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
        while let Some(block) = open.pop() {
            if block == to {
                return true;
            }
            let next = self.next[block].iter().copied();
            open.extend(next.filter(|to| seen.len() < FAR && seen.insert(*to)));
        }
        false
    }

    fn edge(&mut self, from: usize, to: usize) {
        self.next[from].push(to);
        self.before[to].push(from);
    }

    fn instructions_of(&self, blocks: &Blocks, all: &[Blocks]) -> NaturalLoop {
        let of = |block: usize| {
            let start = self.block_of.partition_point(|b| *b < block);
            start..self.block_of.partition_point(|b| *b <= block)
        };
        let inside =
            |other: &&Blocks| other.head != blocks.head && other.members.is_subset(&blocks.members);
        let inner: BTreeSet<usize> =
            all.iter().filter(inside).flat_map(|other| other.members.iter().copied()).collect();
        let own: Vec<usize> =
            blocks.always.iter().copied().filter(|block| !inner.contains(block)).collect();
        let mut turn = Vec::new();
        for (n, block) in own.iter().enumerate() {
            turn.extend(of(*block).map(Some));
            let next = self.next[*block].iter().filter(|to| blocks.members.contains(to));
            let certain = next.into_iter().all(|to| Some(to) == own.get(n + 1));
            if !certain && n + 1 < own.len() {
                turn.push(None);
            }
        }
        NaturalLoop {
            head: of(blocks.head).start,
            members: blocks.members.iter().flat_map(|block| of(*block)).collect(),
            turn,
        }
    }

    /// The natural loops; none if the search takes too long.
    fn loops(&self, resumes: bool) -> Option<Vec<Blocks>> {
        let order = self.order();
        let mut number = vec![NONE; self.next.len()];
        order.iter().enumerate().for_each(|(n, block)| number[*block] = n);
        let mut steps = STEPS.saturating_mul(order.len());
        let dominators = self.dominators(&order, &number, &mut steps)?;
        let mut found = Vec::new();
        for head in order.iter().copied().filter(|head| *head != 0 || !resumes) {
            let mut back = Vec::new();
            for from in self.before[head].iter().copied() {
                if dominates(head, from, &dominators, &number, &mut steps)? {
                    back.push(from);
                }
            }
            if back.is_empty() {
                continue;
            }
            let mut members = BTreeSet::from([head]);
            let mut open = back.clone();
            while let Some(block) = open.pop() {
                steps = steps.checked_sub(1)?;
                if number[block] != NONE && members.insert(block) {
                    open.extend(&self.before[block]);
                }
            }
            let always = self.on_all_ways(head, &back, &dominators, &mut steps)?;
            found.push(Blocks { head, members, always });
        }
        Some(found)
    }

    /// The blocks that every way from `head` to the blocks that lead back to it passes, in order; none if the search takes
    /// too long.
    fn on_all_ways(
        &self,
        head: usize,
        back: &[usize],
        dominators: &[usize],
        steps: &mut usize,
    ) -> Option<Vec<usize>> {
        let mut common: Option<Vec<usize>> = None;
        for from in back {
            let mut up = vec![*from];
            while let Some(block) = up.last().copied().filter(|block| *block != head) {
                *steps = steps.checked_sub(1)?;
                up.push(dominators[block]);
            }
            up.reverse();
            // From the head on, as far as both go the same way.
            let shared = common.iter().flatten().zip(&up).take_while(|(a, b)| a == b).count();
            up.truncate(if common.is_some() { shared } else { up.len() });
            common = Some(up);
        }
        common
    }

    /// The blocks that the entry leads to, each before those that it dominates.
    fn order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.next.len());
        let mut seen = vec![false; self.next.len()];
        let mut open = vec![(0, 0)];
        seen[0] = true;
        while let Some((block, done)) = open.last_mut() {
            let next = self.next[*block].get(*done).copied();
            *done += 1;
            match next {
                Some(to) if !std::mem::replace(&mut seen[to], true) => open.push((to, 0)),
                Some(_) => {}
                None => {
                    order.push(*block);
                    open.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// The immediate dominator of each block (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm).
    fn dominators(
        &self,
        order: &[usize],
        number: &[usize],
        steps: &mut usize,
    ) -> Option<Vec<usize>> {
        let mut dominators = vec![NONE; self.next.len()];
        dominators[0] = 0;
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for block in order.iter().copied().skip(1) {
                let mut common = NONE;
                for from in self.before[block].iter().copied().filter(|b| dominators[*b] != NONE) {
                    let mut other = from;
                    if common == NONE {
                        common = from;
                    }
                    while common != other {
                        *steps = steps.checked_sub(1)?;
                        let later =
                            if number[common] > number[other] { &mut common } else { &mut other };
                        *later = dominators[*later];
                    }
                }
                changed |= std::mem::replace(&mut dominators[block], common) != common;
            }
        }
        Some(dominators)
    }
}

/// Whether every path from the entry to `block` passes `head`; none if the search takes too long.
fn dominates(
    head: usize,
    mut block: usize,
    dominators: &[usize],
    number: &[usize],
    steps: &mut usize,
) -> Option<bool> {
    if number[block] == NONE {
        return Some(false);
    }
    while number[block] > number[head] {
        *steps = steps.checked_sub(1)?;
        block = dominators[block];
    }
    Some(block == head)
}

#[cfg(test)]
mod tests {
    use crate::tests::hex;
    use crate::{Abi, Code, Function};
    use deadweight_trace::syscall::Arch;
    use deadweight_trace::units::FileAddr;

    /// The depth at each address of these.
    fn depths<const N: usize>(code: &str, abi: Abi, at: [u64; N]) -> [u32; N] {
        let bytes = hex(code);
        let code = Code { arch: Arch::X86_64, abi, addr: FileAddr(0), bytes: &bytes };
        let function = Function::read(&code, &|_| None);
        let depths = function.loop_depths();
        at.map(|addr| {
            let at = function.instructions().iter().position(|i| i.addr == addr);
            depths[at.expect("an instruction begins there")]
        })
    }

    #[test]
    fn loops_are_nested() {
        // 0: xor eax, eax; 2: mov ecx, [rdi]; 4: dec ecx; 6: jne 4; 8: inc eax; a: cmp eax, esi; c: jne 2; e: ret
        let code = "31c08b0fffc975fcffc039f075f4c3";
        assert_eq!(depths(code, Abi::Platform, [0, 2, 4, 8, 0xe]), [0, 1, 2, 1, 0]);
    }

    #[test]
    fn a_cold_block_behind_the_function_makes_no_loop() {
        // 0: cmp eax, 9; 3: jae 10; 5: add eax, [rdi]; 7: add eax, [rsi]; 9: ret; 10: mov eax, 1; 15: jmp 5
        let code = "83f809730b030703 06c30f1f4400009090b801000000ebee";
        assert_eq!(depths(code, Abi::Platform, [5, 7, 0x10]), [0, 0, 0]);
    }

    #[test]
    fn a_go_function_that_starts_again_is_no_loop() {
        // 0: cmp rsp, [r14+10h]; 4: jbe 7; 6: ret; 7: call; c: jmp 0
        let code = "493b66107601c3e800000000ebf2";
        assert_eq!(depths(code, Abi::Go, [0, 7]), [0, 0]);
        assert_eq!(depths(code, Abi::Platform, [0, 7]), [1, 1]);
    }

    #[test]
    fn cases_of_a_switch_in_a_loop_are_in_the_loop() {
        // 0: mov eax, [rdi]; 2: jmp [rsi+rax*8]; 5: inc ecx; 7: jmp 0; 9: dec ecx; b: jne 0; d: ret
        let code = "8b07ff24c6ffc1ebf7ffc975f3c3";
        assert_eq!(depths(code, Abi::Platform, [0, 5, 9, 0xd]), [1, 1, 1, 0]);
    }

    #[test]
    fn a_case_before_the_jump_of_its_switch_is_in_the_loop() {
        // 0: xor ecx, ecx; 2: jmp a; 4: inc edx; 6: inc ecx; 8: jz 14; a: mov eax, [rdi]; c: jmp [rsi+rax*8]
        // f: dec edx; 11: jmp 6; 13: nop; 14: ret
        let code = "31c9eb06ffc2ffc1740a8b07ff24c6ffcaebf390c3";
        assert_eq!(depths(code, Abi::Platform, [4, 6, 0xa, 0xf, 0x14]), [1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_landing_pad_that_jumps_into_a_loop_does_not_hide_it() {
        // 0: nop; 1: dec ecx; 3: nop; 4: jne 1; 6: ret; 7: nop; 8: jmp 3
        let code = "90ffc99075fbc390ebf9";
        assert_eq!(depths(code, Abi::Platform, [0, 1, 3, 7]), [0, 1, 1, 0]);
    }
}
