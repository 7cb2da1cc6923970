//! Context switches, by the tracepoint and by switch records. For tasks that were switched in without a record see
//! `missed_switches`.

use super::{Follow, REAPED};
use crate::perf::decode::{Record, Sample};
use crate::perf::schema::Role;
use deadweight_trace::Off;
use deadweight_trace::raw::RawKind;

/// The kernel's reasons for a switch-out (`sched_switch`'s `prev_state`).
mod state {
    pub(super) const STOPPED: u64 = 0x4 | 0x8;
    pub(super) const DEAD: u64 = 0x10 | 0x20;
    /// Preempted. The bits below it are states; it moved when states were added.
    pub(super) const PREEMPTED: u64 = 0x100 | 0x200 | 0x400 | 0x800;
}

impl Follow<'_> {
    /// The switch record. The tracepoint reported everything before, except where the idle task's tracepoints are not
    /// delivered.
    pub(super) fn switched(&mut self, record: &Record<'_>, out: bool) {
        let Some(held) = self.cpus.get_mut(record.cpu as usize) else { return };
        let known = held.task == record.task;
        let foreign = self.pids.differ() && record.task == 0;
        if record.task == REAPED || foreign {
            return;
        }
        if !out && !known {
            held.idle_unseen += u32::from(held.task == 0);
            self.pids.learn(held.task, record.task);
            held.task = record.task;
            self.tasks.entry(record.task).or_default().process = record.process;
            self.emit(record, record.task, RawKind::On);
        }
    }

    pub(super) fn switch(&mut self, record: &Record<'_>, sample: &Sample<'_>) {
        let offsets = self.offsets;
        let (Some(prev), Some(state), Some(next), Some(name)) = (
            sample.raw_u32(offsets.prev_pid),
            sample.raw_u64(offsets.prev_state),
            sample.raw_u32(offsets.next_pid),
            sample.raw.get(offsets.next_comm..offsets.next_comm + 16),
        ) else {
            self.stats.unreadable += 1;
            return;
        };
        let machines = prev;
        self.pids.learn(prev, if record.task == REAPED { 0 } else { record.task });
        let (prev, next) = (self.pids.here(prev), self.pids.here(next));
        if let Some(held) = self.cpus.get_mut(record.cpu as usize) {
            held.task = next;
            held.latest = record.at;
            held.idle_seen += u32::from(prev == 0);
        }
        if self.follows(prev) {
            let why = self.why(prev, state);
            if why == Off::Dead {
                self.pids.forget(machines);
            }
            sample.split_chain(&mut self.kernel_chain, &mut self.user_chain);
            let chain = std::mem::take(&mut self.kernel_chain);
            self.emit(record, prev, RawKind::Off { why, chain: &chain });
            self.kernel_chain = chain;
            self.expect_user_stack(record, prev, Role::WaitSite);
            self.stats.root_dead |= prev == self.start.root && why == Off::Dead;
        } else if record.process != REAPED {
            self.tasks.entry(prev).or_default().process = record.process;
        }
        self.tasks.entry(next).or_default();
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        self.named(record, next, name);
        self.emit(record, next, RawKind::On);
    }

    fn why(&self, task: u32, state: u64) -> Off {
        if state & state::PREEMPTED != 0 {
            Off::Preempted
        } else if state == 0 {
            // Runnable: preempted on its way out of the kernel, or it yielded.
            let yielding = self.tasks.get(&task).is_some_and(|t| t.yielding);
            if yielding { Off::Yielded } else { Off::Preempted }
        } else if state & state::DEAD != 0 {
            Off::Dead
        } else if state & state::STOPPED != 0 {
            Off::Stopped
        } else {
            Off::Blocked
        }
    }
}
