//! Counters that several instructions advance: compilers copy the end of a loop to the end of each branch in it, or its
//! whole body with the condition in between. Not for counters with one advance ([`super::turns`]).

use super::Function;
use super::nest::NaturalLoop;
use super::steps::{Step, add, advanced};
use crate::instruction::Reg;
use std::collections::BTreeSet;

/// More copies are no ends of branches.
const WAYS: usize = 8;

/// By how much a register advances in each turn, if each turn passes all of its advances, or every way back to the head
/// advances it once, and all by the same.
pub(super) fn step(function: &Function, natural: &NaturalLoop, register: Reg) -> Option<Step> {
    let instructions = &function.instructions;
    let writes = |at: &usize| instructions[*at].writes.has(register);
    let writers: BTreeSet<usize> = natural.members.iter().copied().filter(writes).collect();
    if writers.iter().all(|at| natural.always().any(|passed| passed == *at)) {
        return together(function, natural, register, &writers);
    }
    let step = advanced(&instructions[*writers.first()?]).map(|(_, step)| step);
    let step = step.filter(|step| matches!(step, Step::By(_)))?;
    let alike = |at: &usize| advanced(&instructions[*at]) == Some((register, step));
    if writers.len() > WAYS || !writers.iter().all(alike) {
        return None;
    }
    let head = instructions[natural.head].addr;
    let leads_back = |at: &usize| {
        let behind = *at + 1 == natural.head && instructions[*at].falls_through();
        behind || instructions[*at].target() == Some(head)
    };
    let mut passed = BTreeSet::new();
    for back in natural.members.iter().copied().filter(leads_back) {
        passed.insert(writer_before(function, natural, &writers, back)?);
    }
    (passed == writers).then_some(step)
}

/// What these instructions add to a register: numbers, or what one register holds throughout.
fn together(
    function: &Function,
    natural: &NaturalLoop,
    register: Reg,
    writers: &BTreeSet<usize>,
) -> Option<Step> {
    let instructions = &function.instructions;
    let steps = writers.iter().map(|at| {
        let step = advanced(&instructions[*at]).filter(|(of, _)| *of == register)?.1;
        let varies = |by| natural.members.iter().any(|at| instructions[*at].writes.has(by));
        (!matches!(step, Step::Of(by, _) if varies(by))).then_some(step)
    });
    let mut sum = Step::By(0);
    for step in steps {
        sum = add(sum, step?)?;
    }
    (sum != Step::By(0)).then_some(sum)
}

/// The one writer on the straight way to a jump back; none if that way is left for another part of the loop behind it.
fn writer_before(
    function: &Function,
    natural: &NaturalLoop,
    writers: &BTreeSet<usize>,
    back: usize,
) -> Option<usize> {
    let instructions = &function.instructions;
    let stays = |at: usize| {
        let target = instructions[at].target();
        let to = target.and_then(|to| instructions.binary_search_by_key(&to, |i| i.addr).ok());
        to.is_some_and(|to| to != natural.head && natural.holds(to))
    };
    let (mut found, mut at) = (None, back);
    loop {
        if writers.contains(&at) {
            // A second one, or one that another way passes, too.
            if found.is_some() || (at..back).any(stays) {
                return None;
            }
            found = Some(at);
        }
        if at == natural.head || function.entered[at] {
            return found;
        }
        let before = at.checked_sub(1)?;
        if !natural.holds(before) || !instructions[before].falls_through() {
            return found;
        }
        at = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::hex;
    use crate::{Abi, Code};
    use deadweight_trace::syscall::Arch;
    use deadweight_trace::units::FileAddr;

    fn counters(code: &str, within: u64) -> Vec<(Reg, Step)> {
        let bytes = hex(code);
        let abi = Abi::Platform;
        let code = Code { arch: Arch::X86_64, abi, addr: FileAddr(0), bytes: &bytes };
        let function = Function::read(&code, &|_| None);
        let around = function.cycles_around(FileAddr(within));
        around.first().unwrap().counters()
    }

    // 0: jmp 11; 2: add rdi, 4; 6: add rax, rdx; 9: cmp rdi, r9; c: je 20; e: nop dword [rax]
    // 11: mov edx, [rdi]; 13: cmp edx, 127; 16: ja 2; 18: add rdi, STEP; 1c: cmp rdi, r9; 1f: jne 11; 21: ret
    fn both(step: &str) -> String {
        format!(
            "eb0f 4883c704 4801d0 4c39cf 7413 0f1f00 8b17 83fa7f 77ea 4883c7{step} 4c39cf 75f0 c3"
        )
    }

    #[test]
    fn a_counter_at_the_end_of_both_ways_is_found() {
        assert_eq!(counters(&both("04"), 0x11), [(Reg::general(7), Step::By(4))]);
    }

    // Of a sieve: 0: mov byte [rdi+rax], 1; 4: add rax, rdx; 7: cmp rax, rsi; a: jg 18; c: mov byte [rdi+rax], 1
    // 10: BETWEEN; 13: cmp rax, rsi; 16: jle 0; 18: ret
    fn unrolled(between: &str) -> String {
        format!("c6040701 4801d0 4839f0 7f0c c6040701 {between} 4839f0 7ee8 c3")
    }

    #[test]
    fn a_counter_of_an_unrolled_loop_is_found() {
        // 10: add rax, rdx
        let step = Step::Of(Reg::general(2), 2);
        assert_eq!(counters(&unrolled("4801d0"), 0), [(Reg::general(0), step)]);
    }

    #[test]
    fn an_unrolled_loop_whose_step_varies_is_refused() {
        // 10: add rax, rcx; 10: inc rdx
        assert_eq!(counters(&unrolled("4801c8"), 0), []);
        assert_eq!(counters(&unrolled("48ffc2"), 0), [(Reg::general(2), Step::By(1))]);
    }

    #[test]
    fn ways_that_advance_it_by_other_numbers_are_refused() {
        assert_eq!(counters(&both("08"), 0x11), []);
    }

    #[test]
    fn a_second_advance_on_one_way_is_refused() {
        // 0: add rdi, 4; 4: test dl, 1; 7: je d; 9: add rdi, 4; d: dec rsi; 10: jne 0; 12: ret
        let some = counters("4883c704 f6c201 7404 4883c704 48ffce 75ee c3", 0);
        assert_eq!(some, [(Reg::general(6), Step::By(-1))]);
        // 0: add rdi, 4; 4: test dl, 1; 7: je b; 9: jmp 0; b: add rdi, 4; f: dec rsi; 12: jne 0; 14: ret
        let other = counters("4883c704 f6c201 7402 ebf5 4883c704 48ffce 75ec c3", 0);
        assert_eq!(other, []);
    }
}
