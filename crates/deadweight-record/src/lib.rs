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
    Argument, CleanRun, Count, Outcome, Probe, Register, Request, StandIn, Stream, confine, find,
    run_clean,
};
pub use plan::{Capability, Examination, Lack, Level, MachineHazard, Plan, Rung, examine};
pub use procfs::memory_budget::{give_back, memory_left};
pub use record::{InARow, Join, attach, record, record_in};
