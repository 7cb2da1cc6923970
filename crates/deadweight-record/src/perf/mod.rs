//! The kernel's perf events: opening them, reading their rings, decoding their records.
//!
//! `sys` and `ring` are the only callers of the interface; `schema` and `decode` are pure and safe,
//! so that a fuzz target can feed them anything.

pub(crate) mod calls;
pub mod decode;
pub(crate) mod private;
pub(crate) mod ring;
pub mod schema;
mod scout;
pub(crate) mod sys;
pub(crate) mod tracefs;
