//! The recorder: runs a program and records what it and the kernel did, as events in order of time.
//!
//! The only crate with `unsafe`, perf events, BPF, ptrace, `fork` and `/proc`. It reports facts
//! ([`deadweight_trace::raw`]) to a [`Sink`](deadweight_trace::raw::Sink). It knows no symbols, no
//! causes and no cost classes. A *call* is a system call here.
//!
//! A tour, in the order of a recording:
//!
//! 1. [`Plan::detect`] tries what this machine allows and chooses the [`Rung`] (`plan`): perf events
//!    of the whole machine (*root*), of the own program (*user*), or ptrace stops (*stops*).
//!    `permissions` names the command that grants what is missing; [`doctor`] checks everything.
//! 2. [`record()`] starts the program behind a barrier (`launch`), with the signals, limits and
//!    descriptors that it would have without the recorder. [`attach`] joins a running process
//!    instead (`procfs::snapshot`). [`run_clean`] runs a program without recording it.
//! 3. `session` opens the events of the rung, measures the tracing overhead (`session::calibrate`),
//!    and closes or decimates events that cost too much. As root, BPF programs record calls, faults and
//!    switches (`bpf`). `perf` is the interface underneath: ring buffers, tracepoints, decoding.
//! 4. `record` releases the program and runs four threads: one waits for the program, one copies the
//!    ring buffers, one samples `/proc` (`procfs`), and one decodes.
//! 5. `follow` sorts the records by time, follows the program's tasks, and emits raw events.
//! 6. Without perf events, `ptrace` replaces steps 3 to 5: it stops the program at its system calls
//!    and reports the same raw events.
//!
//! Imports go in one direction: `record` → `plan` → `ptrace`, `session` → `bpf`, `launch` → `perf` →
//! `procfs` → `clock`; `follow` is between `record` and `session`.

mod bpf;
mod clock;
mod descriptors;
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
pub use launch::signals::{Interrupts, interrupted, interrupted_by};
pub use launch::{
    Argument, CallFilter, CleanRun, Count, FilteredCall, Outcome, Placement, Probe, Register,
    Request, Stream, Substitute, become_user, confine, confine_to, find, group_without_quota,
    run_clean,
};
pub use plan::{Capability, Checkup, Lack, Level, MachineHazard, Plan, Rung, doctor};
pub use procfs::machine;
pub use procfs::memory_budget::{memory_left, trim_heap};
pub use procfs::processes::tree as descendants;
pub use record::{AttachRequest, RecordingSeries, attach, record, record_in};
