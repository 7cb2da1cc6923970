//! The bounded walk. Time only goes down, so every span is visited once: the cost is that of the spans plus
//! a search per jump, for any number of tasks.

use super::{Join, Path, Piece, Subject, service};
use crate::timeline::{Run, Task, Timeline};
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::cmp::Reverse;

/// A consistent recording never needs more successive jumps than this without a step back in time;
/// contradictory records must not make the walk endless.
const JUMPS: usize = 10_000;

/// A waiter to return to.
#[derive(Copy, Clone, Debug)]
struct Waiter {
    task: TaskId,
    low: Ns,
}

struct Walk<'a> {
    timeline: &'a Timeline,
    subject: &'a Subject,
    /// Where the walk is: in this task, at this time, to explain what lies after `low`.
    task: TaskId,
    time: Ns,
    low: Ns,
    waiters: Vec<Waiter>,
    /// Whether a task is among the waiters.
    waits: Vec<bool>,
    /// By task: the span where the walk was last. It comes back to an earlier one.
    left: Vec<usize>,
    jumps: usize,
    pieces: Vec<Piece>,
    /// If they are asked for.
    joins: Option<Vec<Join>>,
}

impl Path {
    /// Divides the subject's wall time.
    ///
    /// # Panics
    /// If the pieces do not tile it: the law of the ledger.
    #[must_use]
    pub fn walk(timeline: &Timeline, subject: &Subject) -> Self {
        let path = match &subject.service {
            Some(service) => service::busy(timeline, subject, service),
            None => {
                let mut pieces = Walk::new(timeline, subject, None).all().pieces;
                pieces.reverse();
                Self { subject: subject.clone(), pieces }
            }
        };
        let mut reached = subject.start;
        for piece in &path.pieces {
            assert!(piece.start == reached && piece.end > reached, "the pieces must tile");
            reached = piece.end;
        }
        assert!(reached == subject.end, "the pieces must fill the wall time");
        path
    }

    /// Waits whose wakers fill them, in order of time. There may be millions, and a report needs none: they are found by
    /// another walk.
    #[must_use]
    pub fn joins(&self, timeline: &Timeline) -> Vec<Join> {
        if self.subject.service.is_some() {
            return Vec::new();
        }
        let mut joins = Walk::new(timeline, &self.subject, Some(Vec::new())).all().joins;
        joins.iter_mut().for_each(|joins| joins.reverse());
        joins.unwrap_or_default()
    }
}

/// The task of the subject's process that was the last to start dying: a wait for the process is a wait for
/// this task. If another task killed it, the walk continues there.
pub(crate) fn last_task(timeline: &Timeline, subject: &Subject) -> TaskId {
    // Threads without a recorded end were still alive, unless another task ended the process just then.
    let faded = |task: &Task| task.exit.is_some() && task.end >= subject.end;
    let mine = timeline.tasks.iter().zip(&subject.own);
    let ended =
        mine.filter(|(t, own)| **own && t.process == subject.process).any(|(t, _)| faded(t));
    last_by(timeline, subject, |task| match task.exit {
        Some(exit) => exit,
        None if ended && !task.died => Ns::ZERO,
        None => task.end,
    })
}

/// The task of the subject's process whose last switch was the latest.
fn last_to_fade(timeline: &Timeline, subject: &Subject) -> TaskId {
    last_by(timeline, subject, |task| task.end)
}

fn last_by(timeline: &Timeline, subject: &Subject, end: impl Fn(&Task) -> Ns) -> TaskId {
    (0..timeline.tasks.len())
        .filter(|i| {
            let task = &timeline.tasks[*i];
            subject.own[*i] && task.process == subject.process && task.birth < subject.end
        })
        .max_by_key(|i| {
            let task = &timeline.tasks[*i];
            (end(task).min(subject.end), task.self_exit, Reverse(*i))
        })
        .map_or(subject.root, TaskId::at)
}

impl<'a> Walk<'a> {
    fn new(timeline: &'a Timeline, subject: &'a Subject, joins: Option<Vec<Join>>) -> Self {
        Self {
            timeline,
            subject,
            task: last_to_fade(timeline, subject),
            time: subject.end,
            low: subject.start,
            waiters: Vec::new(),
            waits: vec![false; timeline.tasks.len()],
            left: timeline.tasks.iter().map(|task| task.spans.len()).collect(),
            jumps: 0,
            pieces: Vec::new(),
            joins,
        }
    }

