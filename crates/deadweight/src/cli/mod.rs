//! The command line: clap's definitions and the help texts.
//!
//! - In: words.
//! - Out: a verb with its options, each value checked; help, man page and completions from the same definitions.
//! - Must not know: how a verb is carried out, or anything of the machine; see `command`.

mod archive;
mod ci;
mod export;
mod history;
mod hyperfine;
mod pictures;
mod prove;
mod rows;
mod scan;
mod values;

pub use archive::{
    Age, Archive, ArchiveAdd, ArchiveExport, ArchiveList, ArchivePlace, ArchivePrune, ArchiveShow,
    ArchiveVerb, Keep,
};
pub use ci::Ci;
use clap::{Args, Parser, Subcommand, ValueEnum};
use deadweight_report::benchmarks::keys::Key;
pub use export::{Export, Format, Import};
pub use history::{History, Since};
pub use hyperfine::HyperfineOptions;
pub use pictures::{Drawing, Pictures};
pub use prove::{Classes, Prove};
pub use rows::{Rows, RowsFormat, TableName};
pub use scan::Scan;
use std::ffi::OsString;
use std::path::PathBuf;
pub use values::{Ignore, Moment, Of, Runs, Size, Sort, Stay, TimeUnit};

const EXAMPLES: &str = "\
Examples:
  deadweight -- ls -R /usr/share          run once, traced: where its time went
  deadweight -r 30 -- ./prog < input      time from 30 clean (untraced) runs, reasons from traced runs
  deadweight --prove -- ./prog < input    the same, then measure the savings without the blamed code
  deadweight 'xxd -r -p hex | ./prog'     a pipeline: each stage, and what it waited for
  deadweight --of prog -- cargo run       the ledger of the program, not of the tool that starts it
  deadweight --pid 4711 --for 5s          attach to a running program for 5 s
  deadweight compare './old < in' './new < in'   which is faster, and which row explains it
  deadweight explain tiny-reads           what a finding means and what to do about it

Reading the ledger:
  Each row is a part of the wall time (the elapsed time), and the rows add up to it exactly. Time
  that is not known has a row of its own. 'net work' is the program's own code without the costs
  that have a row; '± 1.8 %' is its interval in shares of the wall time. Findings may overlap; rows
  never do. A saving is 'exact' if this very time was measured, and an 'estimate' if it is predicted:
  it is a range, comes from samples, or is a part of a time that no run has shown.
  'undisturbed' is the wall time without tracing and without what other programs took. It says 'at
  most' where tracing took 10 % or more of a single run; -r 10 measures it. 'busy', of servers, is
  the same without the time in which there was no request.

Exit status:
  The command's own; 128 + the signal's number if a signal ended it; 127 if it was not found; 126 if
  it could not be executed; 2 if deadweight itself failed.

deadweight does not change the command's input, output, signals or working directory. The report
goes to standard error, or to the file given with -o.";

/// Shows where a program's wall time goes, and which part of it does no work.
#[derive(Debug, Parser)]
#[command(
    name = "deadweight",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "deadweight [OPTIONS] [--] COMMAND [ARGS]...\n       deadweight [OPTIONS] --pid N [--for TIME]\n       deadweight VERB ...",
    subcommand_help_heading = "Verbs",
    subcommand_value_name = "VERB",
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
pub struct Cli {
    /// The verb, if the first argument is one.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The options of a run, which needs no verb.
    #[command(flatten)]
    pub run: Run,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command and print its ledger (as `deadweight -- COMMAND` does).
    Run(Box<Run>),
    /// Run a command once and write the recording to a file.
    Record(Record),
    /// Print the report of a recording.
    Report(Report),
    /// Compare commands: is B faster than A, by how much, and which row explains it?
    Compare(Box<Compare>),
    /// Keep reports, and look at kept ones.
    Archive(Archive),
    /// Show how a workload changed from commit to commit, and which row explains it.
    History(Box<History>),
    /// Judge a new version of a program: is it worse than the known one? A gate for CI.
    Ci(Box<Ci>),
    /// Check conditions on existing reports: for scripts and CI.
    Gate(Gate),
    /// Write a recording as a file that other tools open: flame graphs, profiles, traces, tables.
    Export(Export),
    /// Turn recordings and reports of many runs into tables: lines of JSON, Parquet, Arrow.
    Rows(Rows),
    /// Turn a recording of another tool (`perf record`) into one of deadweight.
    Import(Import),
    /// Print what a recording holds, as a summary or as text.
    Dump(Dump),
    /// Explain a cost: what it is, how it is recognised, what it is confused with, what to do.
    Explain(Explain),
    /// Show what may cost time in a binary's machine code, without running it.
    Scan(Scan),
    /// Check what can be recorded on this machine, and how to record the rest.
    Doctor(Doctor),
    /// Print the man page or shell completions.
    Generate(Generate),
}

