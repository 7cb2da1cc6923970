//! A task that ran before it was traced: its state, and its events until its first stop.
//!
//! Does not interrupt it; see `tracer::attach`.

use super::{Activity, Tracee};
use crate::ptrace::event::{EventKind, TaskEvent};
use crate::ptrace::schedstat::SchedCounts;
use deadweight_trace::Off;

impl Tracee {
    /// Its state when it is attached to: on a CPU, or blocked in a call for some time.
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
            // It has returned from its `execve`.
            self.emit(self.cursor, EventKind::CallReturn(0), events);
        }
    }

    /// No event until it is on a CPU again.
    pub(in crate::ptrace) fn preempt_at_attach(&mut self, events: &mut Vec<TaskEvent>) {
        self.on_cpu = false;
        self.emit(self.cursor, EventKind::Off(Off::Preempted), events);
    }

    /// It does not stop yet, and was found blocked again after it ran. How long it ran is counted
    /// and returned; what it did is not known.
    pub(in crate::ptrace) fn blocks_again(
        &mut self,
        call: Activity,
        at: u64,
        events: &mut Vec<TaskEvent>,
    ) -> u64 {
        let now = self.sched_counts();
        let cpu_time = now.since(self.counted).cpu_time;
        let Activity::Call { nr, args } = call else { return 0 };
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
        cpu_time
    }

    /// How often it has blocked.
    pub(in crate::ptrace) fn voluntary_switches(&self) -> Option<u64> {
        self.sched.voluntary_switches()
    }

    /// The scheduler's current counts.
    pub(in crate::ptrace) fn sched_counts(&self) -> SchedCounts {
        self.sched.read().unwrap_or_default()
    }
}
