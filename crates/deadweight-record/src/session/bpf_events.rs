//! The events that carry records of BPF programs about system calls. For the programs see `crate::bpf`.

use super::{Session, root_rung};
use crate::bpf::Programs;
use crate::bpf::high_rate::HighRate;
use crate::perf::sys::{Open, Scope};
use deadweight_trace::Overhead;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// The programs, and the events that carry their records. Dropping it ends the following of all tasks.
pub(super) struct BpfEvents {
    pub(super) events: Vec<Open>,
    programs: Arc<Programs>,
}

impl Drop for BpfEvents {
    fn drop(&mut self) {
        self.programs.follow_all(false);
    }
}

impl Session {
    /// Opens the events for the programs' records, on each CPU. Only the programs write there.
    pub(super) fn open_bpf_events(&mut self, programs: Arc<Programs>) -> io::Result<()> {
        let mut events = Vec::new();
        for (role, event) in root_rung::bpf_output_events() {
            let opened = self.open_everywhere(role, Ok(&event), Scope::AllTasks)?;
            for (cpu, open) in self.cpus.iter().zip(&opened) {
                open.enable()?;
                programs.set_output(role, cpu.cast_unsigned(), open.as_raw_fd())?;
            }
            events.extend(opened);
        }
        self.schema.offsets = Programs::with_record_offsets(self.schema.offsets);
        self.bpf_events = Some(BpfEvents { events, programs });
        Ok(())
    }

    /// Records the calls of this task and its descendants, if there are programs.
    pub(super) fn follow_calls_of(&self, task: i32) {
        self.bpf_events.iter().for_each(|bpf| bpf.programs.follow(task.cast_unsigned()));
    }

    /// Records the calls of all tasks.
    pub(super) fn follow_calls_of_all(&self) {
        self.bpf_events.iter().for_each(|bpf| bpf.programs.follow_all(true));
    }

    /// Stores the duration of an unrecorded empty call, in ns, and the cost of recording one.
    pub(crate) fn calibrated(&mut self, bare_call: f64, overhead: &Overhead) {
        self.bare_call = bare_call;
        self.recording_call = overhead.syscall_user + overhead.syscall_kernel;
    }

    /// Counts system calls at a high rate, where that is possible.
    pub(crate) fn high_rate(&self) -> HighRate {
        let programs = self.bpf_events.as_ref().map(|bpf| bpf.programs.clone());
        HighRate::new(self.cpus.len(), programs, (self.bare_call, self.recording_call))
    }
}
