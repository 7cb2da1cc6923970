//! What is to be run and recorded, as a caller asks for it. Not for running it.

use super::Substitute;
use deadweight_trace::probe::ProbeKind;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// What to run, and how.
#[derive(Debug, Default)]
pub struct Request {
    /// The command and its arguments. Found like `execvp` does: in `PATH` unless it has a slash.
    pub argv: Vec<OsString>,
    /// Its standard input.
    pub stdin: Stream,
    /// Its standard output.
    pub stdout: Stream,
    /// Its standard error.
    pub stderr: Stream,
    /// Where to run it; none for our own directory.
    pub dir: Option<PathBuf>,
    /// Places in binaries to watch, beside what the plan records.
    pub probes: Vec<Probe>,
    /// Places whose hits are counted. That slows the program down.
    pub counts: Vec<Count>,
    /// For how long they are counted if there are hits enough to know proportions; none: 10 s.
    pub counting: Option<Duration>,
    /// A copy that takes a binary's place.
    pub substitute: Option<Substitute>,
    /// After so long a run without tracing is ended, by force.
    pub limit: Option<Duration>,
}

/// One of the three standard streams of a program.
#[derive(Debug, Default)]
pub enum Stream {
    /// Ours.
    #[default]
    Inherit,
    /// This file, at its present offset.
    File(File),
}

/// A place in a binary that makes a [`RawKind::Probe`](crate::RawKind::Probe) when reached.
#[derive(Clone, Debug)]
pub struct Probe {
    /// What the events are called.
    pub name: String,
    /// The binary.
    pub path: PathBuf,
    /// Offset in the file of an instruction's first byte.
    pub file_offset: u64,
    /// Its address in memory, where that is the same in each run.
    pub fixed: Option<u64>,
    /// What to note.
    pub args: [Register; 2],
    /// Whether to take the user stack too.
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

/// A place in a binary whose hits are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// What a hit means.
    pub mark: ProbeKind,
    /// The binary.
    pub path: PathBuf,
    /// Offset in the file of a function's first byte.
    pub file_offset: u64,
    /// The arguments whose product is the number of bytes requested for; none for no bytes.
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
