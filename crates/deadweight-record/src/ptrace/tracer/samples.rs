//! What a task is found in when the clock interrupts it.

use super::Tracer;
use crate::ptrace::note::{User, What};
use crate::ptrace::requests::{self, Go, Told};

impl Tracer {
    /// A task that runs without stops at its calls was stopped all the same.
    pub(super) fn loose(&mut self, task: u32, told: Told, user: Option<User>, on: bool) {
        let Some(tracee) = self.tasks.get_mut(&task) else { return };
        tracee.met &= user.is_some();
        let inside = user.as_ref().and_then(|u| requests::interrupted_call(task, &u.registers));
        let (site, sample) = if inside.is_some() { (user, None) } else { (None, user) };
        tracee.tell_calls(inside, site, &mut self.notes);
        match sample {
            Some(user) => tracee.sampled(What::Sample(user), &mut self.notes),
            None if inside.is_some() && !tracee.met && tracee.dense.is_late() => {
                tracee.sampled(What::Missed, &mut self.notes)
            }
            None => {}
        }
        if on {
            tracee.hold(&mut self.notes);
            return self.go(task, Go::Loose);
        }
        self.unwatched += std::mem::take(&mut tracee.dense.told);
        tracee.dense.again(self.told);
        self.strict(task, told, None);
    }

    /// A task that was stopped in its own code. Each sample stands for one period of CPU time; who had
    /// no CPU meanwhile gives none.
    pub(super) fn sample(&mut self, task: u32, user: Option<User>) {
        let Some(tracee) = self.tasks.get_mut(&task) else { return };
        if let Some(user) = user.filter(|_| tracee.unsampled >= self.period / 2) {
            tracee.sampled(What::Sample(user), &mut self.notes);
        }
    }
}
