//! A program that serves: it does not end by itself, so being idle costs nobody time.
//!
//! Its wall time is divided by what it is busy with. At each instant the path goes through a task that runs;
//! without any, through one that waits for a CPU, a disk or an answer; and only if all tasks wait for work,
//! the instant is idle. So the workers count, and not the process that only waits for them.

mod answering;
mod asking;
mod sides;
mod wakers;

use super::{Path, Piece, Subject};
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::{Block, Call, Run, Timeline, WokenBy};
use deadweight_trace::Trace;
use deadweight_trace::ids::{TaskId, Tid};
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use sides::Sides;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use wakers::Wakers;

/// The calls with which a program takes connections.
pub(crate) const TAKES_CONNECTIONS: [&str; 3] = ["accept", "accept4", "listen"];

/// What is known of a subject that serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Which side asks on each of its sockets.
    sides: Sides,
    /// The sleeps while a client waits for its answer, by task and start.
    pauses: BTreeSet<(TaskId, Ns)>,
    /// The waits for an answer by task and start, where many sockets were looked at, and the socket where it came.
    answers: BTreeMap<(TaskId, Ns), u32>,
    wakers: Wakers,
}

impl Service {
    /// Of a subject that serves; else none.
    pub(super) fn of(trace: &Trace, timeline: &Timeline, subject: &Subject) -> Option<Self> {
        if !serves(trace, timeline, subject) {
            return None;
        }
        let sides = Sides::of(trace, timeline, subject);
        let answers = asking::waits(trace, timeline, subject, &sides);
        let wakers = Wakers::of(trace, timeline, subject, &sides);
        let mut service = Self { sides, answers, wakers, ..Self::default() };
        service.pauses = answering::pauses(trace, timeline, subject, &service);
        Some(service)
    }

    /// Whether a client waits for its answer while this task sleeps.
    fn is_pause(&self, block: &Block) -> bool {
        self.pauses.contains(&(block.task, block.start))
    }

    /// Whether the program is the client at this object.
    pub(crate) fn asks(&self, object: u32) -> bool {
        self.sides.own.contains(&object)
    }

    /// Whether the peer at this object is a client; none if it is not known which side asks.
    pub(crate) fn is_asked(&self, object: u32) -> Option<bool> {
        (!self.sides.unknown.contains(&object)).then(|| self.sides.peer.contains(&object))
    }

    /// The socket where the wait is for an answer to a question of the program's own.
    pub(crate) fn awaits_answer(&self, timeline: &Timeline, block: &Block) -> Option<u32> {
        let call = || block.call.map(|call| &timeline.calls[call.index()]);
        match block.waits_for {
            WaitsFor::SocketData => call()?.object().filter(|object| self.asks(*object)),
            WaitsFor::Poll => self.answers.get(&(block.task, block.start)).copied(),
            _ => None,
        }
    }

    /// The task of another program that answered at a socket, if a wait showed it.
    pub(crate) fn answers(&self, object: u32) -> Option<TaskId> {
        self.wakers.of_answer(object)
    }

    /// Whether a process that ended waits at sockets is a client, or else a server that the program asks; none if either
    /// may be.
    pub(crate) fn is_client(&self, process: Tid) -> Option<bool> {
        let only_clients = self.sides.own.is_empty() && self.sides.unknown.is_empty();
        self.wakers.is_client(process).or(only_clients.then_some(true))
    }

    /// Whether nobody waits for the end of such a wait: it is for the next piece of work.
    pub(crate) fn is_idle(&self, timeline: &Timeline, block: &Block) -> bool {
        match block.waits_for {
            WaitsFor::SocketData | WaitsFor::Poll => self.awaits_answer(timeline, block).is_none(),
            WaitsFor::Sleep => !self.is_pause(block),
            // What a pipe delivers, its writer has made: that is slow, not idle.
            WaitsFor::PipeData => !matches!(block.woken_by, WokenBy::Task(_)),
            WaitsFor::Terminal
            | WaitsFor::Futex
            | WaitsFor::Tick
            | WaitsFor::Turn
            | WaitsFor::Child
            | WaitsFor::Signal => true,
            WaitsFor::PipeRoom
            | WaitsFor::SocketRoom
            | WaitsFor::Vfork
            | WaitsFor::Disk
            | WaitsFor::KernelLock
            | WaitsFor::Recording
            | WaitsFor::Threads
            | WaitsFor::Other => false,
        }
    }
}

/// Whether the subject serves: it was joined and lived on, or it takes connections and a signal ended it.
fn serves(trace: &Trace, timeline: &Timeline, subject: &Subject) -> bool {
    let threads = || {
        let own = timeline.tasks.iter().zip(&subject.own);
        own.filter(|(task, own)| **own && task.process == subject.process).map(|(task, _)| task)
    };
    if trace.meta.attached {
        return threads().any(|task| !task.died);
    }
    let is_foreign = |task| !subject.owns(task);
    let by_signal = |block: &Block| {
        block.by_signal
            && timeline.task(block.task).process == subject.process
            && matches!(block.woken_by, WokenBy::Task(by) if is_foreign(by))
    };
    let stopped = trace.meta.exit.is_some_and(|exit| exit.signal.is_some())
        || threads().any(|task| task.killed.is_some_and(|(_, by)| is_foreign(by)))
        || timeline.blocks.iter().any(by_signal);
    stopped && takes_connections(trace, timeline, subject)
}

