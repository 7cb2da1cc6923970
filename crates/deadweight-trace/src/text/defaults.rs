//! Defaults for what a line leaves out: the CPU, the process, the result of a call.
//!
//! Reader and writer pass the same events through [`Defaults`]: so what the writer leaves out, the reader fills in. Not
//! for facts about the recording; see `header`.

use crate::ids::{Cpu, Tid};
use crate::syscall::{self, Arch};
use crate::{Event, Kind};
use std::collections::BTreeMap;

/// The state of tasks and CPUs at one point of the stream, from which the defaults follow.
#[derive(Default)]
pub(super) struct Defaults {
    arch: Arch,
    tasks: BTreeMap<Tid, Known>,
    held: BTreeMap<Cpu, Tid>,
}

/// The state of one task.
#[derive(Default)]
struct Known {
    cpu: Option<Cpu>,
    process: Option<Tid>,
    call: Option<(u16, [u64; 4])>,
}

impl Defaults {
    pub(super) fn new(arch: Arch) -> Self {
        Self { arch, ..Self::default() }
    }

    /// The architecture that numbers of calls belong to.
    pub(super) fn arch(&self) -> Arch {
        self.arch
    }

    /// The CPU of an event that names none: the task's latest CPU; for a wake-up the waker's latest CPU; for `on` the
    /// task's latest CPU unless another task has it, else the first free one.
    pub(super) fn cpu(&self, task: Tid, kind: &Kind) -> Cpu {
        let last = |tid| self.tasks.get(&tid).and_then(|k: &Known| k.cpu);
        match kind {
            Kind::Wake { waker, .. } => last(*waker).or(last(task)).unwrap_or_default(),
            Kind::On => {
                let free = |cpu: &Cpu| self.held.get(cpu).is_none_or(|t| *t == task);
                let last = last(task).filter(free);
                last.or_else(|| (0..=u16::MAX).map(Cpu).find(free)).unwrap_or_default()
            }
            _ => last(task).unwrap_or_default(),
        }
    }

    /// The process of a task: its own unless a birth said otherwise.
    pub(super) fn process(&self, task: Tid) -> Tid {
        self.tasks.get(&task).and_then(|k| k.process).unwrap_or(task)
    }

    /// The system call that a task is in, with the arguments kept.
    pub(super) fn call(&self, task: Tid) -> Option<(u16, [u64; 4])> {
        self.tasks.get(&task).and_then(|k| k.call)
    }

    /// The result of the task's call when it succeeds in full: the size requested, else 0.
    pub(super) fn result(&self, task: Tid) -> i64 {
        let asked = self.call(task).and_then(|(nr, args)| {
            let at = syscall::size(syscall::name(self.arch, nr)?)?;
            args.get(at).copied()
        });
        asked.unwrap_or(0).cast_signed()
    }

    /// Updates the state with `event`.
    pub(super) fn pass(&mut self, event: &Event) {
        let task = self.tasks.entry(event.task).or_default();
        if !matches!(event.kind, Kind::Wake { .. }) {
            task.cpu = Some(event.cpu);
        }
        match event.kind {
            Kind::On => drop(self.held.insert(event.cpu, event.task)),
            Kind::Off { .. } => self.held.retain(|_, t| *t != event.task),
            Kind::Syscall { nr, args } => task.call = Some((nr, args)),
            Kind::Back { .. } | Kind::Exec { .. } => task.call = None,
            Kind::Fork { child, process } => {
                // An earlier task may have had the same tid.
                self.tasks.insert(child, Known { process: Some(process), ..Known::default() });
            }
            _ => {}
        }
    }
}
