//! Recordings of other tools as raw events, in order of time.
//!
//! - In: a file of `perf record`.
//! - Out: events for a [`Sink`](deadweight_trace::raw::Sink), as `deadweight-record` gives them.
//! - Must not know: symbols. What the file does not say is not made up: it becomes the row *not recorded*.
//!
//! | module | what it does |
//! |---|---|
//! | `facts` | what a record says |
//! | `sections` | checks sizes that the header of perf.data states |
//! | `file` | reads perf.data into facts |
//! | `tracepoints` | fields of the scheduler's and the system calls' events |
//! | `convert` | facts into raw events; what was not recorded |

#![forbid(unsafe_code)]

mod convert;
mod facts;
mod file;
mod sections;
mod tracepoints;

pub use convert::{Import, import};
pub use file::ImportError;
