//! Accounts for a task without a CPU.

use super::Charge;
use crate::account::{Slice, What};
use crate::facts::Facts;
use crate::path::cpu_holder::{CpuHolder, held_up, holders};
use crate::timeline::{Run, Task, WokenBy};
use deadweight_trace::units::Ns;

/// An idle CPU wakes up in less time than this, also a virtual one.
const LATE: Ns = Ns(1_000_000);

impl Charge<'_, '_> {
    /// How long the recorder held up the only task of the process that was waited for, if no wake-up was
    /// recorded; else 0.
    pub(super) fn held_up(&self, block: u32, slice: &Slice) -> Ns {
        let Facts { timeline, path, processes, .. } = self.facts;
        let block = &timeline.blocks[block as usize];
        if block.woken_by != WokenBy::Unseen {
            return Ns::ZERO;
        }
        match self.facts.peer(block).map(|peer| &*processes.get(peer).tasks) {
            Some([one]) => held_up(timeline, &path.subject, *one, slice.start, slice.end),
            _ => Ns::ZERO,
        }
    }

    /// Divides time off CPU by the holder of the CPU that the task then got.
    pub(super) fn ready(&mut self, task: &Task, index: usize, slice: Slice) {
        let subject = &self.facts.path.subject;
        let at_span = (slice.task, index);
        // Woken on an idle CPU: the time until it runs belongs to the wait. Where other programs are not
        // recorded, a long time means that the CPU was not idle.
        let long = slice.end - slice.start > LATE;
        let seen = |block: u32| !self.facts.timeline.blocks[block as usize].inferred;
        let idle = match index.checked_sub(1).map(|i| task.spans[i].run) {
            Some(Run::Blocked(block)) if seen(block) || !long => What::Wait(block),
            _ => What::Ready(CpuHolder::Nobody),
        };
        let mut start = slice.start;
        for (ns, holder) in holders(self.facts.timeline, subject, at_span, start, slice.end) {
            let what = if holder == CpuHolder::Nobody { idle } else { What::Ready(holder) };
            let overhead = if holder == CpuHolder::Recorder { ns } else { Ns::ZERO };
            self.add(&Slice { start, end: start + ns, what, ..slice }, overhead, &[]);
            start += ns;
        }
    }
}
