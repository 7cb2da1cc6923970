//! Which task had the CPU while another could have run: waits for a CPU by holder.
//!
//! This is no saving: the holder's work may be needed.

use crate::path::Subject;
use crate::timeline::{Run, Timeline};
use deadweight_trace::ids::{Cpu, TaskId};
use deadweight_trace::units::Ns;

/// An idle CPU takes a task in less time than this, also a virtual one: else a quota or a hypervisor keeps the task from
/// running.
pub(crate) const LATE: Ns = Ns(1_000_000);

/// The holder of a CPU that a task of the subject waited for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuHolder {
    /// A task of the subject.
    Own(TaskId),
    /// Another task of the machine.
    Outside(TaskId),
    /// The recorder: its time is tracing overhead.
    Recorder,
    /// No task: the CPU had to wake up or switch first, or it is not known which CPU it was.
    Nobody,
}

/// The holders of CPUs, for one wait after the other: fast in order of time.
pub(crate) struct CpuHolders<'t> {
    pub(super) timeline: &'t Timeline,
    pub(super) subject: &'t Subject,
    /// By CPU: its entry that was found last.
    near: Vec<usize>,
    parts: Vec<(Ns, CpuHolder)>,
}

impl<'t> CpuHolders<'t> {
    pub(crate) fn new(timeline: &'t Timeline, subject: &'t Subject) -> Self {
        Self { timeline, subject, near: vec![0; timeline.held.len()], parts: Vec::new() }
    }

    /// Which tasks had the CPU that `task` got next, while it waited from `from` to `to` in its span `index`.
    /// The parts are in order of time and add up to `to - from`.
    pub(crate) fn of(
        &mut self,
        (task, index): (TaskId, usize),
        from: Ns,
        to: Ns,
    ) -> &[(Ns, CpuHolder)] {
        let parts = &mut self.parts;
        parts.clear();
        let mut reached = from;
        if let Some(cpu) = next_cpu(self.timeline, task, index)
            && let Some(near) = self.near.get_mut(usize::from(cpu.0))
        {
            for (start, end, who) in self.timeline.holders_after(near, cpu, from, to) {
                push(parts, start - reached, CpuHolder::Nobody);
                push(parts, end - start, holder(self.timeline, self.subject, who));
                reached = end;
            }
        }
        push(parts, to - reached, CpuHolder::Nobody);
        parts
    }
}

/// How long, between `from` and `to`, `task` could have run while the recorder had its CPU.
pub(crate) fn held_up(
    timeline: &Timeline,
    subject: &Subject,
    task: TaskId,
    from: Ns,
    to: Ns,
) -> Ns {
    kept_from_cpu(timeline, subject, task, (from, to), |who| who == CpuHolder::Recorder)
}

/// How long, between these two times, `task` could have run while such a holder had its CPU.
pub(crate) fn kept_from_cpu(
    timeline: &Timeline,
    subject: &Subject,
    task: TaskId,
    (from, to): (Ns, Ns),
    by: impl Fn(CpuHolder) -> bool,
) -> Ns {
    let of = timeline.task(task);
    let Some(first) = of.span_at(from) else { return Ns::ZERO };
    let waits = (first..of.spans.len())
        .take_while(|index| of.spans[*index].start < to)
        .filter(|index| of.spans[*index].run() == Run::Runnable);
    let mut holders = CpuHolders::new(timeline, subject);
    let kept = waits.map(|index| {
        let (start, end) = (of.spans[index].start.max(from), of.span_end(index).min(to));
        let parts = holders.of((task, index), start, end).iter();
        parts.filter(|(_, who)| by(*who)).map(|(ns, _)| *ns).sum()
    });
    kept.sum()
}

impl CpuHolder {
    /// Whether it is no task of the subject: on a quiet machine, without recording, it would not be there.
    pub(crate) fn is_foreign(self) -> bool {
        matches!(self, Self::Outside(_) | Self::Recorder)
    }
}

fn holder(timeline: &Timeline, subject: &Subject, who: Option<TaskId>) -> CpuHolder {
    match who {
        None => CpuHolder::Nobody,
        Some(task) if subject.owns(task) => CpuHolder::Own(task),
        Some(task) if timeline.task(task).recorder => CpuHolder::Recorder,
        Some(task) => CpuHolder::Outside(task),
    }
}

fn push(parts: &mut Vec<(Ns, CpuHolder)>, time: Ns, holder: CpuHolder) {
    match parts.last_mut() {
        _ if time == Ns::ZERO => {}
        Some((ns, last)) if *last == holder => *ns += time,
        _ => parts.push((time, holder)),
    }
}

/// The CPU that a task ran on after its span `index`; its last CPU before if it never ran again.
fn next_cpu(timeline: &Timeline, task: TaskId, index: usize) -> Option<Cpu> {
    let (before, after) = timeline.task(task).spans.split_at(index);
    after.iter().chain(before.iter().rev()).find_map(|s| match s.run() {
        Run::OnCpu(cpu) => Some(cpu),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::tests::read;

    #[test]
    fn a_task_that_never_ran_again_waited_for_the_cpu_that_it_lost() {
        let read = read(
            "cpus 2\ntask 1 main\ntask 9 other\n0 [1] cpu1 on\n100 [1] exit\n200 [1] off preempted\n\
             200 [9] cpu1 on\n900 [1] cpu1 on\n900 [1] off dead",
        );
        let spans = &read.timeline.task(TaskId::at(0)).spans;
        let index = spans.iter().position(|span| span.run() == Run::Runnable).unwrap();
        let at = (TaskId::at(0), index);
        let subject = &read.path.subject;
        let mut holders = CpuHolders::new(&read.timeline, subject);
        let parts = holders.of(at, Ns(200), Ns(900));
        assert_eq!(parts, [(Ns(700), CpuHolder::Outside(TaskId::at(1)))]);
    }

    #[test]
    fn time_held_up_by_the_recorder_is_measured() {
        let read = read(
            "cpus 1\nrecorders 9\ntask 1 main\ntask 9 us\n0 [1] cpu0 on\n100 [1] exit\n\
             200 [1] off preempted\n200 [9] cpu0 on\n300 [9] off blocked\n700 [9] cpu0 on\n\
             800 [9] off blocked\n900 [1] cpu0 on\n900 [1] off dead",
        );
        let held =
            |from, to| held_up(&read.timeline, &read.path.subject, TaskId::at(0), Ns(from), Ns(to));
        assert_eq!([held(0, 200), held(0, 250), held(0, 1000)], [Ns(0), Ns(50), Ns(200)]);
    }
}
