//! deadweight's pure core: a recorded [`Trace`](deadweight_trace::Trace) in, a ledger that adds up and its
//! findings out.
#![forbid(unsafe_code)]

mod account;
mod attribute;
pub mod cost;
pub mod counts;
mod facts;
mod findings;
mod inspect;
pub mod path;
mod pool;
pub mod proof;
pub mod runners;
mod sections;
pub mod timeline;
mod visit_count;
pub mod weigh;

pub use facts::clean_run::{CleanRun, RunCounters};
pub use weigh::{WeighError, Weighing, weigh};
