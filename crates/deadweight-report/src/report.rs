//! What views, archive and gate may see: the result of a run, in the JSON schema of `--export-json`.
//!
//! Field names are a contract: additions are fine, renames need a new `schema`. Times are integer
//! nanoseconds; shares are of the wall time, 0 to 1.

mod read;
use deadweight_trace::patch::Patch;
use serde::{Deserialize, Serialize};

/// The version of this form.
pub const SCHEMA: u32 = 1;

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of deadweight.
    pub deadweight: String,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// Whose wall time was divided.
    pub subject: SubjectInfo,
    /// How the command ended.
    pub exit: ExitInfo,
    /// How often it ran and how long.
    pub runs: Runs,
    /// How much of it could be recorded.
    #[serde(default, skip_serializing_if = "Recording::is_whole")]
    pub recording: Recording,
    /// The function that the ledger is restricted to (`--in`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Inside>,
    /// Which part of the whole command's wall time the ledger divides, 0 to 1, where that is not
    /// all of it (`--of`, `--in`) and clean runs were made of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<f64>,
    /// The wall time that the ledger divides: of the traced run, or the clean median under `-r`.
    pub wall_ns: u64,
    /// The part of `wall_ns` that a quiet, untraced run would take: without what recording and
    /// other programs took. Savings are shares of it.
    #[serde(default)]
    pub net_ns: u64,
    /// The rows. Their `ns` add up to `wall_ns` exactly.
    pub ledger: Vec<Row>,
    /// All tasks' CPU time, by the same accounts (`--cpu`); adds up to `cpu_ns`.
    #[serde(default)]
    pub cpu_ledger: Vec<Row>,
    /// CPU time of all of the subject's tasks.
    #[serde(default)]
    pub cpu_ns: u64,
    /// Hidden costs, best first.
    pub findings: Vec<Finding>,
    /// Allocations, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations: Option<Allocations>,
    /// Findings that removing their cost has refuted (`--prove`): their `proofs` say why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<Finding>,
    /// Why the measurement itself may mislead.
    pub hazards: Vec<Hazard>,
    /// The processes of a pipeline, or the program and who it waited for.
    pub stages: Vec<Stage>,
    /// Functions with the most CPU time on the path.
    #[serde(default)]
    pub top: Vec<TopFunction>,
    /// The program's own work by the functions whose machine code does it, largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<FunctionWork>,
    /// What was not as it should be in recording or analysis.
    pub warnings: Vec<String>,
}

/// A function's machine code, and what of the row `net-work` is spent there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionWork {
    /// Its name.
    pub function: String,
    /// By samples, in ns.
    pub ns: u64,
    /// Functions seen inlined in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<String>,
    /// Small functions that it was seen to call, and that could have been inlined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
}

/// How much of the runs could be recorded on that machine by that user. Not written where nothing
/// is lacking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The rung (`root`, `user`, `stops`); empty where it is not known.
    pub rung: String,
    /// Why it is not a higher one.
    pub why: String,
    /// What a higher one would tell, most important first.
    pub lacks: Vec<String>,
    /// Whether it joined a process that ran already: then the wall time is that of the recording.
    pub attached: bool,
}

impl Recording {
    /// Whether it is like any other of the highest rung.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lacks.is_empty() && !self.attached
    }
}

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

/// Whose wall time was divided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// What made it, or empty.
    #[serde(default)]
    pub producer: String,
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExitInfo {
    /// Exit code.
    pub code: i32,
    /// Signal that ended it.
    pub signal: Option<i32>,
}

/// How often the command ran, and how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// Without tracing.
    pub clean: CleanRuns,
    /// With.
    pub traced: TracedRuns,
}

/// Runs without tracing. All zero if there was none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median.
    pub median: u64,
    /// Lower end.
    pub low: u64,
    /// Upper end.
    pub high: u64,
}

/// Runs with tracing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracedRuns {
    /// How many.
    pub count: u32,
    /// How much longer they took than the clean median, as a share of it; without clean runs, the
    /// observer's calibrated share of the traced wall time.
    pub overhead_share: f64,
    /// Median wall time.
    #[serde(default)]
    pub wall_ns: u64,
    /// Records taken, all traced runs.
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
    /// The same by the kernel's own count.
    #[serde(default)]
    pub rusage_ns: u64,
    /// How often a task of the command was given a CPU, in the last traced run. The kernel begins
    /// to charge a woken task some microseconds earlier than it runs.
    #[serde(default)]
    pub switches: u64,
}

/// A row of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// A few words beside it (`read ×4 003, 1 byte each`; `for xxd`).
    #[serde(default)]
    pub note: String,
    /// What `ns` would be by each traced run alone, in no particular order; empty if there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_ns: Vec<u64>,
}

/// How an amount is known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Both ends are in the trace.
    #[default]
    Exact,
    /// Apportioned by samples.
    Sampled,
}

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

/// A reason why the measurement misleads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hazard {
    /// Stable word (`timed-the-producer`).
    pub id: String,
    /// What and what to do about it.
    pub text: String,
}

/// One process of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Blocked for room in its output.
    #[serde(default)]
    pub output_wait_ns: u64,
}

/// A function with its share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
