//! One run as files that other tools open.
//!
//! Each format has a file of its own: a pure function from a report and a [`OneRun`](deadweight_core::OneRun) to bytes.
//! What a format keeps and loses is said once, in the text of the command line.
//!
//! No IO, no clock, no environment, no hash order: the same trace gives the same file.
#![forbid(unsafe_code)]

pub mod action_benchmark;
pub mod firefox;
pub mod folded;
pub mod ledger;
mod names;
pub mod perfetto;
pub mod pprof;
pub mod sarif;
pub mod speedscope;
#[cfg(test)]
mod tests;
