//! Lives of tasks: births, names, programs, deaths, and which task a tid stands for.

use super::Task;
use super::state::{Builder, Live, State};
use deadweight_trace::Event;
use deadweight_trace::ids::{NameId, TaskId, Tid};
use deadweight_trace::units::Ns;

/// The calls that start a thread or a copy of the process.
pub(crate) const STARTERS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];

/// How long before its birth's record a task may be seen: records of different CPUs are put in
/// order by clocks that differ by less.
const EARLY: Ns = Ns(10_000_000);

impl Builder<'_> {
    fn add(&mut self, task: Task, state: State) -> TaskId {
        let id = TaskId::at(self.out.tasks.len());
        let (tid, own) = (task.tid, task.own);
        if own {
            self.threads.entry(task.process).or_default().push(id);
        }
        self.out.tasks.push(task);
        self.live.push(Live::new(state));
        self.tids.set(tid, id);
        if own {
            self.mark(id, self.out.tasks[id.index()].birth);
        }
        id
    }

    pub(super) fn add_root(&mut self) -> TaskId {
        let (tid, birth) = (self.trace.meta.root, self.now);
        let root = Task { tid, process: tid, own: true, birth, ..Task::default() };
        self.add(root, State::Runnable)
    }

    /// The task with this tid; a new outsider if no known task has it.
    pub(super) fn find_or_add(&mut self, tid: Tid) -> TaskId {
        if let Some(task) = self.tids.get(tid) {
            return task;
        }
        let recorder = self.trace.meta.recorders.contains(&tid);
        let birth = self.now;
        let task = Task { tid, process: tid, birth, end: birth, recorder, ..Task::default() };
        self.add(task, State::Away)
    }

    /// After losses: a task that only an own task can be, but whose birth was not recorded.
    pub(super) fn adopt_unborn(&mut self, tid: Tid) -> TaskId {
        self.anomalies.unborn += 1;
        let task = self.find_or_add(tid);
        self.own_from(task, self.now, None, tid);
        self.live[task.index()].starting = false;
        task
    }

    /// An outsider turns out to be an own task.
    fn own_from(&mut self, task: TaskId, birth: Ns, parent: Option<TaskId>, process: Tid) {
        let cpu = self.cpus.iter().position(|c| c.current == Some(task));
        let entry = &mut self.out.tasks[task.index()];
        entry.own = true;
        entry.birth = birth;
        entry.parent = parent;
        entry.process = process;
        self.threads.entry(process).or_default().push(task);
        self.live[task.index()] = Live::new(State::Runnable);
        self.mark(task, birth);
        if let Some(cpu) = cpu.and_then(|c| u16::try_from(c).ok()) {
            self.live[task.index()].starting = false;
            self.resume(task, deadweight_trace::ids::Cpu(cpu));
        }
    }

    pub(super) fn fork(&mut self, event: &Event, child: Tid, process: Tid) {
        if child == Tid(0) || child == event.task {
            return;
        }
        let Some(parent) = self.running(event) else {
            self.fork_outside(event.task, child, process);
            return;
        };
        self.live[parent.index()].gave_birth = true;
        let name = self.current_name(parent);
        let of = self.out.tasks[parent.index()].process;
        self.descriptors.forked(of, process);
        if let Some(known) = self.tids.get(child) {
            let entry = &self.out.tasks[known.index()];
            if !entry.own && entry.birth + EARLY >= self.now {
                let birth = entry.birth;
                self.own_from(known, birth, Some(parent), process);
                if self.out.tasks[known.index()].names.is_empty() {
                    self.out.tasks[known.index()].names.push((birth, name));
                }
                return;
            }
            self.vanish(known);
        }
        self.add(
            Task {
                tid: child,
                process,
                parent: Some(parent),
                own: true,
                names: vec![(self.now, name)],
                birth: self.now,
                recorder: self.out.tasks[parent.index()].recorder,
                ..Task::default()
            },
            State::Runnable,
        );
    }

    fn fork_outside(&mut self, parent: Tid, child: Tid, process: Tid) {
        let early = |t: &TaskId| self.out.tasks[t.index()].birth + EARLY >= self.now;
        // A task that has a CPU is not born now: the recorder learned its process as it left the CPU.
        let runs = |t: &TaskId| self.cpus.iter().any(|cpu| cpu.current == Some(*t));
        if let Some(known) = self.tids.get(child).filter(|known| !early(known) && !runs(known)) {
            self.vanish(known);
        }
        let name = self.tids.get(parent).map_or(NameId(0), |p| self.current_name(p));
        let task = self.find_or_add(child);
        let entry = &mut self.out.tasks[task.index()];
        entry.process = process;
        if entry.names.is_empty() && name != NameId(0) {
            entry.names.push((entry.birth, name));
        }
    }

    /// A task is gone although its death was not seen: another task has its tid, or its process became
    /// another program.
    fn vanish(&mut self, task: TaskId) {
        if self.live[task.index()].state == State::Dead {
            return;
        }
        if self.out.tasks[task.index()].own {
            self.anomalies.replaced += 1;
        }
        self.forget(task);
    }

    pub(super) fn exec(&mut self, event: &Event, former: Tid, path: NameId) {
        if former != event.task && self.own(former).is_some() {
            self.take_over(event.task, former);
        }
        let Some(task) = self.running(event) else {
            return;
        };
        let process = self.out.tasks[task.index()].process;
        self.end_call(task, self.now, super::Call::NEVER);
        let others = self.threads.get(&process).cloned().unwrap_or_default();
        for other in others.into_iter().filter(|t| *t != task) {
            self.kill(other, Some((self.now, task)));
            self.forget(other);
        }
        self.ending.remove(&process);
        self.descriptors.executed(process);
        self.out.tasks[task.index()].execs.push((self.now, path));
        let live = &mut self.live[task.index()];
        live.fault = None;
        // What a process that was joined runs has started long ago.
        live.starting = !self.trace.meta.attached || self.now > self.trace.meta.start;
        live.last_call = None;
        self.mark(task, self.now);
    }

    /// A thread other than the first called exec: it has the leader's tid from now on.
    fn take_over(&mut self, leader: Tid, former: Tid) {
        let Some(task) = self.own(former) else { return };
        if let Some(old) = self.tids.get(leader).filter(|old| *old != task) {
            self.kill(old, Some((self.now, task)));
            self.forget(old);
        }
        self.tids.free(former);
        self.tids.set(leader, task);
        self.out.tasks[task.index()].tid = leader;
    }

    pub(super) fn name(&mut self, event: &Event, name: NameId) {
        let task = self.find_or_add(event.task);
        if self.current_name(task) != name {
            self.out.tasks[task.index()].names.push((self.now, name));
        }
    }

    /// The task starts to die.
    pub(super) fn exit(&mut self, task: TaskId) {
        let index = task.index();
        if self.live[index].exiting {
            return;
        }
        let nr = self.live[index].call.map(|c| Some(self.out.calls[c.index()].nr));
        let by_call = nr.is_some_and(|nr| nr == self.numbers.exit || nr == self.numbers.exit_group);
        let process = self.out.tasks[index].process;
        let ender = self.ending.get(&process).filter(|(_, by)| *by != task).copied();
        self.out.tasks[index].exit = Some(self.now);
        if !by_call {
            // A signal's wake-up is nearer to the cause than the death.
            let signalled = self.live[index].signalled;
            let killed = match (signalled, ender) {
                (Some((at, by)), Some((since, _))) if at >= since => Some((at, by)),
                (_, Some((since, by))) => Some((since, by)),
                (signalled, None) => signalled,
            };
            self.kill(task, killed);
        }
        // Where calls are not recorded, only a known killer contradicts it.
        let killed = self.out.tasks[index].killed.is_some();
        self.out.tasks[index].self_exit = by_call || nr.is_none() && !killed;
        self.end_call(task, self.now, super::Call::NEVER);
        let live = &mut self.live[index];
        live.fault = None;
        live.exiting = true;
        live.starting = false;
        self.mark(task, self.now);
    }

    fn kill(&mut self, task: TaskId, by: Option<(Ns, TaskId)>) {
        let entry = &mut self.out.tasks[task.index()];
        if entry.exit.is_none() || entry.exit == Some(self.now) {
            entry.killed = by.filter(|(_, by)| *by != task).or(entry.killed);
        }
    }

    /// The task was switched out for the last time.
    pub(super) fn die(&mut self, task: TaskId, tid: Tid) {
        if self.out.tasks[task.index()].exit.is_none() {
            self.exit(task);
        }
        self.forget(task);
        debug_assert!(self.tids.get(tid) != Some(task));
    }

    /// Ends a task's life now.
    pub(super) fn forget(&mut self, task: TaskId) {
        let index = task.index();
        if self.live[index].state == State::Dead {
            return;
        }
        self.close(task, self.now);
        self.live[index].state = State::Dead;
        let entry = &mut self.out.tasks[index];
        entry.end = self.now;
        entry.died = true;
        let (tid, process) = (entry.tid, entry.process);
        if self.tids.get(tid) == Some(task) {
            self.tids.free(tid);
        }
        if let Some(threads) = self.threads.get_mut(&process) {
            threads.retain(|t| *t != task);
            if threads.is_empty() {
                self.threads.remove(&process);
                self.ending.remove(&process);
                self.descriptors.ended(process);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::rows;

    #[test]
    fn a_process_that_was_joined_does_not_start() {
        let text = "task 1 server\n0 on\n0 exec /bin/server\n0 main\n2000 sample work\n9000 sample work\n10000 off preempted";
        assert!(rows(text, 9).contains("start-up"), "{}", rows(text, 9));
        let joined = rows(&format!("attached\n{text}"), 9);
        assert!(!joined.contains("start-up"), "{joined}");
    }
}
