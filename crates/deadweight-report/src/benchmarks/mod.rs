//! Results of benchmark programs, compared row by row: what they measured themselves, per operation.
//!
//! Go's text form ([`go`]) and the JSON of Google Benchmark, criterion and hyperfine ([`json`]) are
//! read into the same [`Results`]; [`table`] lays several of them beside one another and judges each
//! row. The printed statistics are benchstat's, the verdicts ours. Not for runs of our own: those
//! have ledgers, and are the business of [`crate::compare`].

pub mod conditions;
pub mod go;
pub mod json;
pub mod keys;
pub mod operation;
pub mod sample;
pub mod speed;
pub mod table;
pub mod units;

use std::collections::BTreeMap;

/// What one source measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Every measurement, in its order.
    pub measured: Vec<Measured>,
    /// What the source says about its units.
    pub units: BTreeMap<String, units::Facts>,
    /// What was left out and why, in sentences.
    pub remarks: Vec<String>,
}

/// One measurement: a benchmark's name and a value per unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// What was said about the run before it (`goos: linux`), in order.
    pub config: Vec<(String, String)>,
    /// The benchmark.
    pub name: String,
    /// Values with their units, in seconds and bytes; all finite.
    pub values: Vec<(f64, String)>,
}

/// Why results cannot be compared, as the rest of a sentence that begins with their source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

/// Refuses what is no measurement.
fn finite(value: f64, of: &str) -> Result<f64, Unusable> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Unusable(format!("{of} is {value}, which is no measurement")))
}
