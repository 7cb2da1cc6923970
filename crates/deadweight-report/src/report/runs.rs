//! The runs: the command and its subject, how it ended, wall times, and how much could be recorded.
//!
//! Data only. Not for where the time went; see `ledger`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The process whose wall time was divided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectInfo {
    /// Its name (`comm` or the program's file name).
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// Path of the binary.
    pub image: String,
    /// Source language, or empty.
    pub language: String,
    /// Whether it was optimised, if known.
    pub optimised: Option<bool>,
    /// The compiler that produced it, or empty.
    #[serde(default)]
    pub producer: String,
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExitInfo {
    /// Exit code.
    pub code: i32,
    /// Signal that ended it.
    pub signal: Option<i32>,
}

/// How often the command ran, and how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// Without tracing.
    pub clean: CleanRuns,
    /// With tracing.
    pub traced: TracedRuns,
}

/// Runs without tracing. All zero if there was none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CleanRuns {
    /// How many.
    pub count: u32,
    /// Their wall time.
    pub wall_ns: Interval,
    /// Median CPU time in user mode.
    pub user_ns: u64,
    /// Median CPU time in the kernel.
    pub sys_ns: u64,
    /// Largest resident set in bytes.
    pub max_rss: u64,
    /// Every wall time, in order of running.
    #[serde(default)]
    pub each_ns: Vec<u64>,
}

/// A median with its distribution-free 95 % interval.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The median.
    pub median: u64,
    /// Lower end.
    pub low: u64,
    /// Upper end.
    pub high: u64,
}

/// Runs with tracing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TracedRuns {
    /// How many.
    pub count: u32,
    /// How much longer they took than the clean median, as a share of it; without clean runs, the calibrated
    /// tracing overhead as a share of the traced wall time.
    pub overhead_share: f64,
    /// Median wall time.
    #[serde(default)]
    pub wall_ns: u64,
    /// Records, all traced runs.
    #[serde(default)]
    pub records: u64,
    /// Records lost, all traced runs.
    #[serde(default)]
    pub lost: u64,
    /// Clock samples, all traced runs.
    #[serde(default)]
    pub samples: u64,
    /// On-CPU time of the whole command by the timeline, of the last traced run.
    #[serde(default)]
    pub on_cpu_ns: u64,
    /// The same by the kernel's accounting (`getrusage`).
    #[serde(default)]
    pub rusage_ns: u64,
    /// How often a task of the command got a CPU, in the last traced run. The kernel starts charging a woken task some
    /// microseconds before it runs.
    #[serde(default)]
    pub switches: u64,
}

/// How much of the runs this user could record on this machine. Not written if nothing is lacking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// The rung (`root`, `user`, `stops`); empty where it is not known.
    pub rung: String,
    /// Why it is not a higher rung.
    pub why: String,
    /// What a higher rung would show, most important first.
    pub lacks: Vec<String>,
    /// Whether it attached to a running process: then the wall time is that of the recording.
    pub attached: bool,
}

impl Recording {
    /// Whether nothing is lacking: the highest rung, from the program's start.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lacks.is_empty() && !self.attached
    }
}

/// One process of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// From its exec to its end.
    pub alive_ns: u64,
    /// On a CPU.
    pub cpu_ns: u64,
    /// Blocked for input.
    pub input_wait_ns: u64,
    /// Name of the process it mostly waited for, or empty.
    pub waited_for: String,
    /// Blocked because its output was full.
    #[serde(default)]
    pub output_wait_ns: u64,
}