/// Run a command and print its ledger.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("repeating").multiple(true))]
pub struct Run {
    /// Repeat the command: N clean (untraced) runs give the time, some traced runs give the reasons.
    /// `auto` repeats until the median is known to ±2 %, or for about 3 seconds.
    #[arg(short, long, value_name = "N|auto", conflicts_with = "pid", group = "repeating")]
    pub runs: Option<Runs>,
    /// Warm-up runs, which are not counted.
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "repeating",
        conflicts_with = "pid"
    )]
    pub warmup: u32,
    /// Continue when a run fails: with any exit code, or with one of these (`-i=1,2`).
    #[arg(short, long, requires = "repeating", conflicts_with = "pid", num_args = 0..=1, require_equals = true, value_name = "CODES",
        default_missing_value = "all-non-zero")]
    pub ignore_failure: Option<Ignore>,
    /// Whether savings are measured.
    #[command(flatten)]
    pub prove: Prove,
    /// A running program.
    #[command(flatten)]
    pub join: Join,
    /// What to show and where.
    #[command(flatten)]
    pub view: View,
    /// Whether to keep the report.
    #[command(flatten)]
    pub keep: Keep,
    /// Write deadweight's own failure to FILE and not to standard error, which is the program's: for callers that
    /// leave the streams alone.
    #[arg(long, value_name = "FILE", hide = true)]
    pub failure_to: Option<PathBuf>,
    /// The command. A single argument with spaces, pipes or redirections goes through `/bin/sh`.
    #[arg(
        required_unless_present_any = ["pid", "list_proofs"],
        trailing_var_arg = true,
        value_name = "COMMAND",
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub command: Vec<OsString>,
}

/// Attaching to a running program.
#[derive(Clone, Debug, Args)]
pub struct Join {
    /// Attach to the process with this ID, with all its threads and children, until it ends, until
    /// the time of --for is over, or until Ctrl-C. As root, deadweight does not stop it.
    #[arg(short, long, value_name = "N", conflicts_with = "command",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// How long to stay attached with --pid, such as 5s or 300ms; a plain number is seconds.
    #[arg(long = "for", value_name = "TIME", requires = "pid", conflicts_with = "command")]
    pub time: Option<Stay>,
}

/// What of a report to show, where, and how.
#[derive(Clone, Debug, Args)]
pub struct View {
    /// Report on this process inside the command; `NAME:2` is the second process of that name.
    #[arg(long, value_name = "NAME[:K]")]
    pub of: Option<Of>,
    /// Divide only the time under this function (its callees included). The last parts of its name
    /// are enough (`parse`). With `-r`, one more run counts its calls: time, bytes and allocations of each.
    #[arg(long = "in", value_name = "FUNCTION")]
    pub inside: Option<String>,
    /// Also show why the hottest loops (with `--in`: those under the function) take their time: the time of a turn and what
    /// its instructions need, what samples wait for with the addresses of their memory, and the signs of each reason.
    #[arg(long)]
    pub why: bool,
    /// Also print a ledger of the CPU time of all threads.
    #[arg(long)]
    pub cpu: bool,
    /// Also list the N functions with the most CPU time.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    pub top: Option<u16>,
    /// Also list each kind of hidden cost (found, ruled out, or not checkable in this run, and why), and details of
    /// the recording that rarely matter.
    #[arg(long)]
    pub verbose: bool,
    /// Ask Go's compiler why it did not inline a function. This builds its package again (with
    /// `-gcflags=-m=2`, only into Go's build cache), if you own the source and it is under this directory.
    #[arg(long)]
    pub explain_inlining: bool,
    /// Write the report to FILE instead of standard error; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the report as JSON to FILE; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Pages and drawings.
    #[command(flatten)]
    pub pictures: Pictures,
    /// Whether debuginfod servers are asked.
    #[command(flatten)]
    pub debuginfod: AskDebuginfod,
    /// Do not print the report; only write what other options ask for.
    #[arg(short, long)]
    pub quiet: bool,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// Whether debuginfod servers are asked.
#[derive(Copy, Clone, Debug, Args)]
pub struct AskDebuginfod {
    /// Do not ask the debuginfod servers of DEBUGINFOD_URLS. If that variable is set, they are asked for the debug
    /// information of stripped programs and libraries, for up to 30 s, after the recording.
    #[arg(long)]
    pub no_debuginfod: bool,
}

/// How to print for people.
#[derive(Clone, Debug, Args)]
pub struct Style {
    /// When to use colours: `always`, `never`, or `auto` (on a terminal, unless NO_COLOR is set).
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: Color,
    /// The same as `--color never`.
    #[arg(long, conflicts_with = "color")]
    pub no_color: bool,
    /// Width of the output in columns; default: the terminal's width, or 80.
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..))]
    pub width: Option<u16>,
}

