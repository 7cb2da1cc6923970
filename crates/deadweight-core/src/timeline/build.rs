//! The walk over the events: which part of the timeline each one changes.
//!
//! The siblings make the changes: `births` lives of tasks, `switches` which task has a CPU, `wakes` the ends of
//! waits, `inside` calls, faults and samples, `counted` calls that were counted together, `holes` lost records.
//!
//! `Live` keeps what a task is known to do; it becomes a span when that changes. Recordings have holes: an
//! event that contradicts the state repairs it.

use super::arguments::Arguments;
use super::births::STARTERS;
use super::handover::past_idle_threads;
use super::purposes::{Events, mark_turns};
use super::sleepers::Sleeps;
use super::state::{Anomalies, Builder, CpuState, Holes, Numbers, State};
use super::tids::Tids;
use super::{Call, Held, Page, Run, Span, Task, Timeline};
use crate::timeline::descriptors::Descriptors;
use crate::timeline::kernel_stacks::KernelStacks;
use deadweight_trace::ids::{Cpu, NameId, TaskId, Tid};
use deadweight_trace::units::Ns;
use deadweight_trace::{Event, Kind, Trace, syscall};
use std::collections::BTreeMap;

impl Timeline {
    /// Every task's life, in one pass over the events.
    #[must_use]
    pub fn build(trace: &Trace) -> Self {
        let mut builder = Builder::new(trace);
        trace.for_each_event(|event| builder.event(event));
        builder.finish()
    }
}

impl<'a> Builder<'a> {
    fn new(trace: &'a Trace) -> Self {
        let number = |name| syscall::number(trace.meta.arch, name);
        let mut builder = Self {
            trace,
            out: Timeline {
                starters: STARTERS.into_iter().filter_map(number).collect(),
                paths: syscall::path_positions(trace.meta.arch),
                ..Timeline::default()
            },
            live: Vec::new(),
            tids: Tids::default(),
            cpus: Vec::new(),
            kernel: KernelStacks::new(&trace.symbols),
            descriptors: Descriptors::new(&trace.symbols, trace.meta.arch),
            arguments: Arguments::new(),
            threads: BTreeMap::new(),
            ending: BTreeMap::new(),
            counted: BTreeMap::new(),
            sleeps: Sleeps::of(&trace.symbols),
            holes: Holes::default(),
            numbers: Numbers {
                exit: number("exit"),
                exit_group: number("exit_group"),
                execve: number("execve"),
                execveat: number("execveat"),
                restart: number("restart_syscall"),
                futex: number("futex"),
            },
            anomalies: Anomalies::default(),
            now: trace.meta.start,
        };
        let first = trace.events().next().map_or(trace.meta.start, |e| e.at);
        builder.now = first.min(trace.meta.start);
        builder.out.root = builder.add_root();
        // Without an exec, start-up cannot be distinguished from the program's own time; a process that was joined has started.
        let root = trace.meta.root;
        let execs = |e: Event| e.task == root && matches!(e.kind, Kind::Exec { .. });
        builder.live[0].starting = !trace.meta.attached && trace.events().any(execs);
        builder.mark(builder.out.root, builder.now);
        builder
    }

