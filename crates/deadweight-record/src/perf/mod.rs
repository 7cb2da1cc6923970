//! The kernel's perf events: opening them, reading their ring buffers, decoding their records.
//!
//! - In: event descriptions.
//! - Out: open events, and decoded records.
//! - Must not know: which events a recording needs.
//!
//! `sys` and `ring` are the only callers of the interface; `schema` and `decode` are pure and safe,
//! so that a fuzz target can feed them anything.

pub(crate) mod call_tracepoints;
pub mod decode;
pub(crate) mod deferred_close;
mod known_calls;
pub(crate) mod private_dir;
pub(crate) mod program_records;
mod record;
pub(crate) mod registers;
pub(crate) mod ring;
pub mod schema;
pub(crate) mod sys;
pub(crate) mod tracefs;
mod tracepoint_scan;
