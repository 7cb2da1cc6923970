//! The archive: reports that are kept, with where they came from, in SQLite or PostgreSQL.
//!
//! - In: a report as the five tables of [`deadweight_report::tables`], its JSON, and its trace if wanted ([`Kept`]).
//! - Out: the same by id, lists of runs, and the series of a workload ([`Series`]) for statistics over time.
//! - Must not know: how a report is made, what a series means, or how anything is displayed.
//!
//! ```text
//!  Address ──► Archive ──► schema      creates or migrates the tables, refuses a newer archive
//!                 │
//!                 ├──► add             one transaction: rows, JSON, trace, and the run packed for its series
//!                 ├──► list, get, series, workloads
//!                 └──► prune, check
//!                         │
//!                         ▼
//!                      database        SQLite or PostgreSQL behind one trait; the same SQL text for both
//! ```
//!
//! An added run is on disk before `add` returns. Adding it again changes nothing: its id is a hash of its content. The
//! tables are documented in `docs/archive.md`; queries of others may rely on them.
#![forbid(unsafe_code)]

mod add;
mod address;
mod archive;
mod check;
mod columns;
mod database;
mod error;
mod exchange;
mod kept;
mod packed;
mod prune;
mod read;
mod schema;
mod series;

pub use add::Added;
pub use address::Address;
pub use archive::Archive;
pub use check::Checked;
pub use error::{ArchiveError, ErrorKind};
pub use kept::{Kept, id};
pub use prune::{Policy, Pruned};
pub use read::{Filter, Workload};
pub use series::{Point, Series};