    fn event(&mut self, event: &Event) {
        self.now = self.now.max(event.at);
        let cpu = usize::from(event.cpu.0);
        if cpu >= self.cpus.len() {
            self.cpus.resize(cpu + 1, CpuState::default());
            self.out.held.resize(cpu + 1, Vec::new());
        }
        if !self.counted.is_empty() {
            self.place_counted(event);
        }
        match event.kind {
            Kind::On => self.switch_in(event),
            Kind::Off { why, stack } => self.switch_out(event, why, stack),
            Kind::Wake { waker, irq, stack, inferred } => {
                self.wake(event, waker, irq, stack, inferred);
            }
            Kind::Fork { child, process } => self.fork(event, child, process),
            Kind::Exec { former, path } => self.exec(event, former, path),
            Kind::Comm(name) => self.name(event, name),
            Kind::Lost { count } => self.lost(event, count),
            Kind::Fd { fd, what } => {
                if let Some(task) = self.own(event.task) {
                    let process = self.out.tasks[task.index()].process;
                    self.descriptors.seen(process, fd, what, self.now);
                }
            }
            Kind::Page { addr, zero } => {
                if let Some(task) = self.own(event.task) {
                    self.out.pages.push(Page { at: self.now, task, addr, zero });
                }
            }
            Kind::Registers { first, values } => {
                if let Some(task) = self.own(event.task) {
                    self.registers(task, first, values);
                }
            }
            Kind::Map { .. } => {}
            // It may belong to the switch-out just before: it does not show that the task runs.
            Kind::Site(stack) => {
                if let Some(task) = self.own(event.task) {
                    self.site(task, stack);
                }
            }
            _ => {
                if let Some(task) = self.running(event) {
                    self.sleeps.note(self.out.tasks[task.index()].process, event);
                    self.inside(task, event.kind);
                }
            }
        }
        self.cpus[cpu].last_event = self.now;
        if !Holes::survives_losses(event.kind) {
            self.cpus[cpu].last_record = self.now;
            if !matches!(event.kind, Kind::Lost { .. }) {
                self.cpus[cpu].lost_since = None;
            }
        }
    }

    /// The own task with this tid.
    pub(super) fn own(&self, tid: Tid) -> Option<TaskId> {
        self.tids.get(tid).filter(|t| self.out.tasks[t.index()].own)
    }

    /// The own task of an event that only a running task can cause. From now on it runs, if that was not
    /// known. After losses that may be a task whose birth was lost.
    pub(super) fn running(&mut self, event: &Event) -> Option<TaskId> {
        let task = match self.own(event.task) {
            Some(task) => task,
            None if self.anomalies.lost_records > 0 && event.task != Tid(0) => {
                self.adopt_unborn(event.task)
            }
            None => return None,
        };
        if self.live[task.index()].state != State::OnCpu(event.cpu) {
            self.hold(event.cpu, Some(task));
            self.resume(task, event.cpu);
        }
        Some(task)
    }

    /// `task` has `cpu` from now on.
    pub(super) fn hold(&mut self, cpu: Cpu, task: Option<TaskId>) {
        let index = usize::from(cpu.0);
        self.cpus[index].current = task;
        let held = &mut self.out.held[index];
        match held.last_mut() {
            Some(last) if last.task == task => {}
            Some(last) if last.start >= self.now => last.task = task,
            _ => held.push(Held { start: self.now, task }),
        }
    }

    /// What `task` does changed at `at`: its span starts.
    pub(super) fn mark(&mut self, task: TaskId, at: Ns) {
        let live = &self.live[task.index()];
        let run = match live.state {
            State::OnCpu(cpu) => Run::OnCpu(cpu),
            State::Runnable => Run::Runnable,
            State::Blocked(block) => Run::Blocked(block),
            State::Unrecorded | State::Away => Run::Unrecorded,
            State::Dead => return,
        };
        let within = live.within();
        push_span(&mut self.out.tasks[task.index()], Span::new(at, run, within));
    }

    /// Begins a span equal to the one before: the owner of the time changes here.
    pub(super) fn part(&mut self, task: TaskId) {
        self.mark(task, self.now);
        let spans = &mut self.out.tasks[task.index()].spans;
        if let Some(last) = spans.last().copied().filter(|last| last.start < self.now) {
            spans.push(Span::new(self.now, last.run(), last.within()));
        }
    }

