//! What programs in the kernel tell a session of system calls. Not for the programs: see `crate::bpf`.

use super::{Session, root_rung};
use crate::bpf::Programs;
use crate::bpf::high_rate::HighRate;
use crate::perf::sys::{Open, Scope};
use deadweight_trace::Overhead;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// The programs, and the events that are records of what they tell. Nobody is followed any more at its end.
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
    /// Opens what the programs tell, on each CPU. Nobody makes records there but they.
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

    /// This task's calls are told, and those of its descendants, where programs tell.
    pub(super) fn follow_calls_of(&self, task: i32) {
        self.bpf_events.iter().for_each(|bpf| bpf.programs.follow(task.cast_unsigned()));
    }

    /// Everybody's are.
    pub(super) fn follow_calls_of_all(&self) {
        self.bpf_events.iter().for_each(|bpf| bpf.programs.follow_all(true));
    }

    /// Takes note of what an empty call takes that nobody observes, in ns, and of what recording one costs.
    pub(crate) fn calibrated(&mut self, bare_call: f64, observer: &Overhead) {
        self.bare_call = bare_call;
        self.recording_call = observer.syscall_user + observer.syscall_kernel;
    }

    /// Who is to count dense calls, where that can be had.
    pub(crate) fn high_rate(&self) -> HighRate {
        let programs = self.bpf_events.as_ref().map(|bpf| bpf.programs.clone());
        HighRate::new(self.cpus.len(), programs, (self.bare_call, self.recording_call))
    }
}
