//! A change to the bytes of a binary: what `--prove` writes into a copy of it.
//!
//! Data only. Which bytes to replace is decided in `deadweight-code`.

use crate::units::FileAddr;

/// Bytes to write over others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Where the first one is.
    pub addr: FileAddr,
    /// What must be there before.
    pub was: Vec<u8>,
    /// As many bytes to write there.
    pub becomes: Vec<u8>,
}
