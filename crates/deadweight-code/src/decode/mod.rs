//! Machine code into [`Instruction`]s: the only place that knows an architecture.
//!
//! - In: the bytes of a function.
//! - Out: its instructions in common terms, their text, and the registers of its calling convention; for x86-64 also
//!   bytes that replace instructions (`x86::rewrite`).
//! - Must not know: what instructions are for; see `roles`.

mod aarch64;
pub(crate) mod x86;

use crate::abi::{Abi, Convention};
use crate::code::Code;
use crate::instruction::{Division, Float, Instruction, Reg};
use deadweight_trace::syscall::Arch;
pub(crate) use x86::quick::{Operations, Sort, Way, set};

/// The registers of the function's calling convention.
pub(crate) fn convention(code: &Code<'_>) -> Convention {
    convention_of(code.arch, code.abi)
}

/// The registers of a calling convention.
pub(crate) fn convention_of(arch: Arch, abi: Abi) -> Convention {
    match arch {
        Arch::X86_64 => x86::convention(abi),
        Arch::Aarch64 => aarch64::convention(abi),
    }
}

/// The function's instructions, in order of address. Never more than there are bytes.
pub(crate) fn instructions(code: &Code<'_>) -> Vec<Instruction> {
    match code.arch {
        Arch::X86_64 => x86::decode(code.bytes, code.addr.0),
        Arch::Aarch64 => aarch64::decode(code.bytes, code.addr.0),
    }
}

/// Adds the instructions of `code` to others.
pub(crate) fn more_instructions(code: &Code<'_>, to: &mut Vec<Instruction>) {
    match code.arch {
        Arch::X86_64 => to.extend(x86::one_by_one(code.bytes, code.addr.0)),
        Arch::Aarch64 => to.extend(aarch64::decode(code.bytes, code.addr.0)),
    }
}

/// Passes the function's instructions to `pass`, in order of address, until it returns a value.
pub(crate) fn search<T>(code: &Code<'_>, pass: impl FnMut(Instruction) -> Option<T>) -> Option<T> {
    match code.arch {
        Arch::X86_64 => x86::one_by_one(code.bytes, code.addr.0).find_map(pass),
        Arch::Aarch64 => aarch64::decode(code.bytes, code.addr.0).into_iter().find_map(pass),
    }
}

/// The instruction at the start of x86-64 `code`, which lies at `addr`, as far as it matters for a screen of a whole
/// binary.
#[inline]
pub(crate) fn quick(code: &[u8], addr: u64) -> Option<(usize, Sort)> {
    x86::quick::step(code, addr)
}

/// Whether two pieces of code are the same at two places, see [`crate::is_same_code`].
pub(crate) fn is_same(a: &Code<'_>, b: &Code<'_>, same: &dyn Fn(u64, u64) -> bool) -> bool {
    match (a.arch, b.arch) {
        (Arch::X86_64, Arch::X86_64) => {
            x86::moved::is_same((a.bytes, a.addr.0), (b.bytes, b.addr.0), same)
        }
        _ => a.arch == b.arch && a.addr == b.addr && a.bytes == b.bytes,
    }
}

/// How `instruction` divides, if it does.
pub(crate) fn division(code: &Code<'_>, instruction: &Instruction) -> Option<Division> {
    let at = usize::try_from(instruction.addr.wrapping_sub(code.addr.0)).ok()?;
    let bytes = code.bytes.get(at..)?.get(..usize::from(instruction.len))?;
    match code.arch {
        Arch::X86_64 => x86::division(bytes),
        Arch::Aarch64 => aarch64::division(bytes),
    }
}

/// What `instruction` computes with floating-point numbers, if it does; not known of 64-bit Arm.
pub(crate) fn float(code: &Code<'_>, instruction: &Instruction) -> Option<Float> {
    x86::floats::float(bytes_of(code, instruction)?)
}

/// The register and the constant that `instruction` compares, if it does; not known of 64-bit Arm.
pub(crate) fn compared(code: &Code<'_>, instruction: &Instruction) -> Option<(Reg, i64)> {
    x86::compared(bytes_of(code, instruction)?)
}

/// The bytes of an x86-64 instruction.
fn bytes_of<'c>(code: &Code<'c>, instruction: &Instruction) -> Option<&'c [u8]> {
    let at = usize::try_from(instruction.addr.wrapping_sub(code.addr.0)).ok()?;
    let bytes = code.bytes.get(at..)?.get(..usize::from(instruction.len))?;
    (code.arch == Arch::X86_64).then_some(bytes)
}

/// The instruction at `addr` as text; none if there is none.
pub(crate) fn text(code: &Code<'_>, addr: u64) -> Option<String> {
    let at = usize::try_from(addr.wrapping_sub(code.addr.0)).unwrap_or(usize::MAX);
    let bytes = code.bytes.get(at..).unwrap_or_default();
    match code.arch {
        Arch::X86_64 => x86::text(bytes, addr),
        Arch::Aarch64 => aarch64::text(bytes, addr),
    }
}
