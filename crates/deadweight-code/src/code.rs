//! The input: the bytes of a function, and names for the addresses that it calls.
//!
//! Data only. Not for instructions; see `decode`.

use crate::abi::Abi;
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;

/// The bytes of one function.
#[derive(Copy, Clone, Debug)]
pub struct Code<'a> {
    /// Their architecture.
    pub arch: Arch,
    /// Their calling convention.
    pub abi: Abi,
    /// Address of the first byte.
    pub addr: FileAddr,
    /// From the function's entry to its end. Bytes that cannot be decoded are kept as unknown.
    pub bytes: &'a [u8],
}

impl Code<'_> {
    /// Whether an address is in it.
    pub(crate) fn holds(&self, addr: FileAddr) -> bool {
        (self.addr.0..self.addr.0.saturating_add(self.bytes.len() as u64)).contains(&addr.0)
    }
}

/// Names the code at an address, or behind a fixed pointer (an entry of the GOT) at that address: the function that holds
/// the address, not only a function that begins there.
pub type Names<'n> = dyn Fn(FileAddr) -> Option<&'n str> + 'n;