/// Whether the process, or one that it forked and that did not become another program, takes connections.
fn takes_connections(trace: &Trace, timeline: &Timeline, subject: &Subject) -> bool {
    let number = |name: &&str| syscall::number(trace.meta.arch, name);
    let takes: Vec<u16> = TAKES_CONNECTIONS.iter().filter_map(number).collect();
    let is_it = |call: &Call| {
        let task = timeline.task(call.task);
        let same = task.process == subject.process || task.execs.is_empty();
        subject.owns(call.task) && same && call.ret().is_some_and(|ret| ret >= 0)
    };
    timeline.calls.iter().any(|call| takes.contains(&call.nr) && is_it(call))
}

/// How much a task's state is to the service, best first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// It could run, or its records were lost.
    Ready,
    /// It waits for something that work needs.
    Needed,
    Idle,
}

/// The tasks of the subject at one instant.
struct Sweep<'a> {
    timeline: &'a Timeline,
    subject: &'a Subject,
    service: &'a Service,
    /// Where each task's current span ends, the earliest first, with the span's index.
    next: BinaryHeap<Reverse<(Ns, TaskId, usize)>>,
    /// The tasks in each state.
    tasks: [BTreeSet<TaskId>; 4],
    /// The task that the time since `from` belongs to; none while all are idle.
    current: Option<TaskId>,
    from: Ns,
    pieces: Vec<Piece>,
}

/// The wall time as pieces, each through a task that was busy.
pub(super) fn busy(timeline: &Timeline, subject: &Subject, service: &Service) -> Path {
    let mut sweep = Sweep {
        timeline,
        subject,
        service,
        next: BinaryHeap::new(),
        tasks: Default::default(),
        current: None,
        from: subject.start,
        pieces: Vec::new(),
    };
    for index in (0..timeline.tasks.len()).filter(|i| subject.own[*i]) {
        sweep.begin(TaskId::at(index));
    }
    sweep.choose();
    sweep.go();
    Path { subject: subject.clone(), pieces: sweep.pieces }
}

impl Sweep<'_> {
    fn begin(&mut self, id: TaskId) {
        let task = self.timeline.task(id);
        match task.span_at(self.subject.start) {
            Some(span) => self.enter(id, span),
            None if task.birth >= self.subject.start && task.birth < self.subject.end => {
                self.next.push(Reverse((task.birth, id, usize::MAX)));
            }
            None => {}
        }
    }

    /// The task is in this span from now on.
    fn enter(&mut self, id: TaskId, span: usize) {
        let task = self.timeline.task(id);
        if let Some(entered) = task.spans.get(span) {
            self.tasks[self.state(entered.run()) as usize].insert(id);
            self.next.push(Reverse((task.span_end(span), id, span)));
        }
    }

    fn state(&self, run: Run) -> State {
        match run {
            Run::OnCpu(_) => State::Running,
            Run::Runnable | Run::Unrecorded => State::Ready,
            Run::Blocked(block) => {
                let block = &self.timeline.blocks[block as usize];
                if self.service.is_idle(self.timeline, block) { State::Idle } else { State::Needed }
            }
        }
    }

    fn go(&mut self) {
        while let Some(Reverse((at, id, span))) = self.next.pop() {
            if at >= self.subject.end {
                break;
            }
            for tasks in &mut self.tasks {
                tasks.remove(&id);
            }
            self.enter(id, span.wrapping_add(1));
            let before = self.current;
            let idle_since = self.from;
            if self.stays() {
                continue;
            }
            self.choose();
            let whose = before.or(self.current.filter(|task| self.lived(*task, idle_since)));
            self.charge(whose, at);
        }
        self.charge(self.current, self.subject.end);
    }

    /// Whether the current task is still among the best.
    fn stays(&self) -> bool {
        let [running, ready, needed, _] = &self.tasks;
        let best = [running, ready, needed].into_iter().find(|tasks| !tasks.is_empty());
        match (self.current, best) {
            (Some(current), Some(best)) => best.contains(&current),
            (current, best) => current.is_none() && best.is_none(),
        }
    }

    fn choose(&mut self) {
        let [running, ready, needed, _] = &self.tasks;
        self.current =
            [running, ready, needed].into_iter().find_map(|tasks| tasks.first().copied());
    }

    fn lived(&self, task: TaskId, since: Ns) -> bool {
        self.timeline.task(task).birth <= since
    }

    /// The time until `at` is this task's; without one, that of a task that waited for all of it.
    fn charge(&mut self, whose: Option<TaskId>, at: Ns) {
        let start = std::mem::replace(&mut self.from, at);
        if at <= start {
            return;
        }
        let waited = || {
            let idle = self.tasks[State::Idle as usize].iter().copied();
            idle.chain([self.subject.root]).find(|task| self.lived(*task, start))
        };
        let task = whose.or_else(waited).unwrap_or(self.subject.root);
        let unexplained = self.timeline.task(task).span_at(start).is_none();
        match self.pieces.last_mut() {
            Some(last) if last.task == task && last.unexplained == unexplained => last.end = at,
            _ => self.pieces.push(Piece { start, end: at, task, unexplained }),
        }
    }
}

#[cfg(test)]
mod tests;
