//! What a running task is in the middle of: system calls, faults, the timer interrupt, samples.

use super::span::INDICES;
use super::state::{Builder, Live, StackOwner};
use super::{Call, Fault, Registers, Sample};
use deadweight_trace::Kind;
use deadweight_trace::ids::{CallId, StackId, TaskId};
use deadweight_trace::units::Ns;

impl Builder<'_> {
    /// An event of a task that runs.
    pub(super) fn inside(&mut self, task: TaskId, kind: Kind) {
        match kind {
            Kind::Syscall { nr, args } => self.enter(task, nr, args),
            Kind::Back { ret } => self.back(task, ret),
            Kind::Calls { .. } => self.count(task, kind),
            Kind::Fault { addr, by, kernel } => {
                if self.out.faults.len() >= INDICES {
                    return;
                }
                let Ok(index) = u32::try_from(self.out.faults.len()) else { return };
                let live = &mut self.live[task.index()];
                let (site, call) = (StackId(0), live.call);
                live.fault = Some(index);
                live.starting &= kernel;
                live.stack_owner = StackOwner::Fault(index);
                self.out.faults.push(Fault { addr, by, major: false, kernel, site, call });
                self.mark(task, self.now);
            }
            Kind::FaultEnd { major } => {
                if let Some(fault) = self.live[task.index()].fault.take() {
                    self.out.faults[fault as usize].major |= major;
                    self.mark(task, self.now);
                }
            }
            Kind::Timer | Kind::TimerEnd => {
                self.live[task.index()].interrupt = kind == Kind::Timer;
                self.mark(task, self.now);
            }
            Kind::Sample { kernel, stack, kernel_stack } => {
                self.sample(task, Sample { at: self.now, kernel, stack, kernel_stack });
            }
            Kind::Main => {
                self.out.tasks[task.index()].mains.push(self.now);
                self.part(task);
            }
            Kind::Exit => self.exit(task),
            _ => {}
        }
    }

    fn enter(&mut self, task: TaskId, nr: u16, args: [u64; 4]) {
        // A call that a signal interrupted may never have returned.
        self.end_call(task, self.now, Call::NEVER);
        let process = self.out.tasks[task.index()].process;
        let restarted =
            self.live[task.index()].last_call.filter(|_| Some(nr) == self.numbers.restart);
        let (args, object) = match restarted.map(|c| self.out.calls[c.index()]) {
            Some(before) => (before.args, before.object),
            None => {
                let object = self.descriptors.begins(process, nr, &args);
                (self.arguments.keep(args), object.unwrap_or(Call::NOTHING))
            }
        };
        if self.out.calls.len() >= INDICES {
            return;
        }
        let id = CallId::at(self.out.calls.len());
        let (start, site) = (self.now, StackId(0));
        let (ret, counted) = (Call::NEVER, 0);
        let own_time_behind = false;
        let call =
            Call { start, end: start, ret, task, site, args, object, counted, own_time_behind, nr };
        self.out.calls.push(call);
        if self.is_exec(nr) || Some(nr) == self.numbers.exit_group {
            self.ending.insert(process, (self.now, task));
        }
        let live = &mut self.live[task.index()];
        live.call = Some(id);
        live.gave_birth = false;
        live.fault = None;
        live.starting = false;
        live.stack_owner = StackOwner::Call(id);
        self.mark(task, self.now);
    }

    pub(super) fn is_exec(&self, nr: u16) -> bool {
        Some(nr) == self.numbers.execve || Some(nr) == self.numbers.execveat
    }

    fn back(&mut self, task: TaskId, ret: i64) {
        let process = self.out.tasks[task.index()].process;
        if let Some(call) = self.live[task.index()].call.map(|c| self.out.calls[c.index()]) {
            let args = self.arguments.all.get(call.args as usize).copied().unwrap_or_default();
            self.descriptors.returned(process, call.nr, &args, ret, call.start);
            if self.is_exec(call.nr) && ret < 0 {
                self.ending.remove(&process);
            }
        }
        self.end_call(task, self.now, ret);
        let live = &mut self.live[task.index()];
        live.fault = None;
        live.starting = false;
        self.mark(task, self.now);
    }

    /// The call in progress, if any, ends; the caller marks the span.
    pub(super) fn end_call(&mut self, task: TaskId, at: Ns, ret: i64) {
        let live = &mut self.live[task.index()];
        if let Some(id) = live.call.take() {
            live.last_call = Some(id);
            let call = &mut self.out.calls[id.index()];
            call.end = at.max(call.start);
            call.ret = ret;
        }
    }

    fn sample(&mut self, task: TaskId, sample: Sample) {
        let live = &mut self.live[task.index()];
        if !sample.kernel && (live.fault.is_some() || live.interrupt || live.starting) {
            // It is in user mode: whatever had to end before has ended unseen.
            live.fault = None;
            live.interrupt = false;
            live.starting = false;
            self.mark(task, self.now);
        }
        self.out.tasks[task.index()].samples.push(sample);
    }

    /// Some of the registers at the task's latest sample, if that was at this instant.
    pub(super) fn registers(&mut self, task: TaskId, first: u8, values: [u64; 4]) {
        let samples = &self.out.tasks[task.index()].samples;
        let latest = samples.last().filter(|sample| sample.at == self.now && !sample.kernel);
        let Some(sample) = latest.and_then(|_| u32::try_from(samples.len() - 1).ok()) else {
            return;
        };
        let known = self.out.registers.last();
        if known.is_none_or(|known| (known.task, known.sample) != (task, sample)) {
            self.out.registers.push(Registers { task, sample, general: [0; 32] });
        }
        if let Some(known) = self.out.registers.last_mut() {
            let place = known.general.iter_mut().skip(first.into());
            place.zip(values).for_each(|(known, value)| *known = value);
        }
    }

    /// A user stack of what a task is doing. A wait keeps the one of its call: what `/proc` shows of a long wait comes
    /// later, without a frame pointer, and ends where the code needs one.
    pub(super) fn site(&mut self, task: TaskId, stack: StackId) {
        match self.live[task.index()].stack_owner {
            StackOwner::Nothing => {}
            StackOwner::Call(call) => self.out.calls[call.index()].site = stack,
            StackOwner::Fault(fault) => self.out.faults[fault as usize].site = stack,
            StackOwner::Block(block) => {
                let site = &mut self.out.blocks[block as usize].site;
                if *site == StackId(0) {
                    *site = stack;
                }
            }
        }
    }

    /// The user stack that is known for what a task is doing.
    pub(super) fn site_of(&self, task: TaskId) -> StackId {
        let Live { fault, call, .. } = self.live[task.index()];
        if let Some(fault) = fault {
            return self.out.faults[fault as usize].site;
        }
        call.map_or(StackId(0), |c| self.out.calls[c.index()].site)
    }
}
