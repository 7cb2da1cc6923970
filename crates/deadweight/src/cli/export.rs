//! The command lines of `export`, with what each format keeps and loses, and of `import`.
//!
//! Does not write any format; see `deadweight-export`.

use super::AskDebuginfod;
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
    /// Whether debuginfod servers are asked.
    #[command(flatten)]
    pub debuginfod: AskDebuginfod,
}

/// Turn a recording of another tool into one of deadweight.
///
/// Files of `perf record` become recordings with the rows that they can support; the rest is *not recorded*. From samples
/// of a clock (`perf record -e cpu-clock -g`) or of CPU cycles comes the CPU time with its stacks; with
/// `-a -e sched:sched_switch,sched:sched_waking` also waits and wakers, with `raw_syscalls:*` system calls. Import on the
/// machine that recorded, before its programs change: names are read from the binaries.
#[derive(Debug, Args)]
pub struct Import {
    /// The file of `perf record`.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The file of the recording.
    #[arg(short, long, value_name = "TRACE", default_value = "deadweight.dwt")]
    pub output: PathBuf,
}

/// The formats.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Folded stacks: inferno-flamegraph, flamegraph.pl, speedscope. Keeps: the wall time in ns by row, process, thread
    /// name, functions and event; the sum is the wall time. Loses: order in time, lines, CPU time beside the path,
    /// intervals, findings.
    Folded,
    /// JSON for speedscope.app. Keeps: wall time, CPU time and time without a CPU as three profiles in ns, each the
    /// ledger's to the nanosecond; lines. Loses: order in time, intervals, findings.
    Speedscope,
    /// A gzipped profile.proto for `go tool pprof`. Keeps: the values `path`, `cpu` and `off_cpu` in ns, the first two
    /// the ledgers' to the nanosecond; rows, processes and threads as labels; lines, inlined functions. Loses: order in
    /// time, intervals, findings, allocations (a recording does not count them).
    Pprof,
    /// JSON for profiler.firefox.com. Keeps: each sample with functions and kernel functions, CPU use over time, calls
    /// and waits with their stack and waker, the path; times to the nanosecond, but totals of stacks are numbers of
    /// samples, not the ledger's. Loses: lines, rows of the program's own time, page faults, findings.
    Firefox,
    /// A protobuf trace for ui.perfetto.dev. Keeps: which thread had each CPU, thread states, calls, page faults and
    /// waits with an arrow from the waker, samples with lines, and the path, which is as long as the wall time to the
    /// nanosecond. Loses: rows of the program's own time, tracing overhead (part of what it is in), findings; states of
    /// other programs, which count as asleep.
    Perfetto,
    /// SARIF 2.1.0 for code scanning. Keeps: each finding at file and line, with its saving, how that is known, the
    /// advice, and the text of `explain`. Loses: the ledger, call chains. Without a source file, the place is the binary.
    Sarif,
    /// JSON for github-action-benchmark, tool `customSmallerIsBetter`. Keeps: the wall time and each row in ns, with
    /// its interval and note. Loses: everything else.
    GithubActionBenchmark,
    /// The ledger for spreadsheets. Keeps: rows in ns, shares, intervals, notes; they add up to the last line. Loses:
    /// everything else.
    Csv,
    /// The ledger as a table for issues. Keeps: rows with rounded times, shares, intervals, notes. Loses: nanoseconds,
    /// everything else.
    Markdown,
}
