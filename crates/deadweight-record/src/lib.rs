//! Records what a program and the kernel did: events in order of time, handed to a [`Sink`].
//!
//! The only crate with `unsafe`, perf events, fork and exec. It knows facts (`raw`) and what this
//! machine allows (`plan`); it knows no symbols, no causes and no cost class.

mod affinity;
mod bpf;
mod breakpoints;
mod calibrate;
mod cgroup;
mod clean;
mod closer;
mod confine;
mod counting;
mod decimate;
mod error;
mod examine;
mod executables;
mod follow;
mod grant;
mod hazards;
mod in_a_row;
mod launch;
mod limit;
mod memory;
mod merge;
pub mod perf;
mod plan;
mod present;
mod priority;
mod probes;
mod proc;
mod ptrace;
mod record;
mod room;
mod rung;
mod session;
mod sight;
mod signals;
mod site;
mod stand_in;
mod texts;
mod ticks;
mod time_limit;
mod untraceable;
mod waits;

pub use clean::{CleanRun, run_clean};
pub use confine::confine;
pub use counting::{Argument, Count};
pub use error::Error;
pub use examine::{Examination, examine};
pub use hazards::MachineHazard;
pub use in_a_row::{InARow, record};
pub use launch::{Probe, Register, Request, Stream, find};
pub use plan::{Capability, Plan};
pub use record::{Join, Outcome, attach, record_in};
pub use room::{give_back, memory_left};
pub use rung::{Lack, Level, Rung};
pub use signals::{Interrupts, interrupted};
pub use stand_in::StandIn;
pub use texts::read_as_any;
