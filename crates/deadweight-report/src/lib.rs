//! Reports and what is computed from them: JSON, statistics, comparison, conditions for scripts, benchmark files.
//!
//! - In: the values of a [`Report`](report::Report) from `deadweight-core`, its JSON, or result files of benchmark
//!   programs.
//! - Out: JSON, comparisons with a verdict for each row, answers to conditions, warnings as sentences.
//! - Must not know: traces, timelines, machine code, or how anything is displayed. Of `deadweight-trace` it uses only
//!   units and patches.
//!
//! Read in this order: [`account`] (the rows of a ledger), [`report`], [`stats`], [`compare`], [`gate`], [`benchmarks`],
//! [`regressions`], [`tables`], [`change_points`], [`history`].
//! [`wording`] formats numbers for sentences. *Calls* are calls of a function here ([`report::Calls`]).
#![forbid(unsafe_code)]

pub mod account;
pub mod benchmarks;
pub mod change_points;
pub mod compare;
pub mod gate;
pub mod history;
pub mod regressions;
pub mod report;
pub mod stats;
pub mod tables;
pub mod wording;
