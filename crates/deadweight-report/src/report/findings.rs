//! Hidden costs: findings with their call sites, proofs by removal, and hazards of the measurement.
//!
//! Data only. Not for judging them: `deadweight-core` does that.

use deadweight_trace::patch::Patch;
use serde::{Deserialize, Serialize};

/// A hidden cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The cost class.
    pub class: String,
    /// One line: what it is (`tiny reads`).
    pub title: String,
    /// A sentence or two: the story, with its counts.
    #[serde(default)]
    pub text: String,
    /// The process that it happens in.
    pub process: String,
    /// What it takes of the wall time.
    pub amount_ns: u64,
    /// What removing it is predicted to save.
    pub saving_ns: u64,
    /// That, as a share of the wall time.
    pub saving_share: f64,
    /// Lower end of the saving's share.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How it is known.
    pub how: How,
    /// Where, most expensive first.
    pub sites: Vec<Site>,
    /// What shows it: counts, stacks, listings, in lines.
    pub evidence: Vec<String>,
    /// What to do, concretely, for this language.
    pub remedy: String,
    /// What came of leaving it out of a copy of the binary (`--prove`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
    /// What could be left out to prove it. Not part of the exported form.
    #[serde(skip)]
    pub removals: Vec<Removal>,
}

/// How a finding is known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Both ends of its time are in the trace.
    Exact,
    /// Share of samples, with the class's known bias.
    #[default]
    Estimate,
    /// May be it: not a promised saving.
    Candidate,
    /// The saving was measured by removing the cost.
    Measured,
}

/// A place in the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Function, demangled.
    pub function: String,
    /// Source file, or empty.
    pub file: String,
    /// Line from 1, or 0.
    pub line: u32,
    /// Binary.
    pub image: String,
    /// Share of the finding that lies here.
    pub share: f64,
    /// How often, where counted.
    #[serde(default)]
    pub count: u64,
    /// The call chain above, innermost first, as `function (file:line)`.
    #[serde(default)]
    pub chain: Vec<String>,
    /// The source line's text, if the file was there when sealing.
    #[serde(default)]
    pub source: String,
}

/// What came of running the program with a part of its code left out, beside itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// What was left out (`the call of memset at frames.cpp:11`).
    pub removed: String,
    /// What that showed.
    pub outcome: Outcome,
    /// The same in a sentence.
    pub text: String,
    /// Undisturbed runs of each of the two, by turns.
    pub pairs: u32,
    /// What was saved, as a share of the command's wall time.
    pub saving: f64,
    /// Lower end at 95 % confidence.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What leaving something out showed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The program is faster without it, and does the same.
    Measured,
    /// The program does something else without it.
    Needed,
    /// The program does the same, and is not shown to be faster.
    NoSaving,
    /// It could not be tried, or not enough to say anything.
    #[default]
    NotTried,
}

/// What can be left out of a binary to try what it is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Removal {
    /// What it is and where: `the call of memset at frames.cpp:11`.
    pub what: String,
    /// Path of the binary.
    pub image: String,
    /// Its share of the finding, 0 to 1.
    pub share: f64,
    /// The bytes; or why they cannot be told.
    pub patches: Result<Vec<Patch>, String>,
}

/// A reason why the measurement misleads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hazard {
    /// Stable word (`timed-the-producer`).
    pub id: String,
    /// What and what to do about it.
    pub text: String,
}
