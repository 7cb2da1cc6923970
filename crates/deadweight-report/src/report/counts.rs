//! Counted calls and allocations, and the operation of a benchmark: figures for each call and each line.
//!
//! Data only. Not for sampled time; see `ledger`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A function that the ledger is restricted to: then all times are those spent in it and its callees.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inside {
    /// As the user named it.
    pub function: String,
    /// Its share of the wall time without tracing overhead and other programs.
    pub share: f64,
    /// Its share of the CPU time of all threads, without the same.
    pub cpu_share: f64,
    /// Figures for each call, if calls were counted (in a separate run, under `-r`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Calls>,
    /// The time of an operation, if the program is a benchmark that prints it: the rows' shares apply to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Why calls were not counted, in a sentence; empty if they were counted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uncounted: String,
}

/// An operation of a benchmark, as the program itself reports it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// The program's name for the benchmark.
    pub name: String,
    /// Its time in ns; in a report the median of the runs.
    pub ns: f64,
}

/// Calls of a function in one run, and figures for each call. Only calls of its own machine code: inlined copies are
/// left out, with their time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    /// The number of calls from all threads, recursive calls included.
    pub count: u64,
    /// How the count is known.
    pub basis: CountBasis,
    /// Wall time under the function for each.
    pub ns_per_call: f64,
    /// CPU time of all threads under the function for each.
    pub cpu_ns_per_call: f64,
    /// Allocations under the function for each; none if no allocator could be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations_per_call: Option<f64>,
    /// The bytes that these request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_call: Option<f64>,
    /// The share of its time in copies that were inlined.
    pub inlined_share: f64,
    /// The share of calls that come from itself, at any depth.
    pub recursive_share: f64,
    /// What the reader must know about the figures.
    pub remarks: Vec<String>,
}

/// How the number of something that was counted is known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountBasis {
    /// All were counted.
    #[default]
    Exact,
    /// Counting stopped before the end, when there were enough to know the proportions.
    AtLeast,
    /// Counting stopped before the end; the count is scaled by the progress of the program's own work.
    Estimate,
}

/// Allocations of one run of the command, counted in a separate run under `-r`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Allocations {
    /// The number of allocations, `realloc` included.
    pub count: u64,
    /// The bytes requested.
    pub bytes: u64,
    /// How the count is known.
    pub basis: CountBasis,
    /// The lines that allocate most often.
    pub sites: Vec<AllocationSite>,
    /// How the counts are known, if they are not exact.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

/// A source line that allocates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllocationSite {
    /// Function, demangled.
    pub function: String,
    /// Source file, or empty.
    pub file: String,
    /// Line from 1, or 0.
    pub line: u32,
    /// How often.
    pub count: u64,
    /// The bytes requested.
    pub bytes: u64,
    /// The smallest request ...
    pub least: u64,
    /// ... and the largest.
    pub most: u64,
}
