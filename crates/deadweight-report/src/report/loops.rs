//! Loops, with what the registers at their samples show (`--why`).
//!
//! Data only. Not for what to do about a slow loop; see `findings`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was asked about loops, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loops {
    /// Samples of own code with registers, in loops or not; with `--in` those under the function.
    pub samples: u64,
    /// The loops with 3 % of them or more, those with most first.
    pub all: Vec<LoopReading>,
    /// Why nothing can be said, if so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cannot: String,
}

/// A loop with much of the time, and why it takes that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopReading {
    /// The name of its process.
    pub process: String,
    /// Its function.
    pub function: String,
    /// Source file, or empty.
    pub file: String,
    /// The line with most samples, or 0.
    pub line: u32,
    /// Its samples; those in functions that it calls included.
    pub samples: u64,
    /// The time of one turn, in ns, by registers that count turns; absent where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_ns: Option<f64>,
    /// What its instructions need for a turn at 2.5 GHz if nothing is waited for, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_ns: Option<f64>,
    /// The cost class of the reason, or empty.
    pub class: String,
    /// The reason in words, or why none is given.
    pub reason: String,
    /// Signs that were looked for; none if there are too few samples.
    pub signs: Vec<LoopSign>,
    /// What its samples wait for, most first; none if there are too few.
    pub waits: Vec<LoopWait>,
}

/// A sign of a reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopSign {
    /// What it is a sign of: `far memory`, `branches`, `divisions`, `small pages`, `shared lines`.
    pub of: String,
    /// The part of the loop's samples that show it, 0 to 1. Parts of several signs overlap.
    pub share: f64,
}

/// An instruction that samples of a loop wait for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopWait {
    /// Its text.
    pub instruction: String,
    /// Source file, or empty.
    pub file: String,
    /// Line, or 0.
    pub line: u32,
    /// Its part of the loop's samples, 0 to 1.
    pub share: f64,
    /// What the addresses that it uses show, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub memory: String,
}
