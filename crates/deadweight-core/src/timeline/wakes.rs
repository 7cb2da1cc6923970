//! Which task or interrupt made a task runnable, by the kernel's call chain.

use super::state::{Builder, Pending, State};
use super::{Block, Run, WokenBy};
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor, WakeContext};
use deadweight_trace::Event;
use deadweight_trace::ids::{Cpu, StackId, TaskId, Tid};
use deadweight_trace::units::Ns;

/// What the recorder writes as the tid of a waker that is already reaped.
const REAPED: Tid = Tid(u32::MAX);

impl Builder<'_> {
    pub(super) fn wake(
        &mut self,
        event: &Event,
        waker: Tid,
        irq: bool,
        stack: StackId,
        inferred: bool,
    ) {
        let Some(task) = self.own(event.task) else { return };
        let state = self.live[task.index()].state;
        if matches!(state, State::Runnable | State::Dead) {
            return;
        }
        let context = self.kernel.woken_in(stack, irq);
        let by = match context {
            WakeContext::Interrupt(_) => None,
            WakeContext::Task | WakeContext::Signal => self.waker(event.cpu, waker),
        };
        let woken_by = match (context, by) {
            (WakeContext::Interrupt(kind), _) => WokenBy::Interrupt(kind),
            // A blocked task is not current anywhere, and idle tasks wake nothing themselves.
            (_, Some(by)) if by != task => WokenBy::Task(by),
            _ => WokenBy::Interrupt(Interrupt::Other),
        };
        if let (WakeContext::Signal, WokenBy::Task(by)) = (context, woken_by) {
            self.live[task.index()].signalled = Some((self.now, by));
        }
        let waker_call = match woken_by {
            WokenBy::Task(by) => self.live[by.index()].call,
            _ => None,
        };
        match state {
            State::OnCpu(_) => {
                let pending = Pending { at: self.now, woken_by, waker_call };
                self.live[task.index()].pending = Some(pending);
            }
            State::Blocked(block) => {
                let waits_for = self.out.blocks[block as usize].waits_for;
                if waits_for == WaitsFor::Poll && self.kernel.is_typing(stack) {
                    self.out.blocks[block as usize].waits_for = WaitsFor::Terminal;
                }
                self.end_wait(task, block, woken_by);
                let block = &mut self.out.blocks[block as usize];
                block.waker_call = waker_call;
                block.inferred = inferred;
                block.by_signal = context == WakeContext::Signal;
            }
            State::Away => {
                let block = self.block_unseen(task);
                self.end_wait(task, block, woken_by);
            }
            State::Unrecorded => self.make_runnable(task),
            State::Runnable | State::Dead => {}
        }
    }

    /// The task that made a wake-up recorded on `cpu`.
    fn waker(&mut self, cpu: Cpu, tid: Tid) -> Option<TaskId> {
        if tid == REAPED {
            return self.cpus[usize::from(cpu.0)].current;
        }
        (tid != Tid(0)).then(|| self.find_or_add(tid))
    }

    fn end_wait(&mut self, task: TaskId, block: u32, woken_by: WokenBy) {
        let entry = &mut self.out.blocks[block as usize];
        entry.end = self.now.max(entry.start);
        entry.woken_by = match (woken_by, entry.waits_for) {
            (WokenBy::Interrupt(Interrupt::Other), WaitsFor::Sleep) => {
                WokenBy::Interrupt(Interrupt::Timer)
            }
            (WokenBy::Interrupt(Interrupt::Other), WaitsFor::Disk) => {
                WokenBy::Interrupt(Interrupt::Disk)
            }
            (WokenBy::Interrupt(Interrupt::Other), WaitsFor::SocketData) => {
                WokenBy::Interrupt(Interrupt::Network)
            }
            (other, _) => other,
        };
        self.make_runnable(task);
    }

    fn make_runnable(&mut self, task: TaskId) {
        let live = &mut self.live[task.index()];
        live.state = State::Runnable;
        live.pending = None;
        self.mark(task, self.now);
    }

    /// A task whose switch-out was not seen turns out to have blocked then.
    fn block_unseen(&mut self, task: TaskId) -> u32 {
        let index = u32::try_from(self.out.blocks.len()).unwrap_or(u32::MAX);
        let waits_for = self.wait_without_stack(task);
        let call = self.live[task.index()].call;
        let site = self.site_of(task);
        let start = match self.out.tasks[task.index()].spans.last_mut() {
            Some(last) => {
                last.set_run(Run::Blocked(index));
                last.start
            }
            None => Ns::ZERO,
        };
        self.out.blocks.push(Block {
            task,
            start,
            end: start,
            waits_for,
            woken_by: WokenBy::Unseen,
            waker_call: None,
            call,
            site,
            inferred: true,
            by_signal: false,
            tick: false,
        });
        index
    }
}
