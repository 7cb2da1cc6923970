//! The critical path: the chain of spans that the wall time consisted of, with other readings of the same run
//! beside it.
//!
//! - In: a timeline and a subject.
//! - Out: a [`Path`], whose pieces tile the wall time, so the ledger adds up by construction.
//! - Must not know: costs. A piece says whose spans fill an interval; accounts are charged later.
//!
//! The path of a program that serves goes through its busy tasks (`service`). Every other path is walked
//! backwards from the subject's end: a waker explains only the interval in which it was waited for, then the walk
//! returns to the waiter (`docs/method.md`).

pub mod causes;
pub mod cpu_holder;
pub mod overlap;
pub mod projection;
mod service;
mod subject;
pub mod teams;
#[cfg(test)]
pub(crate) mod tests;
mod walk;
pub mod whatif;

use crate::timeline::{Block, Run, Span, Timeline, WokenBy};
use deadweight_trace::ids::{TaskId, Tid};
use deadweight_trace::units::Ns;

pub use service::Service;
pub(crate) use service::TAKES_CONNECTIONS;
pub use subject::{Candidate, NoProcess};
pub(crate) use walk::last_task;

/// The process whose wall time is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The process.
    pub process: Tid,
    /// Its first task.
    pub root: TaskId,
    /// Where its wall time starts.
    pub start: Ns,
    /// Where it ends.
    pub end: Ns,
    /// For each task of the timeline: whether it is the subject's own.
    pub own: Vec<bool>,
    /// Of a program that serves: it does not end by itself, and its idle time costs nobody anything.
    pub service: Option<Service>,
    /// The processes that the wanted name fits, in order of their start; empty if none was named.
    pub candidates: Vec<Candidate>,
}

/// The subject's wall time as a chain.
#[derive(Clone, Debug)]
pub struct Path {
    /// Whose wall time.
    pub subject: Subject,
    /// In order of time, without gap or overlap, from `subject.start` to `subject.end`.
    pub pieces: Vec<Piece>,
}

/// An interval of the wall time, and the task that it is charged through.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// From when.
    pub start: Ns,
    /// Until when; later than `start`.
    pub end: Ns,
    /// The task whose spans fill this interval. `Run::OnCpu` spans are its work, `Runnable` its wait for a
    /// CPU, `Blocked` a wait that ends outside the subject.
    pub task: TaskId,
    /// Whether the task's own spans do not explain the interval.
    pub unexplained: bool,
}

/// A wait on the path that a task of the subject ended: it is filled with what that task did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The wait: an index into `Timeline::blocks`.
    pub block: u32,
    /// The waker.
    pub waker: TaskId,
    /// What part of it lies on the path.
    pub start: Ns,
    /// See `start`.
    pub end: Ns,
}

impl Subject {
    /// Whether `task` is the subject's own.
    #[must_use]
    pub fn owns(&self, task: TaskId) -> bool {
        self.own.get(task.index()).copied().unwrap_or(false)
    }

    /// The subject's task that ended `block`, if one did.
    #[must_use]
    pub fn waker(&self, block: &Block) -> Option<TaskId> {
        match block.woken_by {
            WokenBy::Task(by) if self.owns(by) => Some(by),
            _ => None,
        }
    }

    /// How many tasks are its own.
    pub(crate) fn tasks(&self) -> usize {
        self.own.iter().filter(|own| **own).count()
    }

    /// The wall time.
    #[must_use]
    pub fn wall(&self) -> Ns {
        self.end - self.start
    }
}

impl Piece {
    /// The parts of its task's spans that fill it, with their indices: `(from, to, index, span)`. Empty
    /// where the task was not alive.
    pub fn spans<'t>(
        &self,
        timeline: &'t Timeline,
    ) -> impl Iterator<Item = (Ns, Ns, usize, &'t Span)> + use<'t> {
        self.spans_after(timeline, 0)
    }

    /// The same; fast if the first of them is soon after span `near` of the task.
    pub(crate) fn spans_after<'t>(
        &self,
        timeline: &'t Timeline,
        near: usize,
    ) -> impl Iterator<Item = (Ns, Ns, usize, &'t Span)> + use<'t> {
        let (from, to) = (self.start, self.end);
        let task = timeline.task(self.task);
        let first = task.span_after(near, from);
        (first..task.spans.len())
            .map_while(move |i| {
                let span = &task.spans[i];
                let (start, end) = (span.start.max(from), task.span_end(i).min(to));
                (span.start < to).then_some((start, end, i, span))
            })
            .filter(|(start, end, _, _)| start < end)
    }
}

impl Path {
    /// The waits on the path that ended outside the subject: `(from, to, waiter, block index)`.
    pub fn waits<'p>(
        &'p self,
        timeline: &'p Timeline,
    ) -> impl Iterator<Item = (Ns, Ns, TaskId, u32)> + 'p {
        self.pieces.iter().filter(|p| !p.unexplained).flat_map(move |piece| {
            let task = piece.task;
            piece.spans(timeline).filter_map(move |(start, end, _, span)| match span.run() {
                Run::Blocked(block) => Some((start, end, task, block)),
                _ => None,
            })
        })
    }
}