    /// The whole path, last piece first.
    fn all(mut self) -> Self {
        // A task that exited earlier may take longer to be destroyed. That is part of the end's own time,
        // but does not decide the end.
        let last = last_task(self.timeline, self.subject);
        if self.task != last {
            let fading = self.timeline.task(self.task);
            let decided = self.timeline.task(last).end.max(self.subject.start);
            self.charge(fading.end.max(decided), true);
            // It may even have been born after the end was decided: the time between is unknown.
            self.charge(fading.birth.max(decided), false);
            self.task = last;
        }
        self.go();
        self
    }

    fn go(&mut self) {
        loop {
            if self.time > self.low {
                self.step();
            } else if let Some(waiter) = self.waiters.pop() {
                self.waits[waiter.task.index()] = false;
                self.task = waiter.task;
                self.low = waiter.low;
            } else {
                return;
            }
        }
    }

    /// Explains some time, or jumps to the task that explains it.
    fn step(&mut self) {
        let task = self.timeline.task(self.task);
        let mut floor = self.low;
        if let Some((at, by)) = task.killed.filter(|(_, by)| self.may_go_to(*by)) {
            if self.time == at && self.came_from_its_death() {
                self.jump(by);
                return;
            }
            if self.time > at {
                floor = floor.max(at);
            }
        }
        if self.time > task.end {
            self.charge(task.end.max(floor), true);
            return;
        }
        let after = task.spans_before(self.left[self.task.index()], self.time);
        self.left[self.task.index()] = after;
        match after.checked_sub(1) {
            Some(index) => self.spans(index, floor),
            None => self.birth(task.parent),
        }
    }

    /// Charges this task's spans from `index` down to `floor`, or down to a wait that another task of the
    /// subject ended: there it jumps.
    fn spans(&mut self, index: usize, floor: Ns) {
        let task = self.timeline.task(self.task);
        let mut index = index;
        let mut reached = self.time;
        loop {
            let span = task.spans[index];
            let start = span.start.max(floor);
            if let Run::Blocked(block) = span.run() {
                let waker = self.subject.waker(&self.timeline.blocks[block as usize]);
                if let Some(waker) = waker {
                    if reached < self.time {
                        self.charge(reached, false);
                    }
                    self.join(block, waker, start);
                    return;
                }
            }
            reached = start;
            if start == floor || index == 0 {
                break;
            }
            index -= 1;
        }
        self.charge(reached, false);
    }

    /// The wait from `start` until now was ended by `waker`: the waker's work explains it.
    fn join(&mut self, block: u32, waker: TaskId, start: Ns) {
        if !self.may_go_to(waker) || self.jumps > JUMPS {
            // By the records, the two wait for each other.
            self.charge(start, true);
            return;
        }
        let join = Join { block, waker, start, end: self.time };
        self.joins.iter_mut().for_each(|joins| joins.push(join));
        self.waiters.push(Waiter { task: self.task, low: self.low });
        self.waits[self.task.index()] = true;
        self.low = start;
        self.jump(waker);
    }

    fn birth(&mut self, parent: Option<TaskId>) {
        match parent.filter(|p| self.may_go_to(*p)) {
            Some(parent) => self.jump(parent),
            None => self.charge(self.low, true),
        }
    }

    /// Whether the walk reached this point from the same task's next span. From another task's wait or
    /// birth, the walk asks what this task did while it lived, not which task killed it.
    fn came_from_its_death(&self) -> bool {
        self.pieces.last().is_some_and(|p| p.task == self.task && p.start == self.time)
    }

    fn may_go_to(&self, task: TaskId) -> bool {
        task != self.task && self.subject.owns(task) && !self.waits[task.index()]
    }

    fn jump(&mut self, to: TaskId) {
        self.task = to;
        self.jumps += 1;
        if self.jumps > JUMPS {
            self.charge(self.low, true);
        }
    }

    /// The time from `start` until now is this task's.
    fn charge(&mut self, start: Ns, unexplained: bool) {
        if start >= self.time {
            return;
        }
        self.jumps = 0;
        let (task, end) = (self.task, self.time);
        self.time = start;
        match self.pieces.last_mut() {
            Some(last) if last.task == task && last.unexplained == unexplained => {
                last.start = start;
            }
            _ => self.pieces.push(Piece { start, end, task, unexplained }),
        }
    }
}
