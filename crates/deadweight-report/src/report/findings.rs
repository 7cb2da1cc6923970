//! Hidden costs: findings with their call sites, proofs by removal, and hazards of the measurement.
//!
//! Data only. Not for judging them: `deadweight-core` does that.

use deadweight_trace::patch::Patch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A hidden cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The cost class.
    pub class: String,
    /// One line: what it is (`tiny reads`).
    pub title: String,
    /// A sentence or two: what happens, with counts.
    #[serde(default)]
    pub text: String,
    /// The process that it happens in.
    pub process: String,
    /// Its part of the wall time.
    pub amount_ns: u64,
    /// What removing it is predicted to save.
    pub saving_ns: u64,
    /// The predicted saving as a share of the wall time.
    pub saving_share: f64,
    /// Lower end of the saving's share.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How it is known.
    pub how: How,
    /// Where, most expensive first.
    pub sites: Vec<Site>,
    /// Evidence in lines: counts, stacks, listings.
    pub evidence: Vec<String>,
    /// What to do, for this language.
    pub remedy: String,
    /// Results of removing the cost from a copy of the binary (`--prove`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
    /// What can be removed to prove it. Not part of the exported form.
    #[serde(skip)]
    pub removals: Vec<Removal>,
}

/// How a finding is known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Both ends of its time are in the trace.
    Exact,
    /// A share of samples, with the class's known bias.
    #[default]
    Estimate,
    /// A possible cause: no saving is promised.
    Candidate,
    /// The saving was measured by removing the cost.
    Measured,
}

impl Finding {
    /// The time at one of its sites, in ns, rounded.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of 0 to 1 of a time"
    )]
    pub fn time_at(&self, site: &Site) -> u64 {
        (site.share.clamp(0.0, 1.0) * self.amount_ns as f64).round() as u64
    }
}

/// A call site: a place in the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Site {
    /// Function, demangled.
    pub function: String,
    /// Source file, or empty.
    pub file: String,
    /// Line from 1, or 0.
    pub line: u32,
    /// Binary.
    pub image: String,
    /// The share of the finding at this place.
    pub share: f64,
    /// How often, where counted.
    #[serde(default)]
    pub count: u64,
    /// The call chain above, innermost first, as `function (file:line)`.
    #[serde(default)]
    pub chain: Vec<String>,
    /// The source line's text, if the file existed when the recording was sealed.
    #[serde(default)]
    pub source: String,
}

/// The result of comparing the program with a copy of which a part of the code was removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// What was removed (`the call of memset at frames.cpp:11`).
    pub removed: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The outcome in a sentence.
    pub text: String,
    /// Untraced runs of each of the two, alternating.
    pub pairs: u32,
    /// The time saved, as a share of the command's wall time.
    pub saving: f64,
    /// Lower end at 95 % confidence.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The outcome of a removal.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The program is faster without the removed code, and its output is the same.
    Measured,
    /// The program's behaviour differs without the removed code.
    Needed,
    /// The output is the same, and the program is not shown to be faster.
    NoSaving,
    /// It could not be tried, or not often enough for a result.
    #[default]
    NotTried,
}

/// Code that can be removed from a binary, to measure what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Removal {
    /// What it is and where: `the call of memset at frames.cpp:11`.
    pub what: String,
    /// Path of the binary.
    pub image: String,
    /// Its share of the finding, 0 to 1.
    pub share: f64,
    /// The patches; or why there are none.
    pub patches: Result<Vec<Patch>, String>,
}

/// A reason why the measurement misleads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hazard {
    /// Stable id (`timed-the-producer`).
    pub id: String,
    /// What it is and what to do about it.
    pub text: String,
}
