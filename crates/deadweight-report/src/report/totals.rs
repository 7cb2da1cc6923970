//! Totals of what a program did, which do not depend on how fast it did it.
//!
//! Data only. Not for the figures of one function's calls; see `counts`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often the subject did something in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// What: `calls` (system calls), `calls/read` (those of one name), `bytes-read`, `bytes-written`, `page-faults`,
    /// `major-faults` (with a read from storage), `processes`, `threads`, `execs`.
    pub name: String,
    /// The number in one run; of several traced runs the median.
    pub value: u64,
    /// The smallest of the traced runs ...
    pub low: u64,
    /// ... and the largest.
    pub high: u64,
    /// Whether all were counted. Else some were not recorded, and are taken to be like the others.
    pub exact: bool,
}
