//! The result of a run, in the JSON schema of `--export-json`.
//!
//! - In: the values that `deadweight-core` computed, or JSON of an earlier run.
//! - Out: [`Report`], the only thing that `compare`, `gate` and the command's views read.
//! - Must not know: how a value was computed, or how it is displayed.
//!
//! The command writes the JSON (`render::json`); `read` reads and checks it.
//!
//! Field names are a contract: new fields are fine, renamed ones need a new `schema`. Times are integer nanoseconds;
//! shares are of the wall time, 0 to 1.

mod checks;
mod counts;
mod findings;
mod ledger;
mod loops;
mod origin;
mod read;
mod runs;
mod service;
mod totals;

pub use checks::{Check, CheckOutcome};
pub use counts::{AllocationSite, Allocations, Calls, CountBasis, Inside, Operation};
pub use findings::{
    Change, Finding, HALF_OF_MEMORY, Hazard, How, Means, Outcome, Preloaded, Proof, Removal, Site,
    SkippedCall,
};
pub use ledger::{Basis, FunctionWork, Row, TopFunction};
pub use loops::{LoopReading, LoopSign, LoopWait, Loops};
pub use origin::{Build, MachineInfo};
pub use runs::{CleanRuns, ExitInfo, Interval, Recording, Runs, Stage, SubjectInfo, TracedRuns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use service::{RequestPart, ServiceInfo};
pub use totals::Count;

/// The version of this form.
pub const SCHEMA: u32 = 1;

/// The JSON Schema (2020-12) of a report: its fields, with their meanings.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of deadweight.
    pub deadweight: String,
    /// The method by which the time was divided: reports with another number cannot be compared row by row. 0 in
    /// reports of versions that did not say.
    #[serde(default)]
    pub method: u32,
    /// The machine that the command ran on.
    #[serde(default, skip_serializing_if = "MachineInfo::is_unknown")]
    pub machine: MachineInfo,
    /// The binaries that code ran in, the subject's first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<Build>,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// The process whose wall time was divided.
    pub subject: SubjectInfo,
    /// How the command ended.
    pub exit: ExitInfo,
    /// How often it ran and how long.
    pub runs: Runs,
    /// How much of the run could be recorded.
    #[serde(default, skip_serializing_if = "Recording::is_whole")]
    pub recording: Recording,
    /// The function that the ledger is restricted to (`--in`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Inside>,
    /// Of a program that serves: its exchanges and the CPU time of one. Its busy time is `net_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceInfo>,
    /// The part of the command's wall time that the ledger divides, 0 to 1, where it is not all of it (`--of`,
    /// `--in`) and the clean runs were of the whole command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<f64>,
    /// The wall time that the ledger divides: of the traced run, or the clean median under `-r`.
    pub wall_ns: u64,
    /// The part of `wall_ns` that an undisturbed, untraced run would take: without tracing overhead and other
    /// programs; of a program that serves, its busy time. Savings are shares of it.
    #[serde(default)]
    pub net_ns: u64,
    /// The rows. Their `ns` add up to `wall_ns` exactly.
    pub ledger: Vec<Row>,
    /// CPU time of all tasks, by the same accounts (`--cpu`); adds up to `cpu_ns`.
    #[serde(default)]
    pub cpu_ledger: Vec<Row>,
    /// CPU time of all of the subject's tasks.
    #[serde(default)]
    pub cpu_ns: u64,
    /// Hidden costs, best first.
    pub findings: Vec<Finding>,
    /// Each cost class: found, ruled out, or not checkable. Of several runs, the shares are of one with the median wall time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// What the subject did, counted: calls, bytes, page faults, births. Not a matter of the clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Count>,
    /// Allocations, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations: Option<Allocations>,
    /// Findings refuted by removing their cost (`--prove`): their `proofs` say why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<Finding>,
    /// Reasons why the measurement itself may mislead.
    pub hazards: Vec<Hazard>,
    /// The processes of a pipeline, or the program and the processes that it waited for.
    pub stages: Vec<Stage>,
    /// Functions with the most CPU time on the path.
    #[serde(default)]
    pub top: Vec<TopFunction>,
    /// The program's own work by the functions whose machine code does it, largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<FunctionWork>,
    /// Why loops take their time, if that was asked (`--why`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops: Option<Loops>,
    /// Problems of the recording or the analysis.
    pub warnings: Vec<String>,
    /// Details of the recording for who examines it; not shown, because no number of the report depends much on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}
