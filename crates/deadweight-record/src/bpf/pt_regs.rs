//! Registers of the caller at a system call: offsets into the kernel's `struct pt_regs`, which
//! begins as what `ptrace` shows.
//!
//! Does not read them; see `call_records` and `calls`.

use super::assembler::{Cond, Label, Op, Program, R};

/// The six arguments.
#[cfg(target_arch = "x86_64")]
pub(super) const ARGS: [i16; 6] = [112, 104, 96, 56, 72, 64];
/// Those of a 32-bit program: `ebx`, `ecx`, `edx`, `esi`, `edi`, `ebp`.
#[cfg(target_arch = "x86_64")]
pub(super) const COMPAT_ARGS: [i16; 6] = [40, 88, 96, 104, 112, 32];
/// Offset of the code segment, and its value in a 32-bit program (`__USER32_CS`).
#[cfg(target_arch = "x86_64")]
const COMPAT_SEGMENT: Option<(i16, i32)> = Some((136, 0x23));

/// The kernel keeps the first argument apart, because the result overwrites its register.
#[cfg(target_arch = "aarch64")]
pub(super) const ARGS: [i16; 6] = [272, 8, 16, 24, 32, 40];
/// A 32-bit program has them in the same registers.
#[cfg(target_arch = "aarch64")]
pub(super) const COMPAT_ARGS: [i16; 6] = ARGS;
/// So there is nothing to distinguish.
#[cfg(target_arch = "aarch64")]
const COMPAT_SEGMENT: Option<(i16, i32)> = None;

/// Jumps if the caller is a 32-bit program. `regs` points to its registers.
pub(super) fn jump_if_compat(p: &mut Program, regs: R, to: Label) {
    let Some((segment, compat)) = COMPAT_SEGMENT else { return };
    p.load(R(1), regs, segment);
    p.op_imm(Op::And, R(1), 0xffff);
    p.jump_if(R(1), Cond::Equal, compat, to);
}
