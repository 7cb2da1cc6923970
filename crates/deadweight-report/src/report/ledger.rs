//! Where the time went: rows of the ledger, and functions by their share.
//!
//! Data only. Not for causes and advice; see `findings`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A row of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// A cost class's id or one of the fixed accounts.
    pub account: String,
    /// The word shown in the terminal.
    pub group: String,
    /// Its time.
    pub ns: u64,
    /// Its share of the wall time.
    pub share: f64,
    /// Exact or sampled.
    pub basis: Basis,
    /// Lower end of the interval.
    pub low_ns: u64,
    /// Upper end.
    pub high_ns: u64,
    /// A short note (`read ×4 003, 1 byte each`; `for xxd`).
    #[serde(default)]
    pub note: String,
    /// `ns` by each traced run alone, in no particular order; empty if there was one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_ns: Vec<u64>,
}

/// How an amount is known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Both ends are in the trace.
    #[default]
    Exact,
    /// Apportioned by samples.
    Sampled,
}

/// A function's machine code, and the part of the row `net-work` that is spent there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionWork {
    /// Its name.
    pub function: String,
    /// By samples, in ns.
    pub ns: u64,
    /// Functions that are inlined into it, as far as samples show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
    /// Small functions that it calls, as far as samples show, and that could have been inlined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
}

/// A function with its share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TopFunction {
    /// Function, demangled.
    pub function: String,
    /// Source file, or empty.
    pub file: String,
    /// Its hottest line, or 0.
    pub line: u32,
    /// Binary.
    pub image: String,
    /// CPU time on the path, by samples.
    pub ns: u64,
    /// Share of the wall time.
    pub share: f64,
}
