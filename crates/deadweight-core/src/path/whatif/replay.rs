//! List scheduling of the recorded graph: the first ready task gets a CPU first, and gives it back after a
//! time slice if others wait.
//!
//! Tasks are walked span by span as the schedule reaches them: nothing is copied. A mark is where a task
//! creates another or ends another's wait; its own end is none. The CPU time up to the next mark, wait or end is
//! one step, so the cost is that of the spans plus a little per edge.

use super::{Does, Removal, WhatIf};
use crate::timeline::Run;
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How long a task keeps its CPU while others wait: about Linux's time slice.
const SLICE: Ns = Ns(3_000_000);

/// No more slices than this in a wall time: a recording of hours needs no finer ones.
const SLICES: u64 = 10_000;

/// What a task does next.
#[derive(Copy, Clone, Debug)]
enum Step {
    /// Runs this long.
    Run(Ns),
    /// Waits this long for something outside.
    Outside(Ns),
    /// Waits for another task to end the wait with this index.
    For(u32),
    /// Does something for another task.
    Do(Does),
    /// Has ended.
    End,
}

/// The position of a task in its recorded life.
#[derive(Copy, Clone, Debug, Default)]
struct Place {
    span: usize,
    time: Ns,
    mark: usize,
    /// The rest of the current run.
    left: Ns,
    waiting: Option<u32>,
    begun: bool,
    through: bool,
}

/// An end of a run or of an outside wait: when, its order of planning, the task, and which.
type Planned = Reverse<(Ns, u64, TaskId, bool)>;

pub(super) struct Replay<'g, 'a> {
    graph: &'g WhatIf<'a>,
    removal: Removal<'g>,
    /// Whether tasks that poll end as soon as their flag is set.
    flag_is_seen: bool,
    places: Vec<Place>,
    ended: Vec<bool>,
    ready: VecDeque<TaskId>,
    planned: BinaryHeap<Planned>,
    order: u64,
    slice: Ns,
    free: usize,
    missing: usize,
    now: Ns,
    wall: Ns,
}

impl<'g, 'a> Replay<'g, 'a> {
    pub(super) fn new(graph: &'g WhatIf<'a>, removal: Removal<'g>, flag_is_seen: bool) -> Self {
        let timeline = graph.timeline;
        let mut replay = Self {
            graph,
            removal,
            flag_is_seen,
            places: vec![Place::default(); timeline.tasks.len()],
            ended: vec![false; timeline.blocks.len()],
            ready: VecDeque::new(),
            planned: BinaryHeap::new(),
            order: 0,
            slice: SLICE.max(Ns(graph.subject.wall().0 / SLICES)),
            free: graph.cpus,
            missing: 0,
            now: Ns::ZERO,
            wall: Ns::ZERO,
        };
        for index in 0..timeline.tasks.len() {
            replay.missing += usize::from(replay.is_needed(TaskId::at(index)));
        }
        replay
    }

    fn is_needed(&self, task: TaskId) -> bool {
        let index = task.index();
        self.graph.needed[index] && !(self.flag_is_seen && self.graph.polling[index])
    }

    /// The wall time of this schedule.
    pub(super) fn run(mut self) -> Ns {
        self.begin_all();
        loop {
            while self.free > 0
                && let Some(task) = self.ready.pop_front()
            {
                self.free -= 1;
                self.go_on(task);
                if self.missing == 0 {
                    return self.wall;
                }
            }
            let Some(Reverse((at, _, task, ran))) = self.planned.pop() else {
                if self.release() {
                    continue;
                }
                return self.wall.max(self.now);
            };
            self.now = at;
            if ran {
                self.after_slice(task);
            } else {
                self.ready.push_back(task);
            }
            if self.missing == 0 {
                return self.wall;
            }
        }
    }

    /// Tasks that were alive when the subject started begin then, all others at their births.
    fn begin_all(&mut self) {
        let (timeline, subject) = (self.graph.timeline, self.graph.subject);
        for (index, task) in timeline.tasks.iter().enumerate().filter(|(i, _)| subject.own[*i]) {
            let born_inside = task.parent.is_some_and(|p| subject.owns(p));
            if !born_inside || task.birth < subject.start {
                self.begin(TaskId::at(index));
            }
        }
    }

    fn begin(&mut self, task: TaskId) {
        let entry = self.graph.timeline.task(task);
        let place = &mut self.places[task.index()];
        if place.begun {
            return;
        }
        place.begun = true;
        place.time = self.graph.subject.start.max(entry.birth);
        let spans = entry.spans.partition_point(|s| s.start <= place.time);
        place.span = spans.saturating_sub(1);
        let (marks, time) = (&self.graph.marks[task.index()], place.time);
        place.mark = marks.partition_point(|m| m.at < time);
        self.ready.push_back(task);
    }

    /// A task's slice is over.
    fn after_slice(&mut self, task: TaskId) {
        if self.places[task.index()].left == Ns::ZERO || self.ready.is_empty() {
            self.go_on(task);
        } else {
            self.free += 1;
            self.ready.push_back(task);
        }
    }

