//! Calling conventions: which registers pass arguments, return results, and survive calls.
//!
//! Not for decoding: `decode` fills in the registers of each architecture.

use crate::instruction::{Reg, Registers};

/// The calling convention that code follows.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Abi {
    /// The platform's: System V on x86-64, AAPCS64 on aarch64. Those of Rust and Zig differ from it
    /// only in ways that no rule depends on.
    #[default]
    Platform,
    /// Go's internal ABI.
    Go,
}

impl Abi {
    /// The convention of code in `language`, as [`deadweight_trace::symbols::Image::language`] names it.
    #[must_use]
    pub fn of(language: &str) -> Self {
        if language == "Go" { Self::Go } else { Self::Platform }
    }
}

/// The registers with a purpose in a calling convention.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Convention {
    pub(crate) stack: Reg,
    pub(crate) frame: Reg,
    /// Holds the return address after a call.
    pub(crate) link: Option<Reg>,
    /// Destination, source and count of a block instruction.
    pub(crate) block: Option<[Reg; 3]>,
    pub(crate) result: Reg,
    pub(crate) arguments: &'static [Reg],
    /// Callee-saved registers.
    pub(crate) saved: Registers,
    /// Always zero between functions.
    pub(crate) zero: Option<Reg>,
    /// Go's current goroutine.
    pub(crate) goroutine: Option<Reg>,
}
