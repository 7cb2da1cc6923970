//! What a line means where it says nothing: which CPU, which process, what a call returned.
//!
//! Reader and writer walk the same events with the same [`Usual`], so that what one leaves out is
//! what the other fills in.

use crate::ids::{Cpu, Tid};
use crate::syscall::{self, Arch};
use crate::{Event, Kind};
use std::collections::BTreeMap;

/// What is known of the tasks and CPUs at one point of the stream.
#[derive(Default)]
pub(super) struct Usual {
    arch: Arch,
    tasks: BTreeMap<Tid, Known>,
    held: BTreeMap<Cpu, Tid>,
}

/// What is known of one task.
#[derive(Default)]
struct Known {
    cpu: Option<Cpu>,
    process: Option<Tid>,
    call: Option<(u16, [u64; 4])>,
}

impl Usual {
    pub(super) fn new(arch: Arch) -> Self {
        Self { arch, ..Self::default() }
    }

    /// The architecture that numbers of calls belong to.
    pub(super) fn arch(&self) -> Arch {
        self.arch
    }

    /// The CPU of an event that names none: where its task got the CPU last; for a wake-up, where
    /// the waker did; for `on`, that CPU again unless another task has it, else the first free.
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

    /// What a call returns when it does all that it was asked for: its size, else 0.
    pub(super) fn result(&self, task: Tid) -> i64 {
        let asked = self.call(task).and_then(|(nr, args)| {
            let at = syscall::size(syscall::name(self.arch, nr)?)?;
            args.get(at).copied()
        });
        asked.unwrap_or(0).cast_signed()
    }

    /// Goes past `event`.
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
                // The tid may have belonged to another life before.
                self.tasks.insert(child, Known { process: Some(process), ..Known::default() });
            }
            _ => {}
        }
    }
}
