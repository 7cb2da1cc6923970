//! A task that ran before it was traced: how it stands, and what it does until it stops for the first time.

use super::{Activity, Tracee};
use crate::ptrace::event::{EventKind, TaskEvent};
use crate::ptrace::schedstat::SchedCounts;
use deadweight_trace::Off;

impl Tracee {
    /// How it stands when it is joined: on a CPU, or since some time in a call that waits.
    pub(in crate::ptrace) fn attach(
        &mut self,
        call: Option<Activity>,
        events: &mut Vec<TaskEvent>,
    ) {
        self.get_cpu(self.cursor, events);
        if let Some(Activity::Call { nr, args }) = call {
            self.emit(self.cursor, EventKind::Call { nr, args }, events);
            self.emit(self.cursor, EventKind::Off(Off::Blocked), events);
            self.activity = Activity::Call { nr, args };
            (self.on_cpu, self.blocked) = (false, true);
        } else {
            // It is past its exec.
            self.emit(self.cursor, EventKind::CallReturn(0), events);
        }
    }

    /// It is not told of until it is on a CPU again.
    pub(in crate::ptrace) fn preempt_at_attach(&mut self, events: &mut Vec<TaskEvent>) {
        self.on_cpu = false;
        self.emit(self.cursor, EventKind::Off(Off::Preempted), events);
    }

    /// It does not stop yet, and was seen to wait again after it ran: how long is counted, and what it
    /// did is not known.
    pub(in crate::ptrace) fn blocks_again(
        &mut self,
        call: Activity,
        at: u64,
        events: &mut Vec<TaskEvent>,
    ) {
        let now = self.sched_counts();
        let cpu_time = now.since(self.counted).cpu_time;
        let Activity::Call { nr, args } = call else { return };
        self.counted = now;
        if !self.on_cpu {
            self.get_cpu(at.saturating_sub(cpu_time).max(self.cursor), events);
        }
        if let Activity::Call { .. } = self.activity {
            self.emit(self.cursor, EventKind::CallReturn(1), events);
        }
        self.activity = call;
        let end = (self.cursor + cpu_time).min(at);
        self.emit(end, EventKind::Call { nr, args }, events);
        self.emit(end, EventKind::Off(Off::Blocked), events);
        (self.on_cpu, self.blocked, self.resumed_at) = (false, true, end);
    }

    /// How often it has waited.
    pub(in crate::ptrace) fn voluntary_switches(&self) -> Option<u64> {
        self.sched.voluntary_switches()
    }

    /// What the scheduler counts of it now.
    pub(in crate::ptrace) fn sched_counts(&self) -> SchedCounts {
        self.sched.read().unwrap_or_default()
    }
}
