//! One source-level frame: what DWARF, Go's function table and perf maps give for an address.
//!
//! Text as it was read. The interned frame of a trace is `deadweight_trace::symbols::SourceFrame`.

/// One source-level frame at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Function: a linker name until `resolve` makes it readable; empty where unknown.
    pub function: String,
    /// Source path as the compiler recorded it; empty where unknown.
    pub file: String,
    /// Line from 1; 0 where unknown.
    pub line: u32,
}