    /// A task that has a CPU continues until it runs, waits, or ends.
    fn go_on(&mut self, task: TaskId) {
        loop {
            let left = self.places[task.index()].left;
            if left > Ns::ZERO {
                let slice = left.min(self.slice);
                self.places[task.index()].left = left - slice;
                self.plan(task, slice, true);
                return;
            }
            match self.next(task) {
                Step::Run(time) => self.places[task.index()].left = time,
                Step::Outside(time) => {
                    self.free += 1;
                    self.plan(task, time, false);
                    return;
                }
                Step::For(block) => {
                    if !self.ended[block as usize] {
                        self.places[task.index()].waiting = Some(block);
                        self.free += 1;
                        return;
                    }
                }
                Step::Do(Does::Birth(child)) => self.begin(child),
                Step::Do(Does::Wake(block)) => self.wake(block),
                Step::End => {
                    self.end(task);
                    return;
                }
            }
        }
    }

    fn plan(&mut self, task: TaskId, time: Ns, ran: bool) {
        self.order += 1;
        self.planned.push(Reverse((self.now + time, self.order, task, ran)));
    }

    fn wake(&mut self, block: u32) {
        self.ended[block as usize] = true;
        let waiter = self.graph.timeline.blocks[block as usize].task;
        if self.places[waiter.index()].waiting == Some(block) {
            self.places[waiter.index()].waiting = None;
            self.ready.push_back(waiter);
        }
    }

    fn end(&mut self, task: TaskId) {
        self.free += 1;
        if !self.places[task.index()].through {
            self.places[task.index()].through = true;
            if self.is_needed(task) {
                self.missing -= 1;
                self.wall = self.now;
            }
        }
    }

    /// No task can continue, as records contradict each other: the task whose recorded wait ended first
    /// does. Returns whether there was one.
    fn release(&mut self) -> bool {
        let blocks = &self.graph.timeline.blocks;
        let waits = self.places.iter().filter_map(|p| p.waiting);
        let Some(block) = waits.min_by_key(|b| (blocks[*b as usize].end, *b)) else {
            return false;
        };
        self.wake(block);
        true
    }

    /// The next step of a task.
    fn next(&mut self, task: TaskId) -> Step {
        let graph = self.graph;
        let entry = graph.timeline.task(task);
        let end = entry.end.min(graph.subject.end);
        let marks = &graph.marks[task.index()];
        let mut run = Ns::ZERO;
        loop {
            let place = &mut self.places[task.index()];
            let through = place.time >= end || place.span >= entry.spans.len();
            // What it did for others at its very end counts as done before the end.
            let due = marks.get(place.mark).filter(|m| through || m.at <= place.time);
            if run > Ns::ZERO && (through || due.is_some()) {
                return Step::Run(run);
            }
            if let Some(mark) = due {
                place.mark += 1;
                return Step::Do(mark.does);
            }
            if through {
                return Step::End;
            }
            let index = place.span;
            let state = entry.spans[index].run();
            match state {
                Run::OnCpu(_) | Run::Unrecorded => run += self.part(task, end),
                Run::Runnable | Run::Blocked(_) if run > Ns::ZERO => return Step::Run(run),
                Run::Runnable => {
                    let waited = self.part(task, end);
                    let delays = &graph.delays[task.index()];
                    let delay = delays.binary_search_by_key(&index, |(span, _)| *span);
                    if let Ok(delay) = delay {
                        return Step::Outside(waited.min(delays[delay].1));
                    }
                }
                Run::Blocked(block) => {
                    let outside = self.part(task, end);
                    match graph.subject.waker(&graph.timeline.blocks[block as usize]) {
                        Some(by) if self.flag_is_seen && graph.polling[by.index()] => {}
                        Some(_) => return Step::For(block),
                        None => return Step::Outside(outside),
                    }
                }
            }
        }
    }

    /// Moves on to the end of a task's span, or to its next mark within it. Returns how long that takes.
    fn part(&mut self, task: TaskId, end: Ns) -> Ns {
        let entry = self.graph.timeline.task(task);
        let place = &mut self.places[task.index()];
        let index = place.span;
        let whole = (entry.spans[index].start, entry.span_end(index));
        let mark = self.graph.marks[task.index()].get(place.mark).map_or(Ns::MAX, |m| m.at);
        let until = match entry.spans[index].run() {
            Run::OnCpu(_) => whole.1.min(mark).min(end),
            _ => whole.1.min(end),
        };
        let from = place.time.max(whole.0);
        place.time = until;
        if until >= whole.1 {
            place.span += 1;
        }
        self.kept((task, index), whole, (from, until))
    }

    /// How much of a part of a span remains: the removal's share of the span is taken out evenly.
    fn kept(&self, (task, index): (TaskId, usize), whole: (Ns, Ns), part: (Ns, Ns)) -> Ns {
        let (length, part) = (whole.1 - whole.0, part.1 - part.0);
        let removed = (self.removal)(task, index, length).min(length);
        if removed == Ns::ZERO || length == Ns::ZERO {
            return part;
        }
        (length - removed).scaled(part.0, length.0)
    }
}
