//! What BPF programs need of perf on the root rung: events for user stacks, and for the ends of page faults. For the
//! programs see `crate::bpf`.

use super::{Session, root_rung};
use crate::bpf::high_rate::{self, Cost, HighRate};
use crate::bpf::{Programs, SITE_ROLES};
use crate::perf::schema::{Role, fields};
use crate::perf::sys::{Event, Open, Scope, Source};
use crate::timing::Unrecorded;
use deadweight_trace::Overhead;
use perf_event_open_sys::bindings as abi;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// The programs, and their events. Dropping it ends the following of all tasks.
pub(super) struct BpfEvents {
    pub(super) events: Vec<Open>,
    pub(super) programs: Arc<Programs>,
}

impl Drop for BpfEvents {
    fn drop(&mut self) {
        self.programs.record(false);
        self.programs.follow_all(false);
    }
}

impl Session {
    /// Opens the programs' events on each CPU. If it fails, nothing is changed.
    pub(super) fn open_bpf_events(&mut self, programs: Arc<Programs>) -> io::Result<()> {
        let mut events = Vec::new();
        for role in SITE_ROLES {
            let site = root_rung::site_event();
            let opened = self.open_everywhere(role, Ok(&site), Scope::AllTasks)?;
            for (cpu, open) in self.cpus.iter().zip(&opened) {
                open.enable()?;
                programs.set_sites(role, cpu.cast_unsigned(), open.as_raw_fd())?;
            }
            events.extend(opened);
        }
        let alarm = Event { wakes: true, ..Event::of_each(Source::BpfOutput, fields::BASE) };
        let alarms = self.open_everywhere(Role::Dummy, Ok(&alarm), Scope::AllTasks)?;
        for (cpu, open) in self.cpus.iter().zip(&alarms) {
            open.enable()?;
            programs.set_alarm(cpu.cast_unsigned(), open.as_raw_fd())?;
        }
        events.extend(alarms);
        let ends = [
            (Role::MinorEnd, abi::PERF_COUNT_SW_PAGE_FAULTS_MIN),
            (Role::MajorEnd, abi::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
        ];
        for (role, counts) in ends {
            let event = Event::of_each(Source::Software(counts), fields::BASE);
            let program = programs.fault_end(role == Role::MajorEnd);
            let program = program.ok_or(io::ErrorKind::NotFound)?;
            let opened = self.open_everywhere(role, Ok(&event), Scope::AllTasks)?;
            for open in &opened {
                open.set_program(program)?;
                open.enable()?;
            }
            events.extend(opened);
        }
        let rings = self.cpus.iter().map(|cpu| programs.ring(cpu.cast_unsigned()));
        self.record_rings = rings.collect();
        self.schema.set_programs();
        self.bpf_events = Some(BpfEvents { events, programs });
        Ok(())
    }

    /// Whether BPF programs record, rather than events of perf.
    pub(crate) fn has_programs(&self) -> bool {
        self.bpf_events.is_some()
    }

    /// Descriptors that become readable when the programs have written much; none where events of perf may write much
    /// too.
    pub(crate) fn alarms(&self) -> Vec<RawFd> {
        let by_perf = self.counting.is_active() || self.schema.has(Role::Probe(0));
        let leaders = self.leaders.iter().filter(|_| self.has_programs() && !by_perf);
        leaders.map(AsRawFd::as_raw_fd).collect()
    }

    /// Starts or stops the output of the programs.
    pub(super) fn let_programs_record(&self, on: bool) {
        self.bpf_events.iter().for_each(|bpf| bpf.programs.record(on));
    }

    /// Starts or stops the taking of user stacks by the programs.
    pub(super) fn let_programs_take_stacks(&self, on: bool) {
        self.bpf_events.iter().for_each(|bpf| bpf.programs.take_stacks(on));
    }

    /// Records this task and its descendants, if there are programs.
    pub(super) fn follow_by_programs(&self, task: i32) {
        self.bpf_events.iter().for_each(|bpf| bpf.programs.follow(task.cast_unsigned()));
    }

    /// Stores the durations of unrecorded calls, and the cost of recording one.
    pub(crate) fn calibrated(&mut self, unrecorded: Unrecorded, overhead: &Overhead) {
        self.unrecorded = unrecorded;
        let (user, kernel) = (overhead.counted_user, overhead.counted_kernel);
        self.counted_call = Cost { user, kernel };
        self.recording_call = overhead.syscall_user + overhead.syscall_kernel;
    }

    /// Measures what a counted call costs; nothing where calls are not counted.
    pub(super) fn cost_of_counting(&self, unrecorded: Unrecorded) -> Cost {
        let programs = self.bpf_events.as_ref().map(|bpf| &bpf.programs);
        programs.map_or_else(Cost::default, |programs| high_rate::cost(programs, unrecorded))
    }

    /// Counts system calls at a high rate, where that is possible.
    pub(crate) fn high_rate(&self) -> HighRate {
        let programs = self.bpf_events.as_ref().map(|bpf| bpf.programs.clone());
        HighRate::new(self.record_rings.len(), programs, (self.counted_call, self.recording_call))
    }
}
