//! What comes in: the bytes of a function, and names for the addresses that it calls.
//!
//! Data only. Not for instructions; see `decode`.

use crate::abi::Abi;
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;

/// The bytes of one function.
#[derive(Copy, Clone, Debug)]
pub struct Code<'a> {
    /// What machine they are for.
    pub arch: Arch,
    /// Whose calling convention they follow.
    pub abi: Abi,
    /// Address of the first byte.
    pub addr: FileAddr,
    /// From the function's entry to its end. What does not decode is kept as unknown.
    pub bytes: &'a [u8],
}

/// Names the code at an address, or behind a fixed pointer (an entry of the GOT) at it: the
/// function that the address lies in, not only the one that begins there.
pub type Names<'n> = dyn Fn(FileAddr) -> Option<&'n str> + 'n;
