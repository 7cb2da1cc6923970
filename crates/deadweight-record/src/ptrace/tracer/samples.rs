//! What a task is found in when the clock interrupts it.

use super::Tracer;
use crate::ptrace::event::{EventKind, UserSnapshot};
use crate::ptrace::requests::{self, Resume, StopKind};

impl Tracer {
    /// A task that runs without stops at its calls was stopped all the same.
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
        let (site, take_sample) = if in_call.is_some() { (user, None) } else { (None, user) };
        tracee.emit_calls(in_call, site, &mut self.events);
        match take_sample {
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

    /// A task that was stopped in its own code. Each sample stands for one period of CPU time; who had
    /// no CPU meanwhile gives none.
    pub(super) fn take_sample(&mut self, task: u32, user: Option<UserSnapshot>) {
        let Some(tracee) = self.tasks.get_mut(&task) else { return };
        if let Some(user) = user.filter(|_| tracee.unsampled >= self.period / 2) {
            tracee.emit_sample(EventKind::Sample(user), &mut self.events);
        }
    }
}
