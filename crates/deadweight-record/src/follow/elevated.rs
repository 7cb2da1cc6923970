//! Programs with elevated privileges (set-user-id programs): when they start, the kernel removes perf's events from
//! them, and reports that as if the task had exited. On the user rung such programs are completely hidden: see
//! `user_rung`.

use super::Follow;
use crate::perf::decode::Record;
use deadweight_trace::raw::RawKind;

impl Follow<'_> {
    /// The kernel reports that this task has exited; no task really exits during its exec.
    pub(super) fn exits(&mut self, record: &Record<'_>, task: u32) {
        match self.tasks.get_mut(&task) {
            Some(known) if known.after_exec => {
                (known.after_exec, known.elevated) = (false, true);
                self.stats.elevated += 1;
            }
            _ => self.emit(record, task, RawKind::Exit),
        }
    }

    /// A call of this task was recorded. If it has elevated privileges, the warning must not say that calls are
    /// missing.
    pub(super) fn calls(&mut self, task: u32) {
        let elevated = self.tasks.get(&task).is_some_and(|known| known.elevated);
        self.stats.elevated_calls |= elevated;
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

    /// The times of exits.
    #[derive(Default)]
    struct Ended(Vec<u64>);

    impl Sink for Ended {
        fn begin(&mut self, _: &Meta) {}
        fn event(&mut self, event: &RawEvent<'_>) {
            if matches!(event.kind, RawKind::Exit) {
                self.0.push(event.at);
            }
        }
        fn finish(&mut self, _: Meta) {}
    }

    #[test]
    fn a_task_with_elevated_privileges_has_not_exited() {
        let mut sink = Ended::default();
        let start = Start { root: 7, ..Start::default() };
        let mut follow = Follow::new(&mut sink, Offsets::default(), &[], start, 1);
        let record = |at, body| Record { at, process: 7, task: 7, cpu: 0, body };
        follow.take(&record(10, Body::Comm { task: 7, exec: true, name: b"su" }), None);
        follow.take(&record(11, Body::Exit { task: 7 }), None);
        assert!(follow.stats.warnings().iter().any(|said| said.contains("or their system calls")));
        follow.calls(7);
        assert!(!follow.stats.warnings().iter().any(|said| said.contains("or their")));
        follow.take(&record(20, Body::Exit { task: 7 }), None);
        assert_eq!(sink.0, [20]);
    }
}
