//! The command lines of `archive`, and the options that keep a run. Does not open an archive; see `command/archive`.

use super::Style;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::str::FromStr;

/// Keep reports, and look at kept ones.
///
/// An archive is a file of SQLite, or a database of PostgreSQL for many machines. Its tables are documented in
/// docs/archive.md, for queries of your own. `deadweight --keep -- COMMAND` keeps a run directly.
#[derive(Debug, Args)]
pub struct Archive {
    /// What to do.
    #[command(subcommand)]
    pub verb: ArchiveVerb,
}

/// What to do with an archive.
#[derive(Debug, Subcommand)]
pub enum ArchiveVerb {
    /// Add reports, recordings, results of benchmark programs, or an export.
    Add(ArchiveAdd),
    /// List the kept runs, newest first.
    List(ArchiveList),
    /// Print a kept report.
    Show(ArchiveShow),
    /// Write all runs as lines of JSON, which `archive add` takes: to move or merge archives.
    Export(ArchiveExport),
    /// Remove old runs.
    Prune(ArchivePrune),
    /// Check whether the archive is whole.
    Check(ArchiveCheck),
}

/// Where the archive is.
#[derive(Clone, Debug, Args)]
pub struct ArchivePlace {
    /// The archive: `sqlite:PATH`, a path that ends in .db, or `postgres://USER:PASSWORD@HOST/DATABASE`. Default:
    /// $DEADWEIGHT_ARCHIVE, else ~/.local/share/deadweight/archive.db. A password can also be in $PGPASSWORD.
    #[arg(long = "archive", value_name = "URL")]
    pub url: Option<String>,
}

/// Keeping the run that is measured.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Keeping the report")]
pub struct Keep {
    /// Keep the report in the archive, with commit and branch of the current directory. NAME is the
    /// workload: runs of the same workload form a series. Default: the command without the program's folder;
    /// in `compare` the name of the side (after NAME and a slash, if one is given).
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub keep: Option<String>,
    /// Keep the recording too (of several traced runs, the last).
    #[arg(long, requires = "keep")]
    pub keep_trace: bool,
    /// The commit that is measured. Default: the one that is checked out in the current directory.
    #[arg(long, value_name = "COMMIT", requires = "keep")]
    pub commit: Option<String>,
    /// Where the archive is.
    #[command(flatten)]
    pub place: ArchivePlace,
}

/// Add to the archive.
///
/// A run is known by its content: adding it again changes nothing. Each benchmark in a result file becomes a run; its
/// times are clean runs, and all of its figures are counts under their units.
#[derive(Debug, Args)]
pub struct ArchiveAdd {
    /// Reports of `--export-json` (*.json), recordings (*.dwt), results of benchmark programs (Go's text, JSON of Google
    /// Benchmark, criterion or hyperfine; a directory of criterion's), or files of `archive export`;
    /// `-` is such an export on standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The workload. Default: the command without the program's folder, or the name of the benchmark. Of several benchmarks
    /// in one file, each is NAME/BENCHMARK.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// The commit that was measured. Default: the one that is checked out in the current directory, unless it was made
    /// after the file.
    #[arg(long, value_name = "COMMIT")]
    pub commit: Option<String>,
    /// Keep recordings too, not only their reports.
    #[arg(long)]
    pub keep_trace: bool,
    /// Where the archive is.
    #[command(flatten)]
    pub place: ArchivePlace,
    /// Print nothing.
    #[arg(short, long)]
    pub quiet: bool,
}

/// List the kept runs.
#[derive(Debug, Args)]
pub struct ArchiveList {
    /// Only of this workload.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Only of commits that begin so.
    #[arg(long, value_name = "COMMIT")]
    pub commit: Option<String>,
    /// The newest N; default: 50, in JSON all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// Print JSON: rows of the table `runs`.
    #[arg(long)]
    pub json: bool,
    /// Where the archive is.
    #[command(flatten)]
    pub place: ArchivePlace,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// Print a kept report, as `deadweight report` does.
#[derive(Debug, Args)]
pub struct ArchiveShow {
    /// The run: its id, or the first letters of it.
    pub id: String,
    /// Print the JSON of the report.
    #[arg(long)]
    pub json: bool,
    /// Write the recording to FILE, if it was kept; `-` is standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub trace: Option<PathBuf>,
    /// Also print the ledger of CPU time, if the report has one.
    #[arg(long)]
    pub cpu: bool,
    /// Also list the N functions with the most CPU time.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    pub top: Option<u16>,
    /// Also list each kind of hidden cost, and details of the recording.
    #[arg(long)]
    pub verbose: bool,
    /// Where the archive is.
    #[command(flatten)]
    pub place: ArchivePlace,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// Write all runs as lines of JSON.
#[derive(Debug, Args)]
pub struct ArchiveExport {
    /// The file to write. Default: standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub output: PathBuf,
    /// With the kept recordings.
    #[arg(long)]
    pub traces: bool,
    /// Where the archive is.
    #[command(flatten)]
    pub place: ArchivePlace,
}

/// Remove old runs: those that every given condition holds for.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub struct ArchivePrune {
    /// Measured longer ago than this: 90d, 12w, 2y.
    #[arg(long, value_name = "TIME", group = "which")]
    pub older_than: Option<Age>,
    /// Not among the last N of its workload.
    #[arg(long, value_name = "N", group = "which")]
    pub keep_last: Option<u32>,
    /// Only of this workload.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Remove nothing; print what would be removed.
    #[arg(long)]
    pub dry_run: bool,
    /// Where the archive is.
    #[command(flatten)]
    pub place: ArchivePlace,
}

/// Check whether the archive is whole.
///
/// Reads all of it: the database's own check, references between tables, and each report against its id. The exit status
/// is 0 if nothing is wrong, 1 if something is.
#[derive(Debug, Args)]
pub struct ArchiveCheck {
    /// Where the archive is.
    #[command(flatten)]
    pub place: ArchivePlace,
}

/// How long ago, in seconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Age(pub i64);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const DAY: i64 = 86_400;
        const UNITS: [(&str, i64); 5] =
            [("h", 3_600), ("d", DAY), ("w", 7 * DAY), ("m", 30 * DAY), ("y", 365 * DAY)];
        let read = || {
            let (unit, seconds) = UNITS.iter().find(|(unit, _)| text.ends_with(unit))?;
            let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
            Some(Self(i64::from(number) * seconds))
        };
        read().ok_or("give a whole number of h, d, w, m (30 days) or y, such as 90d".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_unit() {
        assert_eq!("90d".parse(), Ok(Age(90 * 86_400)));
        assert_eq!("2y".parse(), Ok(Age(2 * 365 * 86_400)));
        for wrong in ["", "90", "d", "-1d", "1.5d", "90 days", "99999999999y"] {
            assert!(wrong.parse::<Age>().unwrap_err().contains("90d"), "{wrong}");
        }
    }
}