    fn finish(mut self) -> Timeline {
        let end = self.now.max(self.trace.meta.end);
        self.place_all_counted(end);
        self.hide_waits();
        self.end_in_a_hole();
        for index in 0..self.live.len() {
            let task = TaskId::at(index);
            if self.live[index].state != State::Dead {
                self.close(task, end);
                self.out.tasks[index].end = end;
            }
        }
        self.out.arguments = self.arguments.all;
        self.out.objects = self.descriptors.into_objects();
        self.out.records = u64::try_from(self.trace.len()).unwrap_or(u64::MAX);
        self.out.lost = self.anomalies.lost_records;
        super::children::end_polls(&mut self.out, self.trace.meta.arch);
        if !self.trace.meta.records_wakers() {
            // On this rung wake-ups are never seen: no warning.
            (self.anomalies.unseen_wakes, self.anomalies.inferred_wakes) = (0, 0);
            let exact = self.trace.meta.rung != "stops";
            super::inferred_wakers::infer(&mut self.out, self.trace.meta.arch, exact);
        }
        self.sleeps.place(&mut self.out);
        if !self.trace.meta.records_calls() {
            // Its own warning says what is missing.
            (self.anomalies.lost_records, self.anomalies.unborn) = (0, 0);
        }
        self.out.warnings = self.anomalies.warnings();
        self.out.remarks = self.anomalies.remarks();
        let events = Events::gather(&self.out);
        past_idle_threads(&mut self.out, &self.trace.symbols);
        super::repeated_timeouts::until_the_lock(&mut self.out, &self.trace.symbols);
        super::repeated_timeouts::until_the_event(&mut self.out, &self.trace.symbols);
        events.mark_ticks(&mut self.out, &self.trace.symbols);
        mark_turns(&mut self.out, self.trace.meta.arch);
        super::busy_polls::into_waits(&mut self.out, self.trace.meta.arch, &self.trace.symbols);
        debug_assert!(self.out.tasks.iter().all(tiles));
        self.out
    }

    /// Ends a task's open call, fault and wait at `at`.
    pub(super) fn close(&mut self, task: TaskId, at: Ns) {
        if let State::Blocked(block) = self.live[task.index()].state {
            let block = &mut self.out.blocks[block as usize];
            block.end = at.max(block.start);
        }
        self.end_call(task, at, Call::NEVER);
        let live = &mut self.live[task.index()];
        live.fault = None;
        live.interrupt = false;
    }

    /// The name that a task has now.
    pub(super) fn current_name(&self, task: TaskId) -> NameId {
        self.out.tasks[task.index()].names.last().map_or(NameId(0), |(_, name)| *name)
    }
}

/// Appends `span`, replacing what would have no length and joining what is equal.
fn push_span(task: &mut Task, mut span: Span) {
    if let Some(last) = task.spans.last() {
        span.start = span.start.max(last.start);
        if last.start == span.start {
            task.spans.pop();
        }
    }
    if !task.spans.last().is_some_and(|last| last.is_like(&span)) {
        task.spans.push(span);
    }
}

/// Whether a task's spans cover its life without gap or overlap.
fn tiles(task: &Task) -> bool {
    !task.own
        || task.spans.first().is_some_and(|s| s.start == task.birth)
            && task.spans.windows(2).all(|pair| pair[0].start < pair[1].start)
            && task.spans.last().is_some_and(|s| s.start <= task.end)
}

impl Anomalies {
    /// What was lost.
    fn warnings(self) -> Vec<String> {
        in_words(&[
            (self.lost_records, "record was lost", "records were lost"),
            (self.unborn, "birth of a task was not recorded", "births of tasks were not recorded"),
            (
                self.replaced,
                "task vanished: its id was reused",
                "tasks vanished: their ids were reused",
            ),
        ])
    }

    /// What follows from the records around it.
    fn remarks(self) -> Vec<String> {
        in_words(&[
            (self.missing_off, "switch-out was not recorded", "switch-outs were not recorded"),
            (self.missing_on, "switch-in was not recorded", "switch-ins were not recorded"),
            (
                self.unseen_wakes,
                "wait ended without a recorded wake-up",
                "waits ended without a recorded wake-up",
            ),
            (
                self.inferred_wakes,
                "wake-up was inferred from what was waited for",
                "wake-ups were inferred from what was waited for",
            ),
        ])
    }
}

/// Each count that is not 0, with its noun in singular or plural.
fn in_words(counts: &[(u64, &str, &str)]) -> Vec<String> {
    let some = counts.iter().filter(|(count, ..)| *count > 0);
    some.map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
        .collect()
}
