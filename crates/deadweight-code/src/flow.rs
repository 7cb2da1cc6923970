//! Where code leads: reachability within a function, by its jumps and branches, and the first call of straight code.
//!
//! Not for loops; see `function::loops`.

use crate::code::Code;
use crate::decode::{self, Sort, Way, quick};
use crate::instruction::{Instruction, Kind};
use deadweight_trace::syscall::Arch;

/// What straight code calls first, see [`Instruction::callee`]; none if a branch or its end comes before.
#[must_use]
pub fn first_call(code: &Code<'_>) -> Option<u64> {
    if code.arch == Arch::X86_64
        && let Some(found) = quick_first_call(code)
    {
        return found;
    }
    let found = decode::search(code, |instruction| match instruction.kind {
        Kind::Call(_) => Some(instruction.callee()),
        _ => instruction.ends_block().then_some(None),
    });
    found.flatten()
}

/// The same by the quick decoder; none if that does not know.
fn quick_first_call(code: &Code<'_>) -> Option<Option<u64>> {
    let (mut rest, mut addr) = (code.bytes, code.addr.0);
    while !rest.is_empty() {
        let (len, sort) = quick(rest, addr)?;
        match sort {
            Sort::Call(to) | Sort::Through(to, Way::Calls) => return Some(Some(to)),
            Sort::Leaves(Way::Calls) => return None,
            Sort::To { .. } | Sort::Leaves(_) | Sort::Through(_, Way::Jumps) | Sort::Stops => {
                return Some(None);
            }
            _ => {}
        }
        rest = &rest[len..];
        addr = addr.wrapping_add(len as u64);
    }
    Some(None)
}

/// Whether instruction `to` is reachable from instruction `from` through instructions that `among` accepts (all by index).
/// A jump with an unknown target may go anywhere.
pub(super) fn reaches(
    instructions: &[Instruction],
    (from, to): (usize, usize),
    among: impl Fn(usize) -> bool,
) -> bool {
    let mut seen = vec![false; instructions.len()];
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        let Some(instruction) = instructions.get(at) else { continue };
        if at == to || instruction.kind == Kind::Jump(None) {
            return true;
        }
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let target = instruction
            .target()
            .and_then(|to| instructions.binary_search_by_key(&to, |i| i.addr).ok());
        let next = instruction.falls_through().then_some(at + 1);
        open.extend([target, next].into_iter().flatten().filter(|to| among(*to)));
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::{Abi, Code, Function};
    use deadweight_trace::syscall::Arch;
    use deadweight_trace::units::FileAddr;

    /// How many calls of rare cases a small function has; none if it is not small.
    fn rare_calls(bytes: &[u8]) -> Option<usize> {
        let abi = Abi::Platform;
        let code = Code { arch: Arch::X86_64, abi, addr: FileAddr(0), bytes };
        Function::read(&code, &|_| None).calls_if_small().map(<[_]>::len)
    }

    // 0: mov rax, [rdi]; cmp rax, [rdi+8]; je 11; 9: lea rdx, [rax+1]; mov [rdi], rdx; ret
    // 11: call; 16: test eax, eax; je 1f; mov rax, [rdi]; jmp 9; 1f: xor eax, eax; 21: jmp 9
    const TWO_ENDS: &[u8] = b"\x48\x8b\x07\x48\x3b\x47\x08\x74\x08\x48\x8d\x50\x01\x48\x89\x17\xc3\
        \xe8\x00\x10\x00\x00\x85\xc0\x74\x05\x48\x8b\x07\xeb\xea\x31\xc0\xeb\xe6";

    #[test]
    fn a_rare_case_with_two_ends_is_no_loop_unless_it_forms_a_cycle() {
        assert_eq!(rare_calls(TWO_ENDS), Some(1));
        // 21: jmp 1f
        let mut round = TWO_ENDS.to_vec();
        round[0x22] = 0xfc;
        assert_eq!(rare_calls(&round), None);
    }

    #[test]
    fn an_indirect_jump_may_form_a_cycle() {
        // 0: mov rax, [rdi]; 3: add rax, 1; 7: jmp [rsi+rax*8]; a: sub rax, 2; e: jmp 3
        let table = b"\x48\x8b\x07\x48\x83\xc0\x01\xff\x24\xc6\x48\x83\xe8\x02\xeb\xf3";
        assert_eq!(rare_calls(table), None);
    }
}
