//! The command line as it is written: clap's definitions and the texts that teach.
//!
//! Nothing is looked up or decided here: what a command line *means* on this machine is the
//! business of `command`. Help, man page and completions all derive from these definitions.

mod hyperfine;
mod values;

use clap::{Args, Parser, Subcommand, ValueEnum};
use deadweight_report::benchmarks::keys::Key;
pub use hyperfine::HyperfineOptions;
use std::ffi::OsString;
use std::path::PathBuf;
pub use values::{Ignore, Moment, Of, Runs, Size, Sort, TimeUnit};

const EXAMPLES: &str = "\
Examples:
  deadweight -- ls -R /usr/share          one run, traced: where its time went
  deadweight -r 30 -- ./prog < input      30 undisturbed runs for the time, traced ones for the why
  deadweight --prove -- ./prog < input    the same, and what is saved without what it blames
  deadweight 'xxd -r -p hex | ./prog'     a pipeline: each stage, and who waited for whom
  deadweight --of prog -- cargo run       weigh the program, not the tool that starts it
  deadweight --pid 4711 --for 5s          a program that runs already: what it does for 5 s
  deadweight compare './old < in' './new < in'   which is faster, and which row explains it
  deadweight explain tiny-reads           what a finding means and what to do about it

Reading the ledger:
  Each row says how much of the wall time (the time on the clock) went where. The rows add up to it
  exactly; what is not known has a row of its own. 'exact' amounts have both ends in the trace,
  others are shares of samples and carry an interval. Findings may overlap, rows never do.

Exit status:
  The command's own; 128 + the signal's number if a signal ended it; 127 if it was not found, 126 if
  it could not be executed; 2 if deadweight itself could not do its work.

The command's input, output, signals and working directory are left alone: the report goes to
standard error, or where -o says.";

/// Weighs a program's wall time and names the part that does no work.
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
    /// A verb, if the first argument was one.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Without a verb: a run.
    #[command(flatten)]
    pub run: Run,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command and weigh it (what `deadweight -- COMMAND` does).
    Run(Box<Run>),
    /// Run a command once and keep the recording for later.
    Record(Record),
    /// The report of a recording.
    Report(Report),
    /// Is B faster than A, by how much, and which row explains it?
    Compare(Box<Compare>),
    /// Ask conditions of reports made before: for scripts and CI.
    Gate(Gate),
    /// What a recording holds, as a summary or as text.
    Dump(Dump),
    /// What a cost is, how it is known, what it is mistaken for, what to do.
    Explain(Explain),
    /// What this machine lets us see, and how to get the rest.
    Doctor(Doctor),
    /// Man page and shell completions, for packagers.
    #[command(hide = true)]
    Generate(Generate),
}

/// Run a command and weigh it.
#[derive(Debug, Args)]
pub struct Run {
    /// Repeat: N runs without tracing give the time, some traced runs give the reasons. `auto`
    /// repeats until the median is known to ±2 %, or for about 3 seconds.
    #[arg(short, long, value_name = "N|auto", conflicts_with = "pid")]
    pub runs: Option<Runs>,
    /// Runs beforehand that do not count.
    #[arg(short, long, value_name = "N", default_value_t = 0, requires = "runs")]
    pub warmup: u32,
    /// Go on repeating when the command fails: at all, or with one of these exit codes (`-i=1,2`).
    #[arg(short, long, requires = "runs", num_args = 0..=1, require_equals = true, value_name = "CODES",
        default_missing_value = "all-non-zero")]
    pub ignore_failure: Option<Ignore>,
    /// Prove the best findings by removal: run a copy of the program that lacks what is blamed
    /// beside it, 9 pairs of runs or more for each place, and say what that saves. It implies `-r auto`:
    /// only for a command that may be repeated. Zeroing, atomics of one thread and bounds checks can
    /// be left out. A copy whose output (standard output, standard error) or exit status differs shows
    /// that the place is needed; files that it writes are not compared, and the last run is the
    /// program's own. The program's file is never changed.
    #[arg(long, conflicts_with = "pid")]
    pub prove: bool,
    /// A program that runs already.
    #[command(flatten)]
    pub join: Join,
    /// What to show and where.
    #[command(flatten)]
    pub view: View,
    /// The command. A single argument with spaces, pipes or redirections goes through `/bin/sh`.
    #[arg(
        required_unless_present = "pid",
        trailing_var_arg = true,
        value_name = "COMMAND",
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub command: Vec<OsString>,
}

