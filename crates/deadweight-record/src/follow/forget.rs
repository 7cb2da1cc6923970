//! Which tasks can be forgotten: those that ended and of which no more records come. The sink keeps its own state.

use super::Follow;
use deadweight_trace::Off;
use deadweight_trace::raw::RawKind;
use std::collections::HashSet;

/// This many tasks are no problem.
pub(super) const FEW: usize = 4096;
/// Records of a task may come up to this many ns after its end: its memory is freed meanwhile, and samples from
/// `/proc` have times of their own.
const LATE: u64 = 1_000_000_000;

impl Follow<'_> {
    /// Notes whether a task is off its CPU, and gone. The first task of a process may exit and reappear: if another
    /// of its threads calls exec.
    pub(super) fn note_off_cpu(&mut self, task: u32, kind: &RawKind<'_>, at: u64) {
        let gone = match kind {
            RawKind::Off { why: Off::Dead, .. } => Some(at),
            RawKind::On | RawKind::Off { .. } | RawKind::Exec { .. } => None,
            _ => return,
        };
        if let Some(known) = self.tasks.get_mut(&task) {
            known.gone = gone;
            known.off = matches!(kind, RawKind::Off { .. });
        }
    }

    /// Forgets tasks that are gone, if there are many. A process is kept as long as one of its tasks lives. Other
    /// programs' tasks without a CPU are forgotten; they reappear with their next record.
    pub(super) fn forget(&mut self) {
        if self.tasks.len() < self.forget_at {
            return;
        }
        let living = self.tasks.values().filter(|task| task.followed && task.gone.is_none());
        let living: HashSet<u32> = living.map(|task| task.process).collect();
        let (root, last, cpus) = (self.start.root, self.last, &self.cpus);
        self.tasks.retain(|tid, task| {
            let recent = task.gone.is_none_or(|at| last.saturating_sub(at) < LATE);
            match task.followed {
                true => recent || *tid == root || living.contains(tid),
                false => cpus.iter().any(|held| held.task == *tid),
            }
        });
        let tasks = &self.tasks;
        self.decimation.forget(|task| !tasks.contains_key(&task));
        self.forget_at = FEW.max(2 * self.tasks.len());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Record, Start, Task};
    use super::*;
    use crate::perf::decode::Body;
    use crate::perf::schema::Offsets;
    use deadweight_trace::Meta;
    use deadweight_trace::raw::{RawEvent, Sink};

    /// Ignores all events.
    struct NullSink;

    impl Sink for NullSink {
        fn begin(&mut self, _: &Meta) {}
        fn event(&mut self, _: &RawEvent<'_>) {}
        fn finish(&mut self, _: Meta) {}
    }

    fn follow(sink: &mut NullSink) -> Follow<'_> {
        let start = Start { root: 7, ..Start::default() };
        Follow::new(sink, Offsets::default(), &[], start, 2)
    }

    fn dies(follow: &mut Follow<'_>, task: u32, at: u64) {
        let record = Record { at, process: task, task, cpu: 0, body: Body::Other };
        follow.emit(&record, task, RawKind::Off { why: Off::Dead, chain: &[] });
    }

    fn born(follow: &mut Follow<'_>, (process, task): (u32, u32), at: u64) {
        let body = Body::Fork { process, task, parent: 7 };
        follow.take(&Record { at, process: 7, task: 7, cpu: 0, body }, None);
    }

    #[test]
    fn tasks_that_ended_are_forgotten() {
        let mut sink = NullSink;
        let mut follow = follow(&mut sink);
        let mut most = 0;
        for child in 0..40_000_u32 {
            let at = u64::from(child) * 3_000_000;
            // An unrelated task has the other CPU.
            follow.tasks.entry(1_000_000 + child).or_default();
            born(&mut follow, (100 + child, 100 + child), at);
            dies(&mut follow, 100 + child, at + 1_000_000);
            most = most.max(follow.tasks.len());
        }
        assert!(most <= 2 * FEW, "{most}");
        assert!(follow.follows(7));
    }

    #[test]
    fn a_dead_leader_is_kept_while_its_threads_live() {
        let mut sink = NullSink;
        let mut follow = follow(&mut sink);
        born(&mut follow, (50, 50), 1);
        born(&mut follow, (50, 51), 2);
        born(&mut follow, (60, 60), 2);
        dies(&mut follow, 50, 3);
        dies(&mut follow, 60, 3);
        follow.last = 10 * LATE;
        follow.forget_at = 0;
        follow.forget();
        assert!(follow.follows(50) && follow.follows(51) && !follow.tasks.contains_key(&60));
        // The other one calls exec and gets the first one's tid.
        let path = RawKind::Exec { former: deadweight_trace::ids::Tid(51), path: "" };
        let record = Record { at: follow.last, process: 50, task: 50, cpu: 0, body: Body::Other };
        follow.emit(&record, 50, path);
        follow.last *= 2;
        follow.forget_at = 0;
        follow.forget();
        assert!(follow.follows(50), "it lives");
        assert!(follow.tasks.get(&50).is_some_and(|task: &Task| task.gone.is_none()));
    }
}
