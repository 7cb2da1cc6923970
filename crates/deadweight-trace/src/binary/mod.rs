//! The file form of a trace: checksummed blocks, readable up to the last one written.
//!
//! - In: a trace (or its parts while it is recorded), or the bytes of a file.
//! - Out: bytes, or a trace with warnings about what is damaged or missing.
//! - Must not know: files as such (the caller reads and writes them), or what events mean.
//!
//! `docs/trace-format.md` describes the format and promises that old files can still be read. `frame` is the outer
//! form, `tables` the symbols, `encoded` (beside this wing) the events.

mod frame;
mod read;
mod tables;
#[cfg(test)]
mod tests;
mod write;

pub use read::ReadError;
pub use write::Writer;
