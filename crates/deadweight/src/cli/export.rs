//! The command line of `export`, with what each format keeps and loses.
//!
//! Does not write any format; see `deadweight-export`.

use super::values::Of;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Write a recording as a file that other tools open.
///
/// All of them show the traced run: times include what tracing cost, in the row *tracing*. Of a process's own time,
/// stacks are known by samples. A call or page fault whose stack was not taken counts as those of its kind whose stack
/// was. Control characters in names are replaced.
#[derive(Debug, Args)]
pub struct Export {
    /// The format.
    #[arg(value_name = "FORMAT")]
    pub format: Format,
    /// The recording.
    #[arg(value_name = "TRACE")]
    pub file: PathBuf,
    /// The file to write. Default: standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub output: PathBuf,
    /// Export the wall time of this process inside the command; `NAME:2` is the second process of that name.
    #[arg(long, value_name = "NAME[:K]")]
    pub of: Option<Of>,
}

/// The formats.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Folded stacks, for inferno-flamegraph, flamegraph.pl, speedscope. Keeps: the wall time by row, process, thread
    /// name, functions and event, in ns; the sum is the wall time. Loses: time order, lines, CPU time beside the path,
    /// intervals, findings.
    Folded,
}
