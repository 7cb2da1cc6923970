//! What-if: the wall time if some work took no time, by a replay of the schedule over the recorded graph.
//!
//! Every own task repeats what it did; births, wake-ups and exits keep their order; at most as many tasks
//! run at a time as the machine has CPUs. So no saving is promised that only moves the wait elsewhere.
//! Dependencies through shared flags leave no edge, so a task that only polls gives a range ([`Saving`]).

mod replay;
#[cfg(test)]
mod tests;

use crate::path::Subject;
use crate::path::cpu_holder::{CpuHolder, CpuHolders};
use crate::timeline::{Run, Task, Timeline, WokenBy};
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use replay::Replay;

/// A task's end counts as polled (caused by a flag, not by work) if it spent this share of its life in
/// waits that a clock ended.
const POLLING: f64 = 0.8;

/// How much of a span of a task takes no time: `(task, span index, its length)`.
pub type Removal<'r> = &'r dyn Fn(TaskId, usize, Ns) -> Ns;

/// The recorded graph.
#[derive(Debug)]
pub struct WhatIf<'a> {
    timeline: &'a Timeline,
    subject: &'a Subject,
    cpus: usize,
    /// By task, in order of time: what it does for other tasks.
    marks: Vec<Vec<Mark>>,
    /// Tasks whose end the subject's end waits for.
    needed: Vec<bool>,
    /// Tasks that only poll.
    polling: Vec<bool>,
    /// By task: spans that wait for a CPU, with the part in which no other own task held it. The schedule
    /// knows no outsiders, so that part is repeated as it was.
    delays: Vec<Vec<(usize, Ns)>>,
    /// The replay's own wall time, with nothing removed.
    base: Ns,
}

/// Something that a task does for another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    at: Ns,
    does: Does,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Does {
    /// Gives birth.
    Birth(TaskId),
    /// Ends the wait with this index.
    Wake(u32),
}

/// What removing something saves of the wall time.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Saving {
    /// If every task still has to end as it did.
    pub low: Ns,
    /// If tasks that only poll end as soon as their flag is set. Equal to `low` without such tasks.
    pub high: Ns,
}

impl<'a> WhatIf<'a> {
    /// The graph of the subject's tasks, to be scheduled on `cpus` CPUs (at least one).
    #[must_use]
    pub fn new(timeline: &'a Timeline, subject: &'a Subject, cpus: u16) -> Self {
        let mut graph = Self {
            timeline,
            subject,
            cpus: usize::from(cpus.max(1)),
            marks: marks(timeline, subject),
            needed: needed(timeline, subject),
            polling: polling(timeline, subject),
            delays: delays(timeline, subject),
            base: Ns::ZERO,
        };
        graph.base = Replay::new(&graph, &|_, _, _| Ns::ZERO, false).run();
        graph
    }

    /// How far the replay with nothing removed is from the recorded wall time, as a share of it: what the
    /// scheduler does not model. Above 0.1, savings are doubtful.
    #[must_use]
    pub fn error(&self) -> f64 {
        let wall = self.subject.wall();
        let off = (self.base - wall) + (wall - self.base);
        off.share_of(wall)
    }

    /// What is saved if `removal` takes no time, everywhere.
    #[must_use]
    pub fn saving(&self, removal: Removal<'_>) -> Saving {
        let low = self.saved(Replay::new(self, removal, false).run());
        let polls = self.polling.iter().any(|p| *p);
        let high = if polls { self.saved(Replay::new(self, removal, true).run()) } else { low };
        Saving { low, high: high.max(low) }
    }

    /// The saving at the scale of the recorded wall time.
    fn saved(&self, replayed: Ns) -> Ns {
        if self.base == Ns::ZERO {
            return Ns::ZERO;
        }
        let wall = self.subject.wall();
        (self.base - replayed).scaled(wall.0, self.base.0).min(wall)
    }
}

fn marks(timeline: &Timeline, subject: &Subject) -> Vec<Vec<Mark>> {
    let mut marks: Vec<Vec<Mark>> = vec![Vec::new(); timeline.tasks.len()];
    for (index, task) in timeline.tasks.iter().enumerate() {
        let parent = task.parent.filter(|p| subject.own[index] && subject.owns(*p));
        if let Some(parent) = parent {
            let does = Does::Birth(TaskId::at(index));
            marks[parent.index()].push(Mark { at: task.birth, does });
        }
    }
    for (index, block) in timeline.blocks.iter().enumerate() {
        let Ok(number) = u32::try_from(index) else { break };
        if let Some(waker) = subject.waker(block).filter(|_| subject.owns(block.task)) {
            marks[waker.index()].push(Mark { at: block.end, does: Does::Wake(number) });
        }
    }
    for task in &mut marks {
        task.sort_unstable();
    }
    marks
}

fn delays(timeline: &Timeline, subject: &Subject) -> Vec<Vec<(usize, Ns)>> {
    let mut delays = vec![Vec::new(); timeline.tasks.len()];
    let mut holders = CpuHolders::new(timeline, subject);
    for (index, task) in timeline.tasks.iter().enumerate().filter(|(i, _)| subject.own[*i]) {
        for (span, _) in task.spans.iter().enumerate().filter(|(_, s)| s.run() == Run::Runnable) {
            let (from, to) = (task.spans[span].start, task.span_end(span));
            let place = (TaskId::at(index), span);
            let parts = holders.of(place, from, to);
            let delay = parts.iter().filter(|(_, who)| !matches!(who, CpuHolder::Own(_)));
            let delay: Ns = delay.map(|(ns, _)| *ns).sum();
            if delay > Ns::ZERO {
                delays[index].push((span, delay));
            }
        }
    }
    delays
}

/// A task that ended by itself within the wall time was waited for, whether an edge shows it or not:
/// joining a thread that is already gone leaves no edge.
fn needed(timeline: &Timeline, subject: &Subject) -> Vec<bool> {
    let needed = |(index, task): (usize, &Task)| {
        subject.own[index] && task.died && task.killed.is_none() && task.end <= subject.end
    };
    let mut needed: Vec<bool> = timeline.tasks.iter().enumerate().map(needed).collect();
    let last = crate::path::last_task(timeline, subject);
    needed[last.index()] = true;
    needed
}

/// Tasks that ended by themselves, were never woken by another own task, and spent their lives
/// in waits that a clock ended.
fn polling(timeline: &Timeline, subject: &Subject) -> Vec<bool> {
    let mut by_clock = vec![Ns::ZERO; timeline.tasks.len()];
    let mut woken = vec![false; timeline.tasks.len()];
    for block in &timeline.blocks {
        let task = block.task.index();
        match block.woken_by {
            WokenBy::Interrupt(crate::timeline::kernel_stacks::Interrupt::Timer) => {
                by_clock[task] += block.end - block.start;
            }
            WokenBy::Task(by) if subject.owns(by) => woken[task] = true,
            _ => {}
        }
    }
    let last = crate::path::last_task(timeline, subject);
    let polls = |(index, task): (usize, &Task)| {
        let life = task.end - task.birth;
        subject.own[index]
            && task.died
            && task.self_exit
            && TaskId::at(index) != last
            && task.process == subject.process
            && !woken[index]
            && by_clock[index].share_of(life) >= POLLING
            && task.spans.iter().filter(|s| matches!(s.run(), Run::Blocked(_))).count() >= 2
    };
    timeline.tasks.iter().enumerate().map(polls).collect()
}
