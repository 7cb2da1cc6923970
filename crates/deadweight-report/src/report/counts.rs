//! Counted calls and allocations, and the operation of a benchmark: figures for each call and each line.
//!
//! Data only. Not for sampled time; see `ledger`.

use serde::{Deserialize, Serialize};

/// A function that the ledger is restricted to: then all times are of what was spent under it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inside {
    /// As it was asked for.
    pub function: String,
    /// Its share of the wall time without tracing and other programs.
    pub share: f64,
    /// Its share of the CPU time of all threads, likewise.
    pub cpu_share: f64,
    /// What a call takes, if calls were counted: in a run of its own, under `-r`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Calls>,
    /// What an operation takes, if it is a benchmark that says so itself: the rows' shares are its too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Why calls were not counted, in a sentence; empty if they were.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uncounted: String,
}

/// An operation of a benchmark, by the program's own count in the runs that were read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// What the program calls the benchmark.
    pub name: String,
    /// Its time in ns, median of the runs.
    pub ns: f64,
}

/// Calls of a function in one run, and what one takes. Of its copies that are code of their own:
/// what was inlined into a caller is left out, with its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// How many, from all threads, those from itself too.
    pub count: u64,
    /// How that is known.
    pub basis: CountBasis,
    /// Wall time under the function for each.
    pub ns_per_call: f64,
    /// CPU time of all threads under the function for each.
    pub cpu_ns_per_call: f64,
    /// Allocations under the function for each; none if no allocator could be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations_per_call: Option<f64>,
    /// The bytes that these ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_call: Option<f64>,
    /// The share of its time in copies that were inlined.
    pub inlined_share: f64,
    /// The share of calls that come from itself, at any depth.
    pub recursive_share: f64,
    /// What a reader must know to read the figures.
    pub remarks: Vec<String>,
}

/// How the number of something that was counted is known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountBasis {
    /// All were counted.
    #[default]
    Exact,
    /// Counting stopped before the end, because there were enough to tell the proportions.
    AtLeast,
    /// Counting stopped before the end, and is scaled by how far the program's own work had come.
    Estimate,
}

/// Allocations of one run of the command, counted in a run of its own under `-r`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Allocations {
    /// How many, growth of what there was (`realloc`) included.
    pub count: u64,
    /// The bytes asked for.
    pub bytes: u64,
    /// How that is known.
    pub basis: CountBasis,
    /// The lines that ask most often.
    pub sites: Vec<AllocationSite>,
    /// How the counts are known if they are not exact.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

/// A line that asks for memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AllocationSite {
    /// Function, demangled.
    pub function: String,
    /// Source file, or empty.
    pub file: String,
    /// Line from 1, or 0.
    pub line: u32,
    /// How often.
    pub count: u64,
    /// The bytes asked for.
    pub bytes: u64,
    /// The fewest at once ...
    pub least: u64,
    /// ... and the most.
    pub most: u64,
}
