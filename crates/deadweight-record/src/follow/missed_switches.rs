//! Tasks that were switched in without a record: the kernel does not deliver the tracepoints of some tasks, so the
//! next task on the CPU would seem to wait longer.

use super::{Follow, REAPED};
use crate::perf::decode::Record;
use deadweight_trace::raw::RawKind;

impl Follow<'_> {
    /// The record shows that this task runs on its CPU, even if another was seen to be switched in there.
    pub(super) fn note_on_cpu(&mut self, record: &Record<'_>, task: u32) {
        let Some(held) = self.cpus.get_mut(record.cpu as usize) else { return };
        if self.user_rung.is_some() || held.task == task || task == REAPED {
            return;
        }
        // At exec a task may take the tid of another.
        let in_exec = self.tasks.get(&held.task).is_some_and(|holder| holder.in_exec);
        if !in_exec && self.tasks.get(&task).is_some_and(|known| known.off) {
            held.task = task;
            self.emit(record, task, RawKind::On);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Start;
    use super::*;
    use crate::perf::decode::Body;
    use crate::perf::schema::Offsets;
    use deadweight_trace::raw::{RawEvent, Sink};
    use deadweight_trace::{Meta, Off};

    /// When each task was switched in.
    #[derive(Default)]
    struct Came(Vec<(u64, u32)>);

    impl Sink for Came {
        fn begin(&mut self, _: &Meta) {}
        fn event(&mut self, event: &RawEvent<'_>) {
            if matches!(event.kind, RawKind::On) {
                self.0.push((event.at, event.task.0));
            }
        }
        fn finish(&mut self, _: Meta) {}
    }

    #[test]
    fn a_task_with_a_record_on_a_cpu_runs_there() {
        let mut sink = Came::default();
        let start = Start { root: 7, ..Start::default() };
        let mut follow = Follow::new(&mut sink, Offsets::default(), &[], start, 2);
        let at = |at| Record { at, process: 7, task: 7, cpu: 1, body: Body::Other };
        // It was never switched out.
        follow.note_on_cpu(&at(10), 7);
        let off = || RawKind::Off { why: Off::Preempted, chain: &[] };
        // An unrelated task took its CPU, and left it without a record.
        follow.emit(&at(15), 7, off());
        follow.cpus[1].task = 75;
        follow.note_on_cpu(&at(20), 7);
        follow.note_on_cpu(&at(30), 7);
        // It calls exec in a thread that has its tid from now on.
        follow.emit(&at(35), 7, off());
        follow.cpus[1].task = 8;
        follow.tasks.entry(8).or_default().in_exec = true;
        follow.note_on_cpu(&at(40), 7);
        assert_eq!(sink.0, [(20, 7)]);
    }
}
