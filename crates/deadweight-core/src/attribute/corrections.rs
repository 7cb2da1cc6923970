//! Time that samples show to be other than its span says: the kernel's work for recording, and the kernel's
//! own work where its calls are not all recorded.
//!
//! `facts::overhead` gives the overhead per event.

use super::Charge;
use crate::account::{Detail, Entry, KERNEL_OTHER, NET_WORK, OBSERVER};
use crate::facts::Facts;

impl Charge<'_, '_> {
    /// Births, execs and deaths cost more while they are recorded, and no calibration knows how much: there
    /// samples show which part of the time was the kernel's work for recording.
    pub(super) fn take_out_recording(&mut self) {
        for at in 0..self.entries.len() {
            let entry = &mut self.entries[at];
            let (all, for_recording) = entry.recording;
            if for_recording == 0 || !is_birth_or_end(self.facts, entry) {
                continue;
            }
            let part = entry.ns.scaled(for_recording, all).min(entry.ns);
            entry.ns -= part;
            entry.alone = entry.alone.min(entry.ns);
            let process = entry.process;
            self.entry((OBSERVER, process, Detail::Plain)).ns += part;
        }
    }

    /// Where calls are not all recorded, the time between recorded calls is not all the program's own. The
    /// kernel's part of it is its part of the clock's ticks, without ticks due to tracing.
    pub(super) fn take_out_kernel(&mut self) {
        let period = self.facts.trace.meta.sample_period;
        for at in 0..self.entries.len() {
            let entry = &mut self.entries[at];
            if entry.account != NET_WORK || entry.in_kernel == 0 {
                continue;
            }
            let (all, kernel) = (entry.recording.0, entry.in_kernel);
            let for_tracing = (entry.overhead.0.checked_div(period).unwrap_or(0)).min(kernel);
            let part = entry.ns.scaled(kernel - for_tracing, all - for_tracing).min(entry.ns);
            entry.ns -= part;
            entry.alone = entry.alone.min(entry.ns);
            entry.recording.0 = all - kernel;
            let process = entry.process;
            let other = self.entry((KERNEL_OTHER, process, Detail::Plain));
            (other.ns, other.alone) = (other.ns + part, other.alone + part);
            other.in_kernel += kernel - for_tracing;
        }
    }
}

/// Whether an entry is the start or end of tasks and programs.
fn is_birth_or_end(facts: &Facts<'_>, entry: &Entry) -> bool {
    match entry.detail {
        Detail::Calls(group) => matches!(
            facts.call_groups.get(group).name,
            "clone" | "clone3" | "fork" | "vfork" | "execve" | "execveat" | "exit" | "exit_group"
        ),
        Detail::Plain => entry.account != NET_WORK,
        _ => false,
    }
}
