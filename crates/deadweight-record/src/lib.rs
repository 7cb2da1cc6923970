//! Records what a program and the kernel did: events in order of time, handed to a [`Sink`].
//!
//! The only crate with `unsafe`, perf events, fork and exec. It knows facts (`raw`) and what this
//! machine allows (`plan`); it knows no symbols, no causes and no cost class.

mod bpf;
mod clock;
mod error;
mod follow;
mod fuzz_entry;
mod launch;
pub mod perf;
mod permissions;
mod plan;
mod procfs;
mod ptrace;
mod record;
mod session;
mod timing;

pub use error::Error;
pub use fuzz_entry::read_as_any;
pub use launch::signals::{Interrupts, interrupted};
pub use launch::{
    Argument, CleanRun, Count, Outcome, Probe, Register, Request, Stream, Substitute, confine,
    find, run_clean,
};
pub use plan::{Capability, Checkup, Lack, Level, MachineHazard, Plan, Rung, doctor};
pub use procfs::memory_budget::{memory_left, trim_heap};
pub use record::{AttachRequest, RecordingSeries, attach, record, record_in};
