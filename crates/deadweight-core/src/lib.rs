//! deadweight's pure core: a recorded [`Trace`](trace::Trace) in, a ledger that adds up and its
//! findings out.
//!
//! The pipeline, in the order a reader should follow it:
//!
//! 1. [`trace`]: what was recorded, sealed so that nothing else is ever needed.
//! 2. [`timeline`]: each task's life as spans that tile it.
//! 3. [`path`]: the chain of spans that the wall time consisted of, and beside it what tempers
//!    that reading: [`projection`], [`overlap`], [`holding`], [`teams`], [`whatif`].
//! 4. `attribute`: every slice of it charged to one account, by the knowledge in [`cost`].
//! 5. [`weigh`]: ledger and findings, pooled over runs, as a [`report`].
//!
//! No IO, no clock, no environment, no hash order: the same bytes give the same report.
#![forbid(unsafe_code)]

mod attribute;
mod awaited;
mod border;
mod builds;
mod calls;
mod case;
pub mod causes;
mod churn;
mod cleared;
pub mod cost;
pub mod counts;
pub mod descriptors;
mod effort;
mod findings;
mod hazards;
pub mod holding;
mod hot_code;
pub mod kernel;
mod ledger;
mod locks;
mod observed;
pub mod overlap;
pub mod path;
mod place;
mod pool;
mod processes;
pub mod projection;
pub mod proof;
mod readings;
mod removals;
pub mod runners;
mod shares;
mod stages;
pub mod teams;
pub mod timeline;
mod top;
mod unnamed;
mod user_time;
pub mod weigh;
pub mod whatif;
mod work;

pub use weigh::{CleanRun, Luck, WeighError, Weighing, weigh};
