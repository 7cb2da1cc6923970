//! What `/proc`, `/sys` and cgroups show of the machine and of processes: text in, values out.
//!
//! - In: process ids.
//! - Out: CPUs, descriptors, memory pages, stacks of long waits, a process's state when a recording
//!   attaches to it.
//! - Must not know: perf events, or what a recording needs.
//!
//! No task is stopped for it.

pub(crate) mod affinity;
pub(crate) mod cgroup;
pub(crate) mod command_line;
mod cpus;
mod descriptors;
pub(crate) mod executables;
mod machine;
pub(crate) mod maps;
pub(crate) mod memory;
pub(crate) mod memory_budget;
pub(crate) mod processes;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod waits;

pub(crate) use cpus::{allowed_cpus, cpu_list, online_cpus, steal};
pub(crate) use descriptors::{Descriptor, Descriptors, descriptors, inherited_descriptors};
pub use machine::machine;
use memory::Page;
pub(crate) use processes::{has_ended, own_tid, queued_until_death, tree};
use std::fs;
use std::path::Path;
use waits::Wait;

/// Something read from `/proc` while the program ran.
pub(crate) enum ProcSample {
    /// A descriptor.
    Descriptor(Descriptor),
    /// A long wait.
    Wait(Wait),
    /// A page of memory.
    Page(Page),
    /// Counting stopped then, because there were enough hits.
    CountingStopped(u64),
}

impl ProcSample {
    /// The instant.
    pub(crate) fn at(&self) -> u64 {
        match self {
            Self::Descriptor(found) => found.at,
            Self::Wait(found) => found.at,
            Self::Page(found) => found.at,
            Self::CountingStopped(at) => *at,
        }
    }
}

/// A file's text without the line end; none if it cannot be read.
pub(crate) fn line(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
