//! One run as the data of its drawings: lanes, path, waits, CPU use and stacks, in a bounded number of parts.
//!
//! - In: one analysed run ([`OneRun`]).
//! - Out: a [`Picture`]. Ten million events and ten give pictures of about the same size: what is too short to be drawn
//!   alone is drawn together with its neighbours, and the picture says from which length on.
//! - Must not know: how it is drawn; see `render`.

mod cells;
mod lanes;
mod stacks;
mod state;
mod tables;
mod usage;
mod waits;

use deadweight_core::{OneRun, WeighError, one_run};
use deadweight_trace::Trace;
use deadweight_trace::syscall::Arch;
use serde::Serialize;
pub use stacks::{Node, Stacks};
pub use state::State;
pub use tables::{CallRate, SourceLine};
pub use usage::Usage;

/// The data of a run's drawings. Times are in ns from the start of the wall time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Picture {
    /// The wall time.
    pub wall_ns: u64,
    /// The CPUs that the program could use.
    pub cpus: u16,
    /// The machine's architecture.
    pub arch: &'static str,
    /// States shorter than this are drawn together.
    pub cell_ns: u64,
    /// The tasks, in order of birth.
    pub lanes: Vec<Lane>,
    /// Tasks that have no lane.
    pub left_out: usize,
    /// The path through the lanes.
    pub path: Vec<Step>,
    /// The longest waits on the path, in order of time.
    pub waits: Vec<Wait>,
    /// Waits on the path that are not listed, and their time together.
    pub more_waits: (usize, u64),
    /// CPU time by row, over time.
    pub usage: Usage,
    /// The wall time by stack.
    pub on_path: Stacks,
    /// The CPU time of all threads by stack.
    pub on_cpu: Stacks,
    /// The source lines with most CPU time.
    pub lines: Vec<SourceLine>,
    /// The CPU time of all source lines that are known.
    pub lines_ns: u64,
    /// The system calls with most time.
    pub calls: Vec<CallRate>,
    /// Texts that cells refer to.
    pub words: Vec<String>,
}

/// A task's life.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Lane {
    /// The name of its process.
    pub name: String,
    /// The process.
    pub pid: u32,
    /// The task.
    pub tid: u32,
    /// Its states, without gaps.
    pub cells: Vec<Cell>,
}

/// Start, length, state (as a number), and the text in `Picture::words` that says more.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell(pub u64, pub u64, pub State, pub u32);

/// A part of the path: start, end, and the lane that it leads through, if that is drawn.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step(pub u64, pub u64, pub Option<usize>);

/// A wait on the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// From when ...
    pub start: u64,
    /// ... to when it is on the path.
    pub end: u64,
    /// Whether the path goes on in another task of the command meanwhile: the time is that task's.
    pub filled: bool,
    /// The task that waited.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its lane, if it has one.
    pub lane: Option<usize>,
    /// What it waited for, in words.
    pub what: String,
    /// What ended it, in words.
    pub by: String,
    /// The task that ended it.
    pub waker: Option<u32>,
    /// Its lane.
    pub waker_lane: Option<usize>,
    /// Whether the waker was concluded from other events.
    pub inferred: bool,
}

/// The picture of the run of a trace, of the process called `of`.
///
/// # Errors
/// As for its report.
pub fn of_trace(trace: &Trace, of: Option<&str>) -> Result<Picture, WeighError> {
    one_run(trace, of, picture)
}

/// The picture of an analysed run.
#[must_use]
pub fn picture(run: &OneRun<'_, '_>) -> Picture {
    let subject = &run.path().subject;
    let mut texts = cells::Texts::default();
    let chosen = lanes::Chosen::of(run);
    let cell_ns = chosen.cell_ns(subject.wall().0);
    let lanes = chosen.lanes(run, cell_ns, &mut texts);
    let (waits, more_waits) = waits::longest(run, &chosen);
    let on_cpu = run.cpu_stacks();
    let (lines, lines_ns) = tables::lines(run, &on_cpu);
    Picture {
        wall_ns: subject.wall().0,
        cpus: run.trace().meta.cpus,
        arch: match run.trace().meta.arch {
            Arch::X86_64 => "x86-64",
            Arch::Aarch64 => "64-bit Arm",
        },
        cell_ns,
        lanes,
        left_out: chosen.left_out,
        path: lanes::path(run, &chosen),
        waits,
        more_waits,
        usage: usage::usage(run),
        on_path: stacks::tree(run, &run.path_stacks()),
        on_cpu: stacks::tree(run, &on_cpu),
        lines,
        lines_ns,
        calls: tables::calls(run),
        words: texts.into_words(),
    }
}

#[cfg(test)]
mod tests;
