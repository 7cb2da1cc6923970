//! A recorded run: immutable, self-contained, versioned. Everything after it is a pure function.
//!
//! [`Trace`] holds its events in encoded form (about 10 bytes each) and decodes them as they are
//! walked, so that ten million events take some 100 MB. `binary` reads and writes the file,
//! `text` the readable form that tests are written in.

#![forbid(unsafe_code)]

pub mod binary;
mod bytes;
mod cut;
pub mod encoded;
pub mod event;
pub mod ids;
pub mod patch;
pub mod probe;
pub mod raw;
pub mod symbols;
pub mod syscall;
pub mod text;
pub mod units;

use crate::ids::{Cpu, Tid};
use crate::symbols::Symbols;
use crate::units::Ns;
use serde::{Deserialize, Serialize};

pub use encoded::Events;
pub use event::{Event, Kind, Off};

/// Everything about a recording that is not an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Version of deadweight that recorded.
    pub recorder: String,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// Architecture of the machine.
    pub arch: syscall::Arch,
    /// CPUs that could run the program.
    pub cpus: u16,
    /// The clock's reading at the trace's time zero, in ns.
    pub zero: u64,
    /// Task that became the command.
    pub root: Tid,
    /// Whether the recording joined a process that ran already, and left it: then start and end are
    /// the recording's.
    pub attached: bool,
    /// When the command's process was let go towards exec; the wall time starts here.
    pub start: Ns,
    /// When the command's end was known to its parent (exit of the root); the wall time ends here.
    pub end: Ns,
    /// How the root ended; none if it was still running or the recording broke off.
    pub exit: Option<Exit>,
    /// The kernel's own count of CPU time of the root and what it waited for.
    pub rusage: Option<Usage>,
    /// Mean period of the sampling clock in ns of CPU time; 0 without sampling.
    pub sample_period: u64,
    /// What observing costs the program.
    #[serde(rename = "observer")]
    pub overhead: Overhead,
    /// The recorder's own tasks: CPU time that they took is ours, not an outsider's.
    pub recorders: Vec<Tid>,
    /// How much this machine let us see (`root`, ...), see `deadweight doctor`.
    pub rung: String,
    /// Why it is not a higher rung; empty at the top.
    pub rung_why: String,
    /// What a higher rung would tell, in words, most important first.
    pub lacks: Vec<String>,
    /// CPUs whose idle task delivered no tracepoints in the self-test.
    pub blind_cpus: Vec<Cpu>,
    /// CPU time stolen by the hypervisor during the run, all CPUs, in ns.
    pub steal: Ns,
    /// How long a CPU quota of the cgroup kept its tasks from running during the run, summed over
    /// CPUs.
    pub throttled: Ns,
    /// Calls that are taken to be like the one in so many that was recorded.
    #[serde(rename = "thinned")]
    pub decimated: u64,
    /// What the reader must know (facts of this recording, in plain words).
    pub warnings: Vec<String>,
    /// Written last: false in a recording that broke off.
    pub complete: bool,
}

/// How the command ended.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code; 0 if a signal ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// The kernel's resource count (`getrusage`).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Ns,
    /// CPU time in the kernel.
    pub system: Ns,
    /// Largest resident set in bytes.
    pub max_rss: u64,
}

/// The calibrated cost of being observed, in ns per event, by where the time shows.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// Per system call, in the user time around it.
    pub syscall_user: u64,
    /// Per system call, between its entry and exit records.
    pub syscall_kernel: u64,
    /// Per system call that was counted and not recorded, in the user time around it. 0 in recordings that
    /// counted none.
    #[serde(default)]
    pub counted_user: u64,
    /// Per system call that was counted, between its entry and its return.
    #[serde(default)]
    pub counted_kernel: u64,
    /// Per page fault, in the user time after it.
    pub fault_user: u64,
    /// Per page fault, between its two records.
    pub fault_kernel: u64,
    /// Per switch of a task.
    pub switch: u64,
    /// Per sample.
    pub sample: u64,
    /// Per death of a task: its events are taken down with it.
    pub death: u64,
}

/// A sealed recording.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Facts about the recording.
    pub meta: Meta,
    /// What the events' ids mean.
    pub symbols: Symbols,
    events: Events,
}

impl Meta {
    /// Whether wake-ups were recorded: on the lower rungs none is.
    #[must_use]
    pub fn records_wakers(&self) -> bool {
        !matches!(self.rung.as_str(), "user" | "stops")
    }

    /// Whether waits have their own begin and end, and calls are seen one by one: where the program
    /// is stopped instead, they are concluded from counts between stops, and where one call in so many is recorded,
    /// the others are taken to be like it.
    #[must_use]
    pub fn records_both_ends(&self) -> bool {
        self.rung != "stops" && self.decimated == 0
    }
}

impl Trace {
    /// A trace of these events, which must be in order of time.
    #[must_use]
    pub fn new(meta: Meta, symbols: Symbols, events: impl IntoIterator<Item = Event>) -> Self {
        Self::from_encoded(meta, symbols, events.into_iter().collect())
    }

    /// A trace of events that were encoded as they came.
    #[must_use]
    pub fn from_encoded(meta: Meta, symbols: Symbols, events: Events) -> Self {
        Self { meta, symbols, events }
    }

    /// The events in order.
    pub fn events(&self) -> impl Iterator<Item = Event> + Clone {
        self.events.iter()
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The wall time that the ledger divides, before a subject is chosen.
    #[must_use]
    pub fn wall(&self) -> Ns {
        self.meta.end - self.meta.start
    }
}