/// Joining a program that runs already.
#[derive(Clone, Debug, Args)]
pub struct Join {
    /// In place of a command: join the process with this number, with all its threads and children,
    /// and weigh what it does until it ends, --for is over, or Ctrl-C. It is neither stopped nor changed.
    #[arg(short, long, value_name = "N", conflicts_with = "command",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// With --pid: for how long, such as 5s or 300ms.
    #[arg(long = "for", value_name = "TIME", requires = "pid", conflicts_with = "command")]
    pub time: Option<Moment>,
}

/// What of a report to show, where, and how.
#[derive(Clone, Debug, Args)]
pub struct View {
    /// Weigh this process inside the command; `NAME:2` is the second of that name.
    #[arg(long, value_name = "NAME[:K]")]
    pub of: Option<Of>,
    /// Divide only what was spent under this function; its last parts will do (`parse`). With `-r`,
    /// one more run counts its calls: time, bytes and allocations of each.
    #[arg(long = "in", value_name = "FUNCTION")]
    pub inside: Option<String>,
    /// Also divide the CPU time of all threads, not only the wall time.
    #[arg(long)]
    pub cpu: bool,
    /// Also list the functions with the most time on a CPU.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    pub top: Option<u16>,
    /// Ask Go's compiler why it did not inline a function: builds its package again (with
    /// `-gcflags=-m=2`, into Go's cache only), if the source is yours and under this directory.
    #[arg(long)]
    pub explain_inlining: bool,
    /// Write the report to FILE instead of standard error; `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the report as JSON to FILE; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// No report in words, only what was asked for otherwise.
    #[arg(short, long)]
    pub quiet: bool,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// How to print for people.
#[derive(Clone, Debug, Args)]
pub struct Style {
    /// Colours: `always`, `never`, or `auto`: on a terminal, unless NO_COLOR is set.
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: Color,
    /// The same as `--color never`.
    #[arg(long, conflicts_with = "color")]
    pub no_color: bool,
    /// Columns to print for; otherwise the terminal's, or 80.
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

/// Run a command once and keep the recording.
#[derive(Debug, Args)]
pub struct Record {
    /// Where the recording goes.
    #[arg(short, long, value_name = "FILE", default_value = "deadweight.dwt")]
    pub output: PathBuf,
    /// The recording takes no more room than SIZE (500K, 20M, 2G): later events are then left out, and
    /// the report says so.
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<Size>,
    /// Say nothing about the recording.
    #[arg(short, long)]
    pub quiet: bool,
    /// A program that runs already.
    #[command(flatten)]
    pub join: Join,
    /// The command. A single argument with spaces, pipes or redirections goes through `/bin/sh`.
    #[arg(required_unless_present = "pid", trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The report of a recording.
#[derive(Debug, Args)]
pub struct Report {
    /// The recording.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What to show and where. Without `-o`, the report goes to standard output.
    #[command(flatten)]
    pub view: View,
}

/// Is B faster than A, by how much, and which row explains it?
///
/// One command alone is timed. Several are run by turns, A B B A ..., undisturbed runs first and traced ones after. Results of
/// benchmark programs are compared row by row: Go's text (what benchstat prints), JSON of Google
/// Benchmark, criterion (sample.json, or a directory of them) and hyperfine. The exit status is 0 if
/// nothing is slower than in A, 1 if something is, 3 if that cannot be told, 2 on errors.
#[derive(Clone, Debug, Args)]
pub struct Compare {
    /// The reference, A, and what to compare with it: commands in quotes, reports of
    /// `--export-json` (*.json) or recordings (*.dwt); or files of benchmark programs.
    #[arg(required = true, num_args = 1.., value_name = "SIDE")]
    pub sides: Vec<OsString>,
    /// Undisturbed runs of each. `auto`: until the factor is known to ±0.5 %, or for about 2.5
    /// seconds each, 10 runs at least.
    #[arg(short, long, value_name = "N|auto", default_value = "auto")]
    pub runs: Runs,
    /// Runs of each beforehand that do not count.
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub warmup: u32,
    /// What hyperfine's users know.
    #[command(flatten)]
    pub hyperfine: HyperfineOptions,
    /// What to call a side; in their order.
    #[arg(short = 'n', long = "name", alias = "command-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Go on when a command fails: at all, or with one of these exit codes (`-i=1,2`).
    #[arg(short, long, num_args = 0..=1, require_equals = true, value_name = "CODES",
        default_missing_value = "all-non-zero")]
    pub ignore_failure: Option<Ignore>,
    /// Exit with 1 if this holds, and with 0 if none of these does, whichever is faster. Examples:
    /// 'B > A * 1.05', 'B.allocation > 10 %', 'B.wall > 3 ms'; of benchmark files, any row counts:
    /// 'B > A * 1.05', 'B.allocs/op > A.allocs/op'.
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<String>,
    /// Only whether and by how much: no traced runs, and so no reasons. Otherwise commands that
    /// differ are traced afterwards, for at most half the time that timing took, or half a second;
    /// all are with --export-json and --fail-if, for up to 2 seconds each.
    #[arg(long, conflicts_with = "of")]
    pub no_why: bool,
    /// Weigh this process inside each command; `NAME:2` is the second of that name.
    #[arg(long, value_name = "NAME[:K]")]
    pub of: Option<Of>,
    /// Of benchmark files: how many operations a second, and how many times slower than the fastest.
    #[arg(long, help_heading = "Files of benchmark programs")]
    pub ips: bool,
    /// What makes a row: .fullname, .name, /PART of the name, or a key such as pkg.
    #[arg(
        long,
        value_name = "KEY,...",
        value_delimiter = ',',
        help_heading = "Files of benchmark programs"
    )]
    pub row: Vec<Key>,
    /// What makes a column: .file, or any of these. The first one is what others are compared with.
    #[arg(long, value_name = "KEY", help_heading = "Files of benchmark programs")]
    pub col: Option<Key>,
    /// What may differ between runs that are compared: keys such as note, goos.
    #[arg(
        long,
        value_name = "KEY,...",
        value_delimiter = ',',
        help_heading = "Files of benchmark programs"
    )]
    pub ignore: Vec<Key>,
    /// Write the comparisons as JSON to FILE; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Nothing in words: the exit status tells.
    #[arg(short, long)]
    pub quiet: bool,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// Ask conditions of reports made before: for scripts and CI.
