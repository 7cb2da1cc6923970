//! What a reader of reports needs: the [`report`](report::Report) and its JSON, statistics, comparison of
//! reports, conditions for scripts, and the files of benchmark programs.
//!
//! Not for making a report out of a recording: that is `deadweight-core`.
#![forbid(unsafe_code)]

pub mod account;
pub mod benchmarks;
pub mod compare;
pub mod gate;
pub mod report;
pub mod stats;
pub mod wording;
