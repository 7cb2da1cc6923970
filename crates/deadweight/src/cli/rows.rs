//! The command line of `rows`. Does not read or write anything; see `command/rows`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Turn recordings and reports into tables, for engines that count over thousands of runs.
///
/// There are five: `runs`, `rows` (of ledgers), `findings`, `counts` and `builds`. A run's id is the first half of the SHA-256
/// of its file. What cannot be read becomes a row of `runs` with an `error`; then the exit status is 1, and the others
/// are complete. docs/tables.md describes the columns.
#[derive(Debug, Args)]
pub struct Rows {
    /// Recordings, reports of `--export-json`, directories with both (*.dwt, *.json), or `-` for one on standard
    /// input. The content decides what a file is.
    #[arg(required = true, value_name = "FILE|DIRECTORY")]
    pub inputs: Vec<PathBuf>,
    /// The format.
    #[arg(long, value_name = "FORMAT", default_value = "ndjson")]
    pub format: RowsFormat,
    /// The directory for the tables (a file with --table, and for NDJSON). Default: standard output.
    #[arg(
        short,
        long,
        value_name = "FILE|DIRECTORY",
        default_value = "-",
        hide_default_value = true
    )]
    pub output: PathBuf,
    /// Only this table.
    #[arg(long, value_name = "TABLE")]
    pub table: Option<TableName>,
    /// What was measured, by a name that stays the same from version to version. Default: the name of the process.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// The commit that was measured.
    #[arg(long, value_name = "HASH", default_value = "", hide_default_value = true)]
    pub commit: String,
    /// Stop at the first input that cannot be read.
    #[arg(long)]
    pub strict: bool,
}

/// The formats.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowsFormat {
    /// A JSON object in each line; its first field is the table.
    Ndjson,
    /// A Parquet file for each table.
    Parquet,
    /// An Arrow file for each table. On standard output streams, one after another: the metadata of each has its table.
    Arrow,
}

/// The tables.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableName {
    /// One row for each report.
    Runs,
    /// The rows of ledgers.
    Rows,
    /// Findings.
    Findings,
    /// Counts.
    Counts,
    /// Binaries.
    Builds,
}