///
/// The exit status is 0 if all hold, 1 if one does not, 2 if one cannot be asked. Examples:
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
    /// Nothing in words: the exit status tells.
    #[arg(short, long)]
    pub quiet: bool,
}

/// What a recording holds.
#[derive(Debug, Args)]
pub struct Dump {
    /// The recording.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Every event, in the form that tests are written in.
    #[arg(long)]
    pub text: bool,
    /// Only from A to B, as a recording of its own: what was going on at A comes first. Times as
    /// the text shows them, or such as `1.5ms`, `20us`.
    #[arg(long, num_args = 2, value_names = ["A", "B"], requires = "text")]
    pub between: Option<Vec<Moment>>,
    /// Only this task (a thread's number).
    #[arg(long, value_name = "N", requires = "text")]
    pub task: Option<u32>,
    /// Also the addresses of functions that have a name: the text is then the whole recording.
    #[arg(long, requires = "text")]
    pub addresses: bool,
}

/// What a cost is.
#[derive(Debug, Args)]
pub struct Explain {
    /// The cost, as findings name it; without one, all are listed.
    pub class: Option<String>,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// What this machine lets us see, and how to get the rest.
///
/// Everything is tried, nothing is guessed from a setting. Each thing that is missing comes with
/// what the ledger would gain by it and the command that grants it; then come properties of this
/// machine that make measuring misleading. The exit status is 0 if programs can be recorded here,
/// 2 if not.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The same as JSON, for scripts.
    #[arg(long)]
    pub json: bool,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// Man page and completions.
#[derive(Debug, Args)]
pub struct Generate {
    /// What to print on standard output.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, String> {
        let words = std::iter::once("deadweight").chain(line.split_whitespace());
        Cli::try_parse_from(words).map_err(|e| e.to_string())
    }

