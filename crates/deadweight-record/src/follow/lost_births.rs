//! Births whose record was lost. BPF programs know followed tasks by themselves: a task of theirs that is not known here
//! is one. Not for switches without a record; see `missed_switches`.

use super::{Follow, REAPED};
use crate::perf::decode::{Body, Record};
use crate::perf::schema::Role;
use deadweight_trace::raw::RawKind;

impl Follow<'_> {
    /// Follows the task of this record from now on, if only its birth can be missing: records were lost, and the programs
    /// record calls and faults of followed tasks alone. Who created a process is not known: it counts as the root's.
    pub(super) fn adopts(&mut self, record: &Record<'_>, role: Role) -> bool {
        let shows_task = matches!(role, Role::Enter | Role::Leave | Role::Fault | Role::MinorEnd);
        let Record { at, process, task, cpu, .. } = *record;
        let is_task = task != 0 && task != REAPED && process != REAPED;
        if !self.start.by_programs || self.stats.lost == 0 || !shows_task || !is_task {
            return false;
        }
        let parent = if self.follows(process) { process } else { self.start.root };
        let name = self.tasks.get(&task).map(|known| known.name);
        let birth = Record { at, process: parent, task: parent, cpu, body: Body::Other };
        self.fork(&birth, parent, task, process);
        if let Some(name) = name {
            self.named(record, task, name.split(|byte| *byte == 0).next().unwrap_or_default());
        }
        // What it did before is not recorded.
        self.emit(record, task, RawKind::On);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::Start;
    use super::*;
    use crate::perf::schema::Offsets;
    use deadweight_trace::Meta;
    use deadweight_trace::raw::{RawEvent, Sink};

    /// Tasks and what happened to them.
    #[derive(Default)]
    struct Said(Vec<(u32, &'static str)>);

    impl Sink for Said {
        fn begin(&mut self, _: &Meta) {}
        fn event(&mut self, event: &RawEvent<'_>) {
            let what = match event.kind {
                RawKind::Fork { child, .. } => return self.0.push((child.0, "born")),
                RawKind::On => "on",
                RawKind::FaultEnd { .. } => "fault",
                _ => return,
            };
            self.0.push((event.task.0, what));
        }
        fn finish(&mut self, _: Meta) {}
    }

    /// The end of a fault of a task without a birth, after so many lost records.
    fn after(lost: u64, by_programs: bool) -> Vec<(u32, &'static str)> {
        let mut sink = Said::default();
        let start = Start { root: 7, by_programs, ..Start::default() };
        let mut follow = Follow::new(&mut sink, Offsets::OF_PROGRAMS, &[], start, 2);
        let record = |at, body| Record { at, process: 8, task: 8, cpu: 1, body };
        if lost > 0 {
            follow.take(&record(5, Body::Lost(lost)), None);
        }
        let none: &[u8] = &[];
        let (ip, addr, mask) = (0, 0, 0);
        let (chain, raw, registers, stack) = (none, none, none, none);
        let role = Role::MinorEnd;
        let fault = crate::perf::decode::Sample {
            role,
            kernel: false,
            ip,
            addr,
            chain,
            raw,
            mask,
            registers,
            stack,
        };
        for at in [10, 20] {
            follow.take(&record(at, Body::Sample(fault)), None);
        }
        sink.0
    }

    #[test]
    fn a_task_whose_birth_was_lost_is_followed_from_its_first_record() {
        assert_eq!(after(3, true), [(8, "born"), (8, "on"), (8, "fault"), (8, "fault")]);
    }

    #[test]
    fn without_losses_or_with_events_of_perf_it_is_another_programs() {
        assert_eq!(after(0, true), []);
        assert_eq!(after(3, false), []);
    }
}
