//! The file form of a trace: checksummed blocks that are readable as far as they were written.
//!
//! `docs/trace-format.md` describes it and the promise that old files keep reading. `frame` is
//! the outer form, `tables` the symbols, `encoded` (beside this module) the events.

mod frame;
mod read;
mod tables;
#[cfg(test)]
mod tests;
mod write;

pub use read::ReadError;
pub use write::Writer;
