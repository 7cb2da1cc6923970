//! Sorts the events of traced tasks by time and gives each task a CPU.
//!
//! Tasks stop one by one, and their events are known only then: those of different tasks come out
//! of order. Does not collect events; see `tracer`.

use super::event::{EventKind, TaskEvent, raw_kind};
use deadweight_trace::Off;
use deadweight_trace::ids::{Cpu, Tid};
use deadweight_trace::raw::{OTHER_PROGRAM, OTHER_PROGRAM_NAME, RawEvent, RawKind, Sink};
use std::collections::HashMap;

/// What a CPU does.
#[derive(Copy, Clone, PartialEq, Eq)]
enum CpuUse {
    Free,
    RunsTask(u32),
    /// The tracer has it while this task is stopped.
    StoppedFor(u32),
}

/// Sorts events by time, assigns CPUs, and passes the events to the sink.
pub(super) struct EventSorter<'s> {
    sink: &'s mut dyn Sink,
    /// The thread that holds stopped tasks.
    pub(super) recorder: u32,
    waiting: Vec<TaskEvent>,
    cpus: Vec<CpuUse>,
    last_cpu: HashMap<u32, usize>,
    /// Time of the latest event passed to the sink.
    last_time: u64,
    other_is_named: bool,
    /// Events passed to the sink.
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

    /// Passes the events before the watermark to the sink: nothing older will come.
    pub(super) fn emit_until(&mut self, watermark: u64) {
        // The sort is stable, and those of one task are in order already.
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

    /// After lost events it is not known which task is on which CPU.
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

    /// The CPU of this event's task after the event. The kernel does not report it: the task keeps
    /// its CPU unless another task has taken that.
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
        let free = find(|cpu| *cpu == CpuUse::Free);
        free.or_else(|| find(|cpu| matches!(cpu, CpuUse::StoppedFor(_)))).unwrap_or_else(|| {
            // Times are known to some µs. For a moment there may seem to be more CPUs than there
            // are.
            self.cpus.push(CpuUse::Free);
            self.cpus.len() - 1
        })
    }
}
