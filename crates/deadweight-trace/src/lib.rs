//! A recorded run: immutable, self-contained, versioned. Everything after it is a pure function of it.
//!
//! - In: raw events from the recorder ([`raw`]), or the bytes or the text of a trace file.
//! - Out: a [`Trace`]: facts about the run ([`Meta`]), [`symbols`], and [`Event`]s in order of time. The events
//!   stay encoded (about 10 bytes each) and are decoded while they are walked: ten million take some 100 MB.
//! - Must not know: how events are recorded, how symbols are found, or what a time was spent on.
//!
//! Read in this order: [`units`] and [`ids`], [`event`], [`symbols`], [`meta`](Meta), then the forms: [`encoded`] (in
//! memory), [`binary`] (the file), [`text`] (for people and tests). [`raw`], [`probe`] (places for uprobes),
//! [`patch`] (bytes that `--prove` replaces) and [`hash`] are shared by the recorder, the sealer and the analysis. A *call*
//! is a system call here.

#![forbid(unsafe_code)]

pub mod binary;
pub mod encoded;
pub mod event;
pub mod hash;
pub mod ids;
mod meta;
pub mod patch;
pub mod probe;
pub mod raw;
pub mod symbols;
pub mod syscall;
pub mod text;
mod trace;
pub mod units;

pub use encoded::Events;
pub use event::{Event, Kind, Off};
pub use meta::{Exit, Machine, Meta, Overhead, Usage};
pub use trace::Trace;
