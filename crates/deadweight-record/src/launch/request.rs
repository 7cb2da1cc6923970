//! The request: what to run and what to record. `launch` runs it.

use super::{CallFilter, Placement, Substitute};
use deadweight_trace::probe::ProbeKind;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// What to run, and how.
#[derive(Debug, Default)]
pub struct Request {
    /// The command and its arguments. Found as by `execvp`: in `PATH` unless it has a slash.
    pub argv: Vec<OsString>,
    /// Its standard input.
    pub stdin: Stream,
    /// Its standard output.
    pub stdout: Stream,
    /// Its standard error.
    pub stderr: Stream,
    /// The directory to run it in; none for the recorder's.
    pub dir: Option<PathBuf>,
    /// Probes in binaries, beside those that the plan records.
    pub probes: Vec<Probe>,
    /// Functions whose calls are counted. Counting slows the program down.
    pub counts: Vec<Count>,
    /// How long to count, once there are enough hits to know proportions; none: 10 s.
    pub counting: Option<Duration>,
    /// A copy that replaces a binary during the run.
    pub substitute: Option<Substitute>,
    /// System calls that succeed without happening.
    pub filter: Option<CallFilter>,
    /// Where it runs, if not where the recorder does.
    pub placement: Placement,
    /// Variables of its environment that differ from the recorder's: name and value.
    pub environment: Vec<(OsString, OsString)>,
    /// A run without tracing is killed after this time.
    pub limit: Option<Duration>,
}

/// One of the three standard streams of a program.
#[derive(Debug, Default)]
pub enum Stream {
    /// The recorder's own.
    #[default]
    Inherit,
    /// This file, at its current offset.
    File(File),
}

/// A probe: an address in a binary. Each hit makes a [`RawKind::Probe`](deadweight_trace::raw::RawKind::Probe).
#[derive(Clone, Debug)]
pub struct Probe {
    /// The name of its events.
    pub name: String,
    /// The binary.
    pub path: PathBuf,
    /// Offset in the file of an instruction's first byte.
    pub file_offset: u64,
    /// Its address in memory, where that is the same in each run.
    pub fixed: Option<u64>,
    /// The registers to record.
    pub args: [Register; 2],
    /// Whether to record the user stack too.
    pub stack: bool,
}

/// A register of the probed task.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Register {
    /// None: the argument is 0.
    None,
    /// By its number in the kernel's `perf_regs.h` for this architecture (x86-64: 0 is rax,
    /// 22 is r14).
    Number(u8),
}

/// A function whose calls are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The meaning of a hit.
    pub mark: ProbeKind,
    /// The binary.
    pub path: PathBuf,
    /// Offset in the file of a function's first byte.
    pub file_offset: u64,
    /// The arguments whose product is the number of requested bytes; none for no bytes.
    pub factors: Vec<Argument>,
    /// A hit does not count if this argument is 0.
    pub unless_zero: Option<Argument>,
}

/// An argument of a function, from 0, as its language passes it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// As C does.
    C(u8),
    /// As Go does.
    Go(u8),
}
