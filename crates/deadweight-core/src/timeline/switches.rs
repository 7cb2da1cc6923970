//! Tasks getting and losing CPUs, with repairs where a switch was not seen.

use super::span::INDICES;
use super::state::{Builder, StackOwner, State};
use super::{Block, Run, WokenBy};
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor, wait_by_call};
use deadweight_trace::ids::{Cpu, StackId, TaskId, Tid};
use deadweight_trace::units::Ns;
use deadweight_trace::{Event, Off, syscall};

/// A wake-up of a running task may have been meant for a switch-out this much later.
const RACE: Ns = Ns(200_000);

impl Builder<'_> {
    pub(super) fn switch_in(&mut self, event: &Event) {
        let next = (event.task != Tid(0)).then(|| self.find_or_add(event.task));
        self.displace(event.cpu, next);
        self.hold(event.cpu, next);
        if let Some(task) = next.filter(|t| self.out.tasks[t.index()].own) {
            // A child's first record: only exec takes longer to start.
            let born = self.out.tasks[task.index()].parent.is_some();
            let executing = !self.out.tasks[task.index()].execs.is_empty();
            self.live[task.index()].starting &= !born || executing;
            self.resume(task, event.cpu);
        }
    }

    /// The task recorded on `cpu` is not there any more, if it is another one than `next`.
    fn displace(&mut self, cpu: Cpu, next: Option<TaskId>) {
        let Some(former) = self.cpus[usize::from(cpu.0)].current else { return };
        let index = former.index();
        let believed = self.out.tasks[index].own && self.live[index].state == State::OnCpu(cpu);
        if Some(former) != next && believed {
            if self.live[index].exiting {
                self.forget(former);
                return;
            }
            self.anomalies.missing_off += 1;
            self.live[index].state = State::Away;
            self.mark(former, self.now);
        }
    }

    pub(super) fn switch_out(&mut self, event: &Event, why: Off, stack: StackId) {
        if event.task == Tid(0) {
            return;
        }
        let index = usize::from(event.cpu.0);
        let task = self.find_or_add(event.task);
        if self.cpus[index].current != Some(task) {
            // Its switch-in was not seen: it has run since the CPU's latest event.
            let since = self.cpus[index].last_event;
            let held = &mut self.out.held[index];
            if let Some(last) = held.last_mut().filter(|h| h.task.is_none() && h.start >= since) {
                last.task = Some(task);
            }
            if self.out.tasks[task.index()].own {
                self.anomalies.missing_on += 1;
                self.resume_at(task, event.cpu, since);
            }
        } else if self.out.tasks[task.index()].own {
            self.resume(task, event.cpu);
        }
        self.hold(event.cpu, None);
        if !self.out.tasks[task.index()].own {
            if why == Off::Dead {
                self.tids.free(event.task);
                self.live[task.index()].state = State::Dead;
                self.out.tasks[task.index()].end = self.now;
            }
            return;
        }
        self.live[task.index()].interrupt = false;
        match why {
            Off::Blocked | Off::Stopped => self.block(task, why, stack),
            Off::Preempted | Off::Yielded => {
                self.live[task.index()].state = State::Runnable;
                self.mark(task, self.now);
            }
            Off::Dead => self.die(task, event.task),
        }
    }

    fn block(&mut self, task: TaskId, why: Off, stack: StackId) {
        if self.out.blocks.len() >= INDICES {
            return;
        }
        let Ok(index) = u32::try_from(self.out.blocks.len()) else { return };
        let live = self.live[task.index()];
        let waits_for = match self.kernel.waits_for(stack) {
            _ if why == Off::Stopped => WaitsFor::Signal,
            Some(waits_for) => waits_for,
            None => self.wait_without_stack(task),
        };
        if let Some(fault) = live.fault.filter(|_| waits_for == WaitsFor::Disk) {
            self.out.faults[fault as usize].major = true;
        }
        self.out.blocks.push(Block {
            task,
            start: self.now,
            end: self.now,
            waits_for,
            woken_by: WokenBy::Nobody,
            waker_call: None,
            call: live.call,
            site: self.site_of(task),
            inferred: false,
            by_signal: false,
            tick: false,
        });
        let live = &mut self.live[task.index()];
        live.state = State::Blocked(index);
        live.stack_owner = StackOwner::Block(index);
        live.pending = live.pending.filter(|p| self.now - p.at <= RACE);
        self.mark(task, self.now);
    }

    /// What a task waits for by the system call it is in.
    pub(super) fn wait_without_stack(&self, task: TaskId) -> WaitsFor {
        let live = &self.live[task.index()];
        if live.fault.is_some() {
            return WaitsFor::Disk;
        }
        let Some(mut call) = live.call.map(|c| &self.out.calls[c.index()]) else {
            // The call was not recorded. A vfork parent lends the child its memory and waits until the
            // child has finished with it.
            return if live.gave_birth { WaitsFor::Vfork } else { WaitsFor::Other };
        };
        if Some(call.nr) == self.numbers.restart {
            let before = live.last_call.map(|c| &self.out.calls[c.index()]);
            call = before.unwrap_or(call);
        }
        let name = syscall::name(self.trace.meta.arch, call.nr).unwrap_or("");
        wait_by_call(name, call.object().and_then(|o| self.descriptors.kind(o)))
    }

    /// `task` runs on `cpu` from now on, whatever was recorded before.
    pub(super) fn resume(&mut self, task: TaskId, cpu: Cpu) {
        self.resume_at(task, cpu, self.now);
    }

    fn resume_at(&mut self, task: TaskId, cpu: Cpu, at: Ns) {
        let index = task.index();
        let latest = self.out.tasks[index].spans.last().map_or(at, |s| s.start);
        let at = at.max(latest).min(self.now);
        match self.live[index].state {
            State::OnCpu(on) if on == cpu => return,
            State::Dead => return,
            State::OnCpu(on) => self.holes.moved(task, on, at),
            State::Runnable => _ = self.wait_into_hole(task, latest, at),
            State::Unrecorded => {}
            State::Away => {
                // No wake-up since: it was only preempted.
                if let Some(last) = self.out.tasks[index].spans.last_mut() {
                    last.set_run(Run::Runnable);
                }
            }
            State::Blocked(block) => self.end_unwoken(task, block, at),
        }
        let live = &mut self.live[index];
        live.state = State::OnCpu(cpu);
        live.gave_birth = false;
        live.pending = None;
        self.mark(task, at);
    }

    /// A blocked task runs although no wake-up was seen since it blocked.
    fn end_unwoken(&mut self, task: TaskId, block: u32, at: Ns) {
        let pending = self.live[task.index()].pending.take();
        let inferred = self.inferred_interrupt(block);
        let entry = &mut self.out.blocks[block as usize];
        match (pending, inferred) {
            (Some(pending), _) => {
                self.anomalies.raced_wakes += 1;
                entry.end = entry.start;
                entry.woken_by = pending.woken_by;
                entry.waker_call = pending.waker_call;
                let start = entry.start;
                self.live[task.index()].state = State::Runnable;
                self.mark(task, start);
            }
            (None, Some(kind)) => {
                self.anomalies.inferred_wakes += 1;
                entry.end = at;
                entry.woken_by = WokenBy::Interrupt(kind);
                entry.inferred = true;
            }
            (None, None) => {
                self.anomalies.unseen_wakes += 1;
                entry.woken_by = WokenBy::Unseen;
                let start = entry.start;
                self.out.blocks[block as usize].end = self.wait_into_hole(task, start, at);
            }
        }
    }

    /// The interrupt that must have ended a wait whose wake-up was not seen, if that is certain enough:
    /// clocks end sleeps, storage ends waits for storage. For waits that a task can also end, only where
    /// idle CPUs are known to have delivered nothing.
    fn inferred_interrupt(&self, block: u32) -> Option<Interrupt> {
        let block = &self.out.blocks[block as usize];
        let blind = !self.trace.meta.blind_cpus.is_empty();
        match block.waits_for {
            WaitsFor::Sleep => Some(Interrupt::Timer),
            WaitsFor::Disk => Some(Interrupt::Disk),
            WaitsFor::Poll if blind => Some(Interrupt::Timer),
            WaitsFor::SocketData if blind => Some(Interrupt::Network),
            WaitsFor::Futex if blind => {
                let call = self.out.calls.get(block.call?.index())?;
                let timeout = self.arguments.all.get(call.args as usize)?[3];
                (Some(call.nr) == self.numbers.futex && timeout > 4096).then_some(Interrupt::Timer)
            }
            _ => None,
        }
    }
}
