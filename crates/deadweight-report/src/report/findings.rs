//! Hidden costs: findings with their call sites, proofs by leaving the cost out, and hazards of the measurement.
//!
//! Data only. Not for judging them: `deadweight-core` does that.

use deadweight_trace::patch::Patch;
use deadweight_trace::units::FileAddr;
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
    /// Results of runs without the cost (`--prove`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
    /// What can be left out to prove it. Not part of the exported form.
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

/// The result of runs in pairs, of which one lacked a cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// What was left out (`the call of memset at frames.cpp:11`).
    pub removed: String,
    /// How it was left out; none if it cannot be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub means: Option<Means>,
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
    /// What else changed without it, as `CPU time +40 %`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// How a run leaves a cost out, without the source and without another build.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// A copy of the binary with other bytes at some places.
    PatchedCopy,
    /// System calls that return success and do nothing.
    SkippedCalls,
    /// Variables of the environment that a runtime or library obeys.
    Environment,
    /// A library loaded before the others, with other versions of some functions.
    Library,
    /// One CPU for all threads.
    OneCpu,
    /// A cgroup without a CPU quota.
    NoQuota,
    /// Calls that are made twice: what they take is added once more.
    Twice,
}

/// The outcome of a removal.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The program is faster without it, and its output is the same.
    Measured,
    /// The program's behaviour differs without it.
    Needed,
    /// The output is the same, and the program is not shown to be faster.
    NoSaving,
    /// It could not be tried, or not often enough for a result.
    #[default]
    NotTried,
}

/// A cost that runs can leave out, to measure what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Removal {
    /// What it is and where: `the call of memset at frames.cpp:11`.
    pub what: String,
    /// Its share of the finding, 0 to 1.
    pub share: f64,
    /// What is done to a run; or why nothing can be.
    pub change: Result<Change, String>,
}

/// What is done to a run so that it lacks a cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These bytes of the binary at this path are replaced, in a copy.
    Patches(String, Vec<Patch>),
    /// These system calls return 0 and do nothing.
    SkippedCalls(Vec<SkippedCall>),
    /// These variables are set: name and value.
    Environment(Vec<(String, String)>),
    /// This library is loaded first.
    Library(Preloaded),
    /// All threads run on one CPU.
    OneCpu,
    /// It runs in a cgroup that has no CPU quota.
    NoQuota,
    /// These calls of the binary at this path, by their addresses in its file, are made twice.
    Twice(String, Vec<FileAddr>),
}

/// As the value of a variable: half of the memory that is available when the program runs, in bytes.
pub const HALF_OF_MEMORY: &str = "half of the available memory";

/// A system call that is skipped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SkippedCall {
    /// Its name.
    pub name: &'static str,
    /// Only with this value of an argument: its position from 0, and its lower 32 bits.
    pub only: Option<(u8, u32)>,
}

/// A library that is loaded before a program's others.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Preloaded {
    /// Allocates as fast as can be, and never gives memory back.
    Allocator,
    /// Answers questions about paths as before.
    Answers,
    /// Collects small reads and writes in buffers.
    Buffers,
    /// Opens files without O_SYNC and O_DSYNC.
    Durable,
    /// Keeps memory that is unmapped for the next mapping.
    Maps,
    /// Sends and acknowledges TCP at once.
    Sockets,
    /// Cuts waits short that only the clock ends.
    TimeOuts,
    /// Sleeps for a moment at each yield.
    Yields,
}

impl Change {
    /// How the cost is left out.
    #[must_use]
    pub fn means(&self) -> Means {
        match self {
            Self::Patches(..) => Means::PatchedCopy,
            Self::SkippedCalls(_) => Means::SkippedCalls,
            Self::Environment(_) => Means::Environment,
            Self::Library(_) => Means::Library,
            Self::OneCpu => Means::OneCpu,
            Self::NoQuota => Means::NoQuota,
            Self::Twice(..) => Means::Twice,
        }
    }
}

/// A reason why the measurement misleads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hazard {
    /// Stable id (`timed-the-producer`).
    pub id: String,
    /// What it is and what to do about it.
    pub text: String,
}

impl Hazard {
    /// The id of a run that may take several times as long without recording: its threads fight less for a lock while
    /// recording slows them.
    pub const LESS_CONTENDED: &'static str = "less-contended";
}
