//! Natural loops: which instructions are in each, and how deeply they are nested.
//!
//! A loop is a jump back to an instruction that every path to the jump passes, with all code that leads to the jump from
//! there. So a jump back from cold code behind a function's hot part makes no loop. Code without a known way to it
//! (landing pads) is in no loop. The targets of a jump through a register are not known: they are the blocks behind it
//! that nothing else leads to, up to the next such jump; of that one if they lead back to it, and not to the former.
//! Loops with two entries are not found. For the instructions of one loop see [`super::loops`].

use super::graph::{Blocks, End, Graph};
use crate::instruction::{Instruction, Kind};
use std::collections::BTreeSet;

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
    let Some(code) = Blocked::with_loops(instructions, entered) else {
        return vec![0; instructions.len()];
    };
    let of_block = code.graph.depths(resumes);
    code.block_of.iter().map(|block| of_block[*block]).collect()
}

/// The natural loops of a function. `entered` as in [`super::Function`]. `resumes`: the first instruction is also where
/// the function starts again, as Go's functions do once their stack has grown.
pub(crate) fn loops(
    instructions: &[Instruction],
    entered: &[bool],
    resumes: bool,
) -> Vec<NaturalLoop> {
    let Some(code) = Blocked::with_loops(instructions, entered) else { return Vec::new() };
    let all = code.graph.loops(resumes).unwrap_or_default();
    all.iter().map(|blocks| code.instructions_of(blocks, &all)).collect()
}

/// Instructions with their basic blocks.
struct Blocked {
    /// The block of each instruction.
    block_of: Vec<usize>,
    graph: Graph,
}

impl Blocked {
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
        let last = |at: usize| block_of.get(at + 1) != Some(&block_of[at]);
        let block_at = |to: u64| {
            let at = instructions.binary_search_by_key(&to, |i| i.addr).ok()?;
            Some(block_of[at])
        };
        let ends: Vec<End> = (0..instructions.len())
            .filter(|at| last(*at))
            .map(|at| End {
                target: instructions[at].target().and_then(block_at),
                falls: instructions[at].falls_through(),
                anywhere: instructions[at].kind == Kind::Jump(None),
            })
            .collect();
        let graph = Graph::of(&ends);
        Self { block_of, graph }
    }

    fn instructions_of(&self, blocks: &Blocks, all: &[Blocks]) -> NaturalLoop {
        let of = |block: usize| {
            let start = self.block_of.partition_point(|b| *b < block);
            start..self.block_of.partition_point(|b| *b <= block)
        };
        let inside = |other: &&Blocks| {
            other.head != blocks.head && other.members.iter().all(|block| blocks.holds(*block))
        };
        let inner: BTreeSet<usize> =
            all.iter().filter(inside).flat_map(|other| other.members.iter().copied()).collect();
        let own: Vec<usize> =
            blocks.always.iter().copied().filter(|block| !inner.contains(block)).collect();
        let mut turn = Vec::new();
        for (n, block) in own.iter().enumerate() {
            turn.extend(of(*block).map(Some));
            let mut next = self.graph.next(*block).filter(|to| blocks.holds(*to));
            let certain = next.all(|to| Some(&to) == own.get(n + 1));
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
