//! The simple projection: a second reading of the same wall time, to compare with the path.
//!
//! Own tasks on a CPU share each instant equally; without any, the instant belongs to the wait of the task
//! that runs next. It is better than the path where CPUs are short and where wake-ups are a scheduler's
//! hand-overs, worse where background work overlaps the real wait. So it is a cross-check and never the
//! ledger.

use crate::path::Subject;
use crate::path::causes::{Cause, Totals, count};
use crate::path::cpu_holder::CpuHolders;
use crate::timeline::{Run, Timeline};
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Share of the wall time from which on two readings are both shown.
pub const TWO_READINGS: f64 = 0.30;

/// A task and its current span.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cursor {
    /// Where its current span ends.
    until: Ns,
    task: TaskId,
    span: usize,
}

struct Sweep<'a> {
    timeline: &'a Timeline,
    subject: &'a Subject,
    cursors: BinaryHeap<Reverse<Cursor>>,
    /// Tasks on a CPU with their spans.
    running: Vec<(TaskId, usize)>,
    /// By task: its span that was found last.
    near: Vec<usize>,
    /// Everything before this is counted.
    time: Ns,
    totals: Totals,
    holders: CpuHolders<'a>,
}

/// The subject's wall time by cause. Adds up to the wall time.
#[must_use]
pub fn simple(timeline: &Timeline, subject: &Subject) -> BTreeMap<Cause, Ns> {
    let mut sweep = Sweep {
        timeline,
        subject,
        cursors: BinaryHeap::new(),
        running: Vec::new(),
        near: vec![0; timeline.tasks.len()],
        time: subject.start,
        totals: Totals::default(),
        holders: CpuHolders::new(timeline, subject),
    };
    for index in (0..timeline.tasks.len()).filter(|i| subject.own[*i]) {
        sweep.begin(TaskId::at(index));
    }
    sweep.go();
    sweep.totals.into_map()
}

impl Sweep<'_> {
    /// A task joins in at the subject's start, or waits for its own birth.
    fn begin(&mut self, id: TaskId) {
        let task = self.timeline.task(id);
        if task.birth >= self.subject.end || task.end <= self.subject.start {
            return;
        }
        match task.span_at(self.subject.start) {
            Some(span) => {
                self.enter(id, span);
                let until = task.span_end(span);
                self.cursors.push(Reverse(Cursor { until, task: id, span }));
            }
            // Its first span is entered at its birth.
            None => {
                let (until, span) = (task.birth, usize::MAX);
                self.cursors.push(Reverse(Cursor { until, task: id, span }));
            }
        }
    }

    fn enter(&mut self, task: TaskId, span: usize) {
        if let Some(Run::OnCpu(_)) = self.timeline.task(task).spans.get(span).map(|s| s.run()) {
            self.running.push((task, span));
        }
    }

    fn go(&mut self) {
        let mut last = self.subject.root;
        while let Some(Reverse(mut cursor)) = self.cursors.pop() {
            let task = self.timeline.task(cursor.task);
            loop {
                let next = cursor.span.wrapping_add(1);
                let runs = task.spans.get(next).is_some_and(|s| matches!(s.run(), Run::OnCpu(_)));
                if runs || !self.running.is_empty() {
                    // Counted time only changes hands where a task begins or stops running.
                    self.count(cursor.until.min(self.subject.end), cursor.task);
                    last = cursor.task;
                }
                let id = cursor.task;
                self.running.retain(|(t, _)| *t != id);
                if next >= task.spans.len() || cursor.until >= self.subject.end {
                    break;
                }
                self.enter(id, next);
                cursor = Cursor { until: task.span_end(next), task: id, span: next };
                if self.cursors.peek().is_some_and(|Reverse(other)| *other < cursor) {
                    self.cursors.push(Reverse(cursor));
                    break;
                }
            }
        }
        self.count(self.subject.end, last);
    }

    /// Counts the time from the latest instant counted to `until`, where `next` continues.
    fn count(&mut self, until: Ns, next: TaskId) {
        let length = until - self.time;
        if length == Ns::ZERO {
            return;
        }
        let from = self.time;
        self.time = until;
        if self.running.is_empty() {
            self.count_wait(next, from, until);
            return;
        }
        let shares = self.running.len() as u64;
        for (position, (task, span)) in self.running.iter().enumerate() {
            // Whole nanoseconds that add up: the first tasks get the remainder.
            let share = length.0 / shares + u64::from((position as u64) < length.0 % shares);
            let part = (from, from + Ns(share));
            count(&mut self.totals, &mut self.holders, (*task, *span), part);
        }
    }

    /// No task ran: the time is the wait of the task that runs next.
    fn count_wait(&mut self, next: TaskId, from: Ns, until: Ns) {
        let task = self.timeline.task(next);
        let near = &mut self.near[next.index()];
        *near = task.span_after(*near, from);
        let mut reached = from;
        for index in *near..task.spans.len() {
            let start = task.spans[index].start.max(reached);
            let end = task.span_end(index).min(until);
            if start >= until {
                break;
            }
            if start < end {
                self.totals.add(Cause::Unexplained, start - reached);
                count(&mut self.totals, &mut self.holders, (next, index), (start, end));
                reached = end;
            }
        }
        self.totals.add(Cause::Unexplained, until - reached);
    }
}

#[cfg(test)]
mod tests;
