//! Samples of the sample timer: what an interrupted task was doing.
//!
//! Does not choose which tasks to interrupt; see `sampling_cpu`.

use super::Tracer;
use crate::ptrace::event::{EventKind, UserSnapshot};
use crate::ptrace::requests::{self, Resume, StopKind};

impl Tracer {
    /// A task in a free run has stopped.
    pub(super) fn free_running_stop(
        &mut self,
        task: u32,
        kind: StopKind,
        user: Option<UserSnapshot>,
        rerun: bool,
    ) {
        let Some(tracee) = self.tasks.get_mut(&task) else { return };
        tracee.local_interrupt &= user.is_some();
        let in_call = user.as_ref().and_then(|u| requests::interrupted_call(task, &u.registers));
        let (call_site, sample) = if in_call.is_some() { (user, None) } else { (None, user) };
        tracee.emit_calls(in_call, call_site, &mut self.events);
        match sample {
            Some(user) => tracee.emit_sample(EventKind::Sample(user), &mut self.events),
            None if in_call.is_some()
                && !tracee.local_interrupt
                && tracee.high_rate.has_skidded() =>
            {
                tracee.emit_sample(EventKind::MissedSample, &mut self.events)
            }
            None => {}
        }
        if rerun {
            tracee.enter_ptrace_stop(&mut self.events);
            return self.resume(task, Resume::Free);
        }
        self.estimated_calls += std::mem::take(&mut tracee.high_rate.estimated);
        tracee.high_rate.restart_observation(self.stopped_at);
        self.syscall_traced_stop(task, kind, None);
    }

    /// A task was stopped in user code. Each sample stands for one period of CPU time: a task that
    /// had no CPU gives none.
    pub(super) fn take_sample(&mut self, task: u32, user: Option<UserSnapshot>) {
        let Some(tracee) = self.tasks.get_mut(&task) else { return };
        if let Some(user) = user.filter(|_| tracee.unsampled >= self.period / 2) {
            tracee.emit_sample(EventKind::Sample(user), &mut self.events);
        }
    }
}
