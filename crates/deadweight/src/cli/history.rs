//! The command line of `history`.

use super::{ArchivePlace, Style};
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

/// Show how a workload's time changed from commit to commit, and which row of the ledger explains each change.
///
/// Reads the runs that `--keep` and `archive add` have kept. Without a workload: what there is. Runs of one commit are pooled:
/// the median of all their runs without tracing. Runs of a changed source count only for a commit that has no other.
/// Runs of different machines are not compared: the machine that measured last is shown.
///
/// A change is found once it has lasted for 3 commits. It must be 2 % at least, of the total or of a row.
///
///   deadweight history                             all workloads
///
///   deadweight history 'sort big.txt'              one, commit by commit
///
///   deadweight history 'sort big.txt' --row allocation
///
///   deadweight history 'sort big.txt' --bisect --build 'make -j4'
#[derive(Clone, Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct History {
    /// The workload, as in `deadweight archive list`.
    pub workload: Option<String>,
    /// Show this row of the ledger instead of the total: `allocation`, `system calls`.
    #[arg(long, value_name = "ROW", requires = "workload")]
    pub row: Option<String>,
    /// Show the machine with this number: 1 is the one that measured last.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "workload")]
    pub machine: usize,
    /// Show only runs that were measured on this branch.
    #[arg(long, value_name = "NAME", requires = "workload")]
    pub branch: Option<String>,
    /// Show commits from this date on (2026-10-03), or of this long (90d, 12w, 2y). Earlier ones are considered, but not shown.
    #[arg(long, value_name = "DATE", requires = "workload")]
    pub since: Option<Since>,
    /// Show the last N commits; default: 30, in JSON all, in a page 2000.
    #[arg(long, value_name = "N", requires = "workload", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// Print the `git bisect` commands that find the commit of the last slowdown: for a history in which not every commit
    /// was measured, or a change that may be at several commits. Run them in the repository.
    #[arg(long, requires = "workload", conflicts_with_all = ["json", "html", "row", "since", "last"])]
    pub bisect: bool,
    /// With --bisect: the change at this commit, whatever it is.
    #[arg(long, value_name = "COMMIT", requires = "bisect")]
    pub at: Option<String>,
    /// With --bisect: the command that builds the program. Default: by the files in the repository, such as
    /// `cargo build --release`; else `make`.
    #[arg(long, value_name = "COMMAND", requires = "bisect")]
    pub build: Option<String>,
    /// Write a page with an interactive chart to FILE; `-` is standard output.
    #[arg(long, value_name = "FILE", requires = "workload", conflicts_with_all = ["json", "row"])]
    pub html: Option<PathBuf>,
    /// Print JSON: points, series and events; without a workload, a list of such summaries.
    #[arg(long)]
    pub json: bool,
    /// Where the archive is.
    #[command(flatten)]
    pub place: ArchivePlace,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}

/// From when on: a moment, or how long ago, in seconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// The beginning of a day in UTC, since 1970.
    Moment(i64),
    /// This long before now.
    Ago(i64),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(age) = text.parse::<super::Age>() {
            return Ok(Self::Ago(age.0));
        }
        let day = || {
            let numbers: Result<Vec<i64>, _> = text.split('-').map(str::parse).collect();
            let [year, month, day] = numbers.ok()?[..] else { return None };
            let valid = (1970..=9999).contains(&year)
                && (1..=12).contains(&month)
                && (1..=31).contains(&day);
            valid.then(|| Self::Moment(days(year, month, day) * 86_400))
        };
        day().ok_or("give a date such as 2026-10-03, or a time such as 90d, 12w or 2y".into())
    }
}

/// The days from 1970-01-01 to this date. Years begin in March here, so that a leap day ends one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_a_date_or_an_age() {
        assert_eq!("1970-01-02".parse(), Ok(Since::Moment(86_400)));
        assert_eq!("2000-02-29".parse(), Ok(Since::Moment(951_782_400)));
        assert_eq!("2026-11-26".parse(), Ok(Since::Moment(1_795_651_200)));
        assert_eq!("12w".parse(), Ok(Since::Ago(12 * 7 * 86_400)));
        for wrong in ["", "yesterday", "2026-13-01", "2026-10", "1.2.2026", "9999999999-1-1"] {
            assert!(wrong.parse::<Since>().unwrap_err().contains("2026-10-03"), "{wrong}");
        }
    }
}
