//! Where the kernel keeps a caller's registers at a system call: offsets into its `struct pt_regs`, whose beginning is
//! the same as what `ptrace` shows.
//!
//! Not for what is made of them: see `call_records`, `calls`.

use super::assembler::{Cond, Label, Op, Program, R};

/// The six arguments.
#[cfg(target_arch = "x86_64")]
pub(super) const ARGS: [i16; 6] = [112, 104, 96, 56, 72, 64];
/// Those of a 32-bit program's: `ebx`, `ecx`, `edx`, `esi`, `edi`, `ebp`.
#[cfg(target_arch = "x86_64")]
pub(super) const COMPAT_ARGS: [i16; 6] = [40, 88, 96, 104, 112, 32];
/// Where the code segment is, and its value in a 32-bit program (`__USER32_CS`).
#[cfg(target_arch = "x86_64")]
const COMPAT_SEGMENT: Option<(i16, i32)> = Some((136, 0x23));

/// The first argument is where the call's result will be, so the kernel keeps it apart.
#[cfg(target_arch = "aarch64")]
pub(super) const ARGS: [i16; 6] = [272, 8, 16, 24, 32, 40];
/// They are in the same registers.
#[cfg(target_arch = "aarch64")]
pub(super) const COMPAT_ARGS: [i16; 6] = ARGS;
/// So nothing has to be told apart.
#[cfg(target_arch = "aarch64")]
const COMPAT_SEGMENT: Option<(i16, i32)> = None;

/// Goes on there if a 32-bit program calls, whose registers `regs` points to.
pub(super) fn jump_if_compat(p: &mut Program, regs: R, to: Label) {
    let Some((segment, compat)) = COMPAT_SEGMENT else { return };
    p.load(R(1), regs, segment);
    p.op_imm(Op::And, R(1), 0xffff);
    p.jump_if(R(1), Cond::Equal, compat, to);
}
