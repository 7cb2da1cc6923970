//! The command line of `ci`.

use super::Style;
use super::values::{Ignore, Of, Runs, Stay};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Judge a new version of a program: is it worse than the known one? A gate for CI.
///
/// Both run alternately, on this machine, in this job. What can be counted comes first: system calls, bytes, page
/// faults, births and allocations do not depend on the clock, so one more of a hundred is seen at once. Times are tested
/// as in `compare`. Anything worse is measured a second time: only what shows again is red. A row of the ledger that grew
/// while another shrank is work that moved. If both are the same binary with the same input, no verdict can come of it,
/// and none is given.
///
/// Limits, and changes that you accept for a reason and a time, are in deadweight.toml; docs/ci.md describes it. In a job
/// of GitHub Actions, regressions are annotated at their lines, and the job's summary is written.
///
/// The exit status is 0 if nothing is worse, 1 if something is, 2 if it cannot be judged.
///
///   deadweight ci --base ./old/app --head ./new/app -- --input big.json
///
///   deadweight ci                                  all workloads of deadweight.toml
#[derive(Clone, Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Ci {
    /// The version that is known: a command in quotes, or a binary.
    #[arg(long, value_name = "COMMAND", requires = "head")]
    pub base: Option<OsString>,
    /// The version to be judged.
    #[arg(long, value_name = "COMMAND", requires = "base")]
    pub head: Option<OsString>,
    /// The workload: a name for --base and --head, whose limits in the file apply; or which of the file to run.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// The file of rules. Default: deadweight.toml, if there is one.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Runs of each without tracing. `auto`: until the factor is known to ±0.5 %, or for half of --budget.
    #[arg(short, long, value_name = "N|auto", default_value = "auto")]
    pub runs: Runs,
    /// Warm-up runs of each, which are not counted.
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub warmup: u32,
    /// About how long the measurement of a workload may take. What is suspect is measured again, for as long. Ten
    /// runs of each are made in any case.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub budget: Stay,
    /// Continue when a command fails: with any exit code, or with one of these (`-i=1,2`).
    #[arg(short, long, num_args = 0..=1, require_equals = true, value_name = "CODES",
        default_missing_value = "all-non-zero")]
    pub ignore_failure: Option<Ignore>,
    /// Judge this process inside each command; `NAME:2` is the second process of that name.
    #[arg(long, value_name = "NAME[:K]")]
    pub of: Option<Of>,
    /// First measure how much the layout in memory alone changes the base's time: with N sizes of the environment, which
    /// moves the stack, and as many link orders if --relink is given. No smaller growth of the time counts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub layout: Option<u32>,
    /// With --layout: a shell command that links the base anew, in an order that depends on $DEADWEIGHT_SEED
    /// (lld: `-Wl,--shuffle-sections=*=$DEADWEIGHT_SEED`). At the end it is run with an empty seed: link as usual then
    /// (`${DEADWEIGHT_SEED:+-Wl,...}`).
    #[arg(long, value_name = "COMMAND", requires = "layout")]
    pub relink: Option<OsString>,
    /// Exit with 2 where the times vary so much that a growth by the limit would not be seen.
    #[arg(long)]
    pub strict: bool,
    /// Write a comment for the pull request (Markdown) to FILE.
    #[arg(long, value_name = "FILE")]
    pub comment: Option<PathBuf>,
    /// Write the regressions as SARIF 2.1.0 to FILE.
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write the judgements as JSON to FILE; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Print nothing; only the exit status and files have the result.
    #[arg(short, long)]
    pub quiet: bool,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
    /// Arguments for both versions.
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<OsString>,
}
