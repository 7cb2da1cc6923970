//! The best instruction of a function for a probe that counts its calls.
//!
//! Not for what the function does; see `roles`.

use crate::abi::Abi;
use crate::code::Code;
use crate::decode;
use crate::instruction::{Instruction, Kind, Registers};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;

/// An instruction that each call passes once, with stack pointer and arguments as at the entry, and that the kernel can
/// emulate. Others it must single-step, which takes ten times as long in a virtual machine. A Go function that grows its
/// stack starts again, so its entry would count twice. The entry, if there is no such instruction.
#[must_use]
pub fn probe_site(code: &Code<'_>) -> FileAddr {
    // On aarch64 the kernel emulates hardly any instruction.
    if code.arch == Arch::Aarch64 {
        return code.addr;
    }
    let (convention, instructions) = (decode::convention(code), decode::instructions(code));
    let mut kept = Registers::of(&[convention.stack]);
    convention.arguments.iter().for_each(|argument| kept.insert(*argument));
    // Go makes its frames by `push`, before anything else but the check of its stack.
    let go = code.abi == Abi::Go;
    for instruction in &instructions {
        let comes_here = |other: &Instruction| other.target() == Some(instruction.addr);
        let is_first = instruction.addr == code.addr.0;
        if !is_first && instructions.iter().any(comes_here) {
            break;
        }
        match instruction.kind {
            Kind::Push if instruction.memory.is_none_or(|m| !m.read) => {
                return FileAddr(instruction.addr);
            }
            Kind::Branch(_) if go => {}
            Kind::Branch(_) | Kind::Call(Some(_)) => return FileAddr(instruction.addr),
            Kind::Pop | Kind::System | Kind::Unknown => break,
            _ if !instruction.falls_through() || instruction.writes.meets(kept) => break,
            _ => {}
        }
    }
    code.addr
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(abi: Abi, bytes: &[u8]) -> u64 {
        let code = Code { arch: Arch::X86_64, abi, addr: FileAddr(0x1000), bytes };
        probe_site(&code).0 - code.addr.0
    }

    #[test]
    fn a_go_function_is_counted_after_its_stack_check() {
        // cmp 0x10(%r14),%rsp; jbe to the end; push %rbp; mov %rsp,%rbp; pop; ret; jmp to the entry
        let code =
            [0x49, 0x3b, 0x66, 0x10, 0x76, 0x06, 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3, 0xeb, 0xf2];
        assert_eq!(of(Abi::Go, &code), 6);
        // The same for a large frame: mov %rsp,%r12; sub; jb; cmp 0x10(%r14),%r12; jbe; push %rbp
        let code = [
            0x49, 0x89, 0xe4, 0x49, 0x81, 0xec, 0xb8, 0x0f, 0, 0, 0x72, 0x10, 0x4d, 0x3b, 0x66,
            0x10, 0x76, 0x0a, 0x55, 0x48, 0x89, 0xe5, 0xc3,
        ];
        assert_eq!(of(Abi::Go, &code), 18);
    }

    #[test]
    fn an_instruction_that_the_kernel_emulates_is_preferred_while_nothing_has_changed() {
        // mov %r10,%r11; push %rbx; ret
        assert_eq!(of(Abi::Platform, &[0x4d, 0x89, 0xd3, 0x53, 0xc3]), 3);
        // endbr64; push %rbx
        assert_eq!(of(Abi::Platform, &[0xf3, 0x0f, 0x1e, 0xfa, 0x53]), 4);
        // sub $8,%rsp; push %rbx: the caller's address is elsewhere by then.
        assert_eq!(of(Abi::Platform, &[0x48, 0x83, 0xec, 0x08, 0x53]), 0);
        // mov %rsi,%rdi; push %rbx: an argument has gone.
        assert_eq!(of(Abi::Platform, &[0x48, 0x89, 0xf7, 0x53]), 0);
        // add %r10,%r11; ret
        assert_eq!(of(Abi::Platform, &[0x4d, 0x01, 0xd3, 0xc3]), 0);
    }

    #[test]
    fn calls_are_not_counted_at_the_start_of_a_loop() {
        // add %r10,%r11; push %rbx; jne to the push; ret
        assert_eq!(of(Abi::Platform, &[0x4d, 0x01, 0xd3, 0x53, 0x75, 0xfd, 0xc3]), 0);
    }
}
