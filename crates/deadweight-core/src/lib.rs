//! deadweight's pure core: a recorded [`Trace`](deadweight_trace::Trace) in, a ledger that adds up and its
//! findings out.
//!
//! [`weigh()`] is the way in. It calls the stages in this order, which is also the order to read them in:
//!
//! 1. [`timeline`]: each task's life as spans that tile it, with the cause of each wait.
//! 2. [`path`]: the chain of spans that the wall time consisted of, and other readings of the same run
//!    ([`path::projection`], [`path::whatif`]).
//! 3. `facts`: what else is known of the run: processes, groups of calls, call sites, locks, builds.
//! 4. `account`: slices and sums of slices, data only.
//! 5. `inspect`: what a cost class is given, and the draft that it returns.
//! 6. [`cost`]: one file for each hidden cost, which claims slices and drafts findings.
//! 7. `attribute`: charges every slice of the path to one account, by the classes' claims.
//! 8. `findings`: drafts into findings with a predicted saving, and what can be removed to try it.
//! 9. `sections`: rows, stages, functions and hazards of one run.
//! 10. `pool`: one report of several runs.
//!
//! Each uses only those above it. Beside the pipeline: [`counts`] adds a run that counts calls and allocations,
//! [`proof`] judges runs without what a finding blames, [`runners`] recognises recordings of `go test` and similar
//! commands, [`one_run()`] has more of one run than its report, `visit_count` counts work in tests. A *call* is a system call here, in the classes of user code also a
//! call of a function; the types say which.
//!
//! No IO, no clock, no environment, no hash order: the same bytes give the same report.
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

pub use facts::call_site::is_library_code;
pub use facts::clean_run::{CleanRun, RunCounters};
pub use sections::stacks::StackTime;
pub use weigh::{
    CallTotal, METHOD, OneRun, PathSlice, WeighError, Weighing, one_run, weigh, weigh_one,
};
