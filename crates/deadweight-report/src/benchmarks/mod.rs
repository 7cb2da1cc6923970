//! Results of benchmark programs, compared row by row, for each operation.
//!
//! - In: Go's text form ([`go`]), or JSON of Google Benchmark, criterion or hyperfine ([`json`]).
//! - Out: [`Results`], [`table`]s of several of them with a verdict for each row, rankings ([`speed`]), answers to
//!   [`conditions`]. The printed statistics are benchstat's; the verdicts are stricter.
//! - Must not know: runs recorded by deadweight, which have ledgers; see [`crate::compare`].

pub mod conditions;
pub mod encoding;
pub mod go;
pub mod json;
pub mod keys;
pub mod operation;
pub mod sample;
pub mod speed;
pub mod table;
pub mod units;

use std::collections::BTreeMap;

/// The measurements of one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The program that wrote it: `go`, `google-benchmark`, `criterion` or `hyperfine`; empty for none.
    pub kind: &'static str,
    /// Every measurement, in its order.
    pub measured: Vec<Measured>,
    /// What the source says about its units.
    pub units: BTreeMap<String, units::UnitProperties>,
    /// What was left out, and why, in sentences.
    pub remarks: Vec<String>,
}

/// One measurement: a benchmark's name and a value per unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Facts about the run that precede it (`goos: linux`), in order.
    pub config: Vec<(String, String)>,
    /// The benchmark.
    pub name: String,
    /// Values with their units, in seconds and bytes; all finite.
    pub values: Vec<(f64, String)>,
}

/// Why results cannot be compared: the rest of a sentence that begins with their source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

/// Refuses values that are not finite.
fn finite(value: f64, of: &str) -> Result<f64, Unusable> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Unusable(format!("{of} is {value}, which is not a measurement")))
}