    fn command(line: &str) -> Vec<OsString> {
        parse(line).unwrap().run.command
    }

    #[test]
    fn the_definitions_hold_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_command_starts_after_two_dashes_or_with_the_first_word() {
        assert_eq!(command("-- ls -l"), ["ls", "-l"]);
        assert_eq!(command("ls -l --color"), ["ls", "-l", "--color"]);
        assert_eq!(command("-r 5 ls -r"), ["ls", "-r"]);
        assert_eq!(command("-- record -x"), ["record", "-x"]);
        assert_eq!(command("--top -- ls"), ["ls"]);
        assert_eq!(command("ls -- report"), ["ls", "--", "report"]);
        assert_eq!(command("ls report"), ["ls", "report"]);
    }

    #[test]
    fn proving_is_asked_for() {
        assert!(
            parse("--prove -- ls").unwrap().run.prove && !parse("ls --prove").unwrap().run.prove
        );
        assert!(parse("report f.dwt --prove").unwrap_err().contains("--prove"));
    }

    #[test]
    fn the_first_word_may_be_a_verb() {
        assert!(matches!(parse("run -r auto -- ls").unwrap().verb,
            Some(Verb::Run(r)) if r.runs == Some(Runs::Auto) && r.command == ["ls"]));
        assert!(matches!(parse("report f.dwt --cpu").unwrap().verb,
            Some(Verb::Report(r)) if r.view.cpu));
        assert!(matches!(parse("record -o f -- ls -o").unwrap().verb,
            Some(Verb::Record(r)) if r.command == ["ls", "-o"]));
    }

    #[test]
    fn values_are_checked_where_they_are_given() {
        assert!(parse("-r 0 -- ls").unwrap_err().contains("never run"));
        assert!(parse("-r many -- ls").unwrap_err().contains("`auto`"));
        assert!(parse("-w 3 -- ls").unwrap_err().contains("--runs"));
        assert!(parse("--bogus -- ls").unwrap_err().contains("--bogus"));
        assert!(parse("").is_err());
        assert_eq!("a:2".parse(), Ok(Of { name: "a".into(), number: Some(2) }));
        assert_eq!("a:b".parse(), Ok(Of { name: "a:b".into(), number: None }));
        assert!("a:0".parse::<Of>().is_err() && ":1".parse::<Of>().is_err());
        assert_eq!("1.5ms".parse(), Ok(Moment(1_500_000)));
        assert_eq!("20us".parse(), Ok(Moment(20_000)));
        assert_eq!("20M".parse(), Ok(Size(20 << 20)));
        assert_eq!("100KiB".parse(), Ok(Size(100 << 10)));
        assert!("1".parse::<Size>().is_err() && "-1G".parse::<Size>().is_err());
        assert!("soon".parse::<Moment>().is_err() && "-1s".parse::<Moment>().is_err());
    }
}