/// When to use colours.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Even into a file.
    Always,
    /// Never.
    Never,
}

/// Run a command once and write the recording to a file.
#[derive(Debug, Args)]
pub struct Record {
    /// The file of the recording.
    #[arg(short, long, value_name = "FILE", default_value = "deadweight.dwt")]
    pub output: PathBuf,
    /// The largest size of the recording (500K, 20M, 2G). Later events are left out, and the report
    /// says so.
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<Size>,
    /// Do not say where the recording is.
    #[arg(short, long)]
    pub quiet: bool,
    /// A running program.
    #[command(flatten)]
    pub join: Join,
    /// The command. A single argument with spaces, pipes or redirections goes through `/bin/sh`.
    #[arg(required_unless_present = "pid", trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Print the report of a recording, or a report of `--export-json`.
#[derive(Debug, Args)]
pub struct Report {
    /// The recording or report; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What to show and where. Without `-o`, the report goes to standard output.
    #[command(flatten)]
    pub view: View,
}

/// Compare commands: is B faster than A, by how much, and which row explains it?
///
/// A single command is timed. Several commands alternate (A B B A ...): clean (untraced) runs first, traced
/// runs after. Results of benchmark programs are compared row by row: Go's text (what benchstat prints), JSON of
/// Google Benchmark, criterion (sample.json, or a directory of them) and hyperfine. The exit status is 0 if
/// nothing is slower than in A, 1 if something is slower, 3 if there are too few runs to tell, 2 on errors.
#[derive(Clone, Debug, Args)]
pub struct Compare {
    /// First the reference (A), then what to compare with it: commands in quotes, reports of
    /// `--export-json` (*.json), recordings (*.dwt), or result files of benchmark programs.
    #[arg(required = true, num_args = 1.., value_name = "SIDE")]
    pub sides: Vec<OsString>,
    /// Clean runs of each command. `auto`: until the factor is known to ±0.5 %, or for about 2.5
    /// seconds for each command on average, with at least 10 runs.
    #[arg(short, long, value_name = "N|auto", default_value = "auto")]
    pub runs: Runs,
    /// Warm-up runs of each command, which are not counted.
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub warmup: u32,
    /// hyperfine's options.
    #[command(flatten)]
    pub hyperfine: HyperfineOptions,
    /// A name for a side; give one for each, in order.
    #[arg(short = 'n', long = "name", alias = "command-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Continue when a command fails: with any exit code, or with one of these (`-i=1,2`).
    #[arg(short, long, num_args = 0..=1, require_equals = true, value_name = "CODES",
        default_missing_value = "all-non-zero")]
    pub ignore_failure: Option<Ignore>,
    /// Exit with 1 if this condition holds, else with 0, whichever side is faster. With several conditions: 1 if
    /// one of them holds. Examples: 'B > A * 1.05', 'B.allocation > 10 %', 'B.wall > 3 ms'. In benchmark files
    /// each row is checked: 'B > A * 1.05', 'B.allocs/op > A.allocs/op'.
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<String>,
    /// No traced runs, and so no reasons: only whether the times differ, and by how much. Without this
    /// option, commands that differ are traced after the timing, for half of its time or half a second,
    /// whichever is longer; with --export-json and --fail-if always, for up to 2 seconds each.
    #[arg(long, conflicts_with = "of")]
    pub no_why: bool,
    /// Report on this process inside each command; `NAME:2` is the second process of that name.
    #[arg(long, value_name = "NAME[:K]")]
    pub of: Option<Of>,
    /// Rank the benchmarks of each file: operations per second, and how many times slower than the fastest.
    #[arg(long, help_heading = "Result files of benchmark programs")]
    pub ips: bool,
    /// Keys that form a row: .fullname, .name, /PART of the name, or a key such as pkg.
    #[arg(
        long,
        value_name = "KEY,...",
        value_delimiter = ',',
        help_heading = "Result files of benchmark programs"
    )]
    pub row: Vec<Key>,
    /// Key that forms a column: .file, or any key of --row. The first column is the reference.
    #[arg(long, value_name = "KEY", help_heading = "Result files of benchmark programs")]
    pub col: Option<Key>,
    /// Keys that may differ between compared runs, such as note or goos.
    #[arg(
        long,
        value_name = "KEY,...",
        value_delimiter = ',',
        help_heading = "Result files of benchmark programs"
    )]
    pub ignore: Vec<Key>,
    /// Write the comparisons as JSON to FILE; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Pages and drawings.
    #[command(flatten)]
    pub pictures: Pictures,
    /// Whether to keep the reports of all sides.
    #[command(flatten)]
    pub keep: Keep,
    /// Whether debuginfod servers are asked.
    #[command(flatten)]
    pub debuginfod: AskDebuginfod,
    /// Print nothing; only the exit status has the result.
    #[arg(short, long)]
    pub quiet: bool,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// Check conditions on existing reports: for scripts and CI.
