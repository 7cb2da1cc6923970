//! A change to the bytes of a binary, which `--prove` applies to a copy of it.
//!
//! Not for choosing the bytes; `deadweight-code` does that.

use crate::units::FileAddr;

/// Bytes that replace as many others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Address of the first byte.
    pub addr: FileAddr,
    /// The bytes that must be there before.
    pub was: Vec<u8>,
    /// The bytes to write, as many.
    pub becomes: Vec<u8>,
}
