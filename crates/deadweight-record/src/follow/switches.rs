//! Context switches, by the tracepoint and by switch records. For tasks that were switched in without a record see
//! `missed_switches`.

use super::{Follow, REAPED};
use crate::perf::decode::{Record, Sample};
use crate::perf::schema::Role;
use deadweight_trace::Off;
use deadweight_trace::ids::Tid;
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
            let known = self.tasks.entry(prev).or_default();
            let is_new = std::mem::replace(&mut known.process, record.process) != record.process;
            // A thread of another program: who reads the recording knows it only by its tid.
            if is_new && prev != record.process {
                let kind = RawKind::Fork { child: Tid(prev), process: Tid(record.process) };
                self.emit(record, record.process, kind);
            }
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

#[cfg(test)]
mod tests {
    use super::super::Start;
    use super::*;
    use crate::perf::decode::Body;
    use crate::perf::schema::Offsets;
    use deadweight_trace::Meta;
    use deadweight_trace::raw::{RawEvent, Sink};

    /// Births as the recording has them: parent, child, process.
    #[derive(Default)]
    struct Births(Vec<(u32, u32, u32)>);

    impl Sink for Births {
        fn begin(&mut self, _: &Meta) {}
        fn event(&mut self, event: &RawEvent<'_>) {
            if let RawKind::Fork { child, process } = event.kind {
                self.0.push((event.task.0, child.0, process.0));
            }
        }
        fn finish(&mut self, _: Meta) {}
    }

    #[test]
    fn the_process_of_a_thread_of_another_program_is_noted_once() {
        let mut sink = Births::default();
        let (prev_pid, next_pid, prev_state, next_comm) = (0, 4, 8, 16);
        let offsets = Offsets { prev_pid, next_pid, prev_state, next_comm, ..Offsets::default() };
        let start = Start { root: 7, ..Start::default() };
        let mut follow = Follow::new(&mut sink, offsets, &[], start, 1);
        let mut switch = |at, process, prev: u32| {
            let mut raw = [0; 32];
            raw[..4].copy_from_slice(&prev.to_ne_bytes());
            let (role, kernel, ip, addr, mask) = (Role::Switch, true, 0, 0, 0);
            let (chain, registers, stack) = (&[][..], &[][..], &[][..]);
            let sample =
                Sample { role, kernel, ip, addr, chain, raw: &raw, mask, registers, stack };
            let record = Record { at, process, task: prev, cpu: 0, body: Body::Other };
            follow.switch(&record, &sample);
        };
        switch(10, 20, 21);
        switch(20, 20, 20);
        switch(30, 20, 21);
        assert_eq!(sink.0, [(20, 21, 20)]);
    }
}