///
/// The exit status is 0 if all conditions hold, 1 if one does not hold, 2 if one cannot be checked. Examples:
///
///   deadweight gate old=old.json new=new.json 'new < old * 1.05' 'new.allocation < 10 %'
///
///   deadweight gate run=run.json 'run.finding = none'
///
///   deadweight gate a=a.json b=b.json 'blame(a, b) = "tiny-reads" > 70 %'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Gate {
    /// Reports of `--export-json` (*.json) or recordings (*.dwt) as NAME=FILE, and conditions.
    #[arg(required = true, value_name = "NAME=FILE|CONDITION")]
    pub words: Vec<String>,
    /// Print nothing; only the exit status has the result.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Print what a recording holds.
#[derive(Debug, Args)]
pub struct Dump {
    /// The recording.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print every event as text, in the form that deadweight's tests use.
    #[arg(long)]
    pub text: bool,
    /// Only the time from A to B, as a recording of its own: it begins with the state at A. Times are
    /// as in the text, or such as `1.5ms`, `20us`.
    #[arg(long, num_args = 2, value_names = ["A", "B"], requires = "text")]
    pub between: Option<Vec<Moment>>,
    /// Only this task (a thread ID).
    #[arg(long, value_name = "N", requires = "text")]
    pub task: Option<u32>,
    /// Also print the addresses of functions that have a name. The text is then the complete recording.
    #[arg(long, requires = "text")]
    pub addresses: bool,
}

/// Explain a cost.
#[derive(Debug, Args)]
pub struct Explain {
    /// The cost, as findings name it. Without it, all costs are listed.
    pub class: Option<String>,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// Check what can be recorded on this machine, and how to record the rest.
///
/// Every feature is tried; none is guessed from a setting. For each missing permission, doctor prints the
/// rows of the ledger that need it and the command that grants it. Then come properties of this machine that
/// make measurements misleading. The exit status is 0 if programs can be recorded here, 2 if not.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON, for scripts.
    #[arg(long)]
    pub json: bool,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// Man page, completions, and the JSON Schema of reports.
#[derive(Debug, Args)]
pub struct Generate {
    /// What to print.
    pub what: Generated,
}

/// What can be generated from these definitions.
#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum Generated {
    /// The manual page, section 1.
    Man,
    /// Completions for bash.
    Bash,
    /// Completions for zsh.
    Zsh,
    /// Completions for fish.
    Fish,
    /// The JSON Schema of `--export-json`: each field with its meaning and unit.
    JsonSchema,
}

#[cfg(test)]
mod tests;
