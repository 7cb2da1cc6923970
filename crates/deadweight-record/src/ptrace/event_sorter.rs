//! What the tracer notes, owned, on its way from its thread to the sink.
//!
//! Tasks stop one by one, and what they did before is known only then: notes of different tasks
//! come out of order. Here they are put in order, and tasks on CPUs.

use super::event::{EventKind, TaskEvent, raw_kind};
use deadweight_trace::Off;
use deadweight_trace::ids::{Cpu, Tid};
use deadweight_trace::raw::{OTHER_PROGRAM, OTHER_PROGRAM_NAME, RawEvent, RawKind, Sink};
use std::collections::HashMap;

/// Who has a CPU.
#[derive(Copy, Clone, PartialEq, Eq)]
enum CpuUse {
    Free,
    RunsTask(u32),
    /// Ours, while this task is stopped.
    StoppedFor(u32),
}

/// Puts notes in order of time and tasks on CPUs, and tells the sink.
pub(super) struct EventSorter<'s> {
    sink: &'s mut dyn Sink,
    /// The thread that holds stopped tasks.
    pub(super) recorder: u32,
    waiting: Vec<TaskEvent>,
    cpus: Vec<CpuUse>,
    last_cpu: HashMap<u32, usize>,
    /// Time of the latest event handed on.
    last_time: u64,
    other_is_named: bool,
    /// Events handed on.
    pub(super) count: u64,
}

impl<'s> EventSorter<'s> {
    pub(super) fn new(sink: &'s mut dyn Sink, cpu_count: usize, recorder: u32) -> Self {
        Self {
            sink,
            recorder,
            waiting: Vec::new(),
            cpus: vec![CpuUse::Free; cpu_count.max(1)],
            last_cpu: HashMap::new(),
            last_time: 0,
            other_is_named: false,
            count: 0,
        }
    }

    pub(super) fn add(&mut self, events: impl IntoIterator<Item = TaskEvent>) {
        self.waiting.extend(events);
    }

    /// Hands on what is older than this: nothing older will come.
    pub(super) fn emit_until(&mut self, watermark: u64) {
        // Those of one task are in order already and stay so.
        self.waiting.sort_by_key(|event| event.at);
        let ready = self.waiting.partition_point(|event| event.at < watermark);
        let mut events = std::mem::take(&mut self.waiting);
        for event in events.drain(..ready) {
            self.pass_to_sink(&event);
        }
        self.waiting = events;
        self.sink.flush();
    }

    pub(super) fn finish(self) -> &'s mut dyn Sink {
        self.sink
    }

    fn pass_to_sink(&mut self, event: &TaskEvent) {
        self.last_time = self.last_time.max(event.at);
        let task = event.task;
        let cpu = self.assign_cpu(event);
        match &event.kind {
            EventKind::Off(why) => self.emit(event, cpu, RawKind::Off { why: *why, chain: &[] }),
            EventKind::Preempted | EventKind::PtraceStop => {
                self.emit(event, cpu, RawKind::Off { why: Off::Preempted, chain: &[] });
                let ptrace_stop = matches!(event.kind, EventKind::PtraceStop);
                let holder = if ptrace_stop { self.recorder } else { OTHER_PROGRAM };
                self.emit_for_other(cpu, holder, RawKind::On);
                if !ptrace_stop && !std::mem::replace(&mut self.other_is_named, true) {
                    self.emit_for_other(cpu, holder, RawKind::Comm(OTHER_PROGRAM_NAME));
                }
            }
            EventKind::Detached => self.emit(event, cpu, RawKind::Lost { count: 1 }),
            EventKind::Lost(count) => self.emit_lost(event, *count),
            _ => {
                let kind = raw_kind(&event.kind);
                self.emit(event, cpu, kind);
            }
        }
        if matches!(event.kind, EventKind::Off(Off::Dead)) {
            self.last_cpu.remove(&task);
        }
    }

    /// Who had which CPU meanwhile is not known, on any of them.
    fn emit_lost(&mut self, event: &TaskEvent, count: u64) {
        self.last_cpu.clear();
        let cpu_count = self.cpus.len();
        self.cpus.fill(CpuUse::Free);
        for cpu in 0..cpu_count {
            self.emit(event, cpu, RawKind::Lost { count: (count / cpu_count as u64).max(1) });
        }
    }

    fn emit_for_other(&mut self, cpu: usize, task: u32, kind: RawKind<'_>) {
        let event = TaskEvent { at: self.last_time, process: 0, task, kind: EventKind::On };
        self.emit(&event, cpu, kind);
    }

    fn emit(&mut self, event: &TaskEvent, cpu: usize, kind: RawKind<'_>) {
        self.count += 1;
        let cpu = Cpu(u16::try_from(cpu).unwrap_or(u16::MAX));
        let (process, task) = (Tid(event.process), Tid(event.task));
        self.sink.event(&RawEvent { at: self.last_time, cpu, process, task, kind });
    }

    /// On which CPU the task of this note is, after it. The kernel does not say: the one that it had, unless
    /// another task took that.
    fn assign_cpu(&mut self, event: &TaskEvent) -> usize {
        let task = event.task;
        let last = self.last_cpu.get(&task).copied();
        match event.kind {
            EventKind::On => {
                let cpu = self.choose_cpu(task, last);
                self.cpus[cpu] = CpuUse::RunsTask(task);
                self.last_cpu.insert(task, cpu);
                cpu
            }
            EventKind::Off(_) | EventKind::Preempted | EventKind::PtraceStop => {
                let cpu = last.unwrap_or(0);
                if self.cpus[cpu] == CpuUse::RunsTask(task) {
                    let ptrace_stop = matches!(event.kind, EventKind::PtraceStop);
                    self.cpus[cpu] =
                        if ptrace_stop { CpuUse::StoppedFor(task) } else { CpuUse::Free };
                }
                cpu
            }
            _ => last.unwrap_or(0),
        }
    }

    fn choose_cpu(&mut self, task: u32, last: Option<usize>) -> usize {
        let own = [CpuUse::Free, CpuUse::RunsTask(task), CpuUse::StoppedFor(task)];
        if let Some(cpu) = last.filter(|cpu| own.contains(&self.cpus[*cpu])) {
            return cpu;
        }
        let find = |wanted: fn(&CpuUse) -> bool| self.cpus.iter().position(wanted);
        let free = find(|assign_cpu| *assign_cpu == CpuUse::Free);
        free.or_else(|| find(|assign_cpu| matches!(assign_cpu, CpuUse::StoppedFor(_))))
            .unwrap_or_else(|| {
                // Times are known to some µs: for so long there may seem to be more CPUs than there are.
                self.cpus.push(CpuUse::Free);
                self.cpus.len() - 1
            })
    }
}
