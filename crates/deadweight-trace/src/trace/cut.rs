//! A part of a trace, from one time to another, as a trace of its own. It begins with the state at its start.
//!
//! It makes a small test of a moment in a recording. The state carried over: births, names, programs, listed
//! descriptors, the task on each CPU, and the call or fault that each task is in. Not carried over: descriptors opened
//! since they were listed.

use super::Trace;
use crate::event::{Event, Kind, Off};
use crate::ids::{Cpu, NameId, StackId, Tid};
use crate::meta::Meta;
use crate::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

impl Trace {
    /// The events from `from` to `to`, both included, after the state at `from`. Tasks without a part in them are
    /// left out.
    #[must_use]
    pub fn cut(&self, from: Ns, to: Ns) -> Self {
        let mut known = Known::default();
        for event in self.events().take_while(|e| e.at < from) {
            known.pass(&event);
        }
        let part =
            || self.events().skip_while(move |e| e.at < from).take_while(move |e| e.at <= to);
        let mut events = known.opening(from, &known.participants(self.meta.root, part()));
        events.extend(part());
        let meta = &self.meta;
        let whole = from <= meta.start && to >= meta.end;
        let meta = Meta {
            start: meta.start.max(from),
            end: meta.end.min(to),
            exit: meta.exit.filter(|_| to >= meta.end),
            rusage: meta.rusage.filter(|_| whole),
            ..meta.clone()
        };
        Self::new(meta, self.symbols.clone(), events)
    }
}

/// The state of all tasks at one point.
#[derive(Debug, Default)]
struct Known {
    lives: BTreeMap<Tid, Life>,
    /// What descriptors of a process refer to.
    descriptors: BTreeMap<Tid, BTreeMap<i32, NameId>>,
    /// The latest task of each CPU.
    held: BTreeMap<Cpu, Tid>,
    births: usize,
}

/// The state of one task.
#[derive(Clone, Debug, Default)]
struct Life {
    /// Its place in the order of births, and its parent; none for the root and for other programs.
    birth: Option<(usize, Tid)>,
    process: Option<Tid>,
    name: Option<NameId>,
    exec: Option<NameId>,
    main: bool,
    exiting: bool,
    cpu: Cpu,
    run: Run,
    call: Option<Event>,
    call_site: Option<StackId>,
    fault: Option<Event>,
}

/// Whether a task has its CPU.
#[derive(Copy, Clone, Debug, Default)]
enum Run {
    /// Not seen on a CPU yet.
    #[default]
    Unseen,
    On,
    Off {
        why: Off,
        stack: StackId,
        wake: Option<Kind>,
    },
}

impl Known {
    fn life(&mut self, task: Tid) -> &mut Life {
        self.lives.entry(task).or_default()
    }

    fn process(&self, task: Tid) -> Tid {
        self.lives.get(&task).and_then(|l| l.process).unwrap_or(task)
    }

    fn pass(&mut self, event: &Event) {
        match event.kind {
            Kind::Fork { child, process } => {
                self.births += 1;
                let birth = Some((self.births, event.task));
                let name = self.life(event.task).name;
                let life = Life { birth, process: Some(process), name, ..Life::default() };
                self.lives.insert(child, life);
                if process == child {
                    let of = self.process(event.task);
                    let inherited = self.descriptors.get(&of).cloned().unwrap_or_default();
                    self.descriptors.insert(child, inherited);
                }
            }
            Kind::Fd { fd, what } => {
                let process = self.process(event.task);
                self.descriptors.entry(process).or_default().insert(fd, what);
            }
            Kind::Off { why: Off::Dead, .. } => drop(self.lives.remove(&event.task)),
            Kind::On => {
                // It is not recorded when a task of another program leaves its CPU: the next task shows it.
                let before = self.held.insert(event.cpu, event.task);
                if let Some(life) = before.and_then(|task| self.lives.get_mut(&task)) {
                    life.yield_to_another();
                }
                self.life(event.task).pass(event);
            }
            _ => self.life(event.task).pass(event),
        }
    }

    /// The tasks with a part in `events`: tasks of events, their wakers and their ancestors; tasks on a CPU; and the
    /// root.
    fn participants(&self, root: Tid, events: impl Iterator<Item = Event>) -> BTreeSet<Tid> {
        let mut participants = BTreeSet::from([root]);
        participants.extend(self.running().map(|(task, _)| task));
        for event in events {
            participants.insert(event.task);
            if let Kind::Wake { waker, .. } = event.kind {
                participants.insert(waker);
            }
        }
        let mut new: Vec<Tid> = participants.iter().copied().collect();
        while let Some(task) = new.pop() {
            let life = self.lives.get(&task);
            let parent = life.and_then(|l| l.birth).map(|(_, parent)| parent);
            let leader = life.and_then(|l| l.process);
            new.extend([parent, leader].into_iter().flatten().filter(|t| participants.insert(*t)));
        }
        participants
    }

    fn running(&self) -> impl Iterator<Item = (Tid, &Life)> {
        self.lives.iter().filter(|(_, l)| matches!(l.run, Run::On)).map(|(t, l)| (*t, l))
    }

    /// Events at `at` that restore the state of `participants`.
    fn opening(&self, at: Ns, participants: &BTreeSet<Tid>) -> Vec<Event> {
        let mut lives: Vec<(Tid, &Life)> = self
            .lives
            .iter()
            .filter(|(t, _)| participants.contains(t))
            .map(|(t, l)| (*t, l))
            .collect();
        // Parents before children; tasks without a birth existed from the start.
        lives.sort_by_key(|(_, l)| l.birth);
        let mut events = Vec::new();
        let mut push = |cpu, task, kind| events.push(Event { at, cpu, task, kind });
        for (task, life) in &lives {
            if let Some((_, parent)) = life.birth {
                let process = life.process.unwrap_or(*task);
                push(life.cpu, parent, Kind::Fork { child: *task, process });
            }
            if let Some(name) = life.name {
                push(life.cpu, *task, Kind::Comm(name));
            }
            if let Some(path) = life.exec {
                push(life.cpu, *task, Kind::Exec { former: *task, path });
            }
            for (fd, what) in self.descriptors.get(task).into_iter().flatten() {
                push(life.cpu, *task, Kind::Fd { fd: *fd, what: *what });
            }
            if life.main {
                push(life.cpu, *task, Kind::Main);
            }
        }
        // Tasks on a CPU come last.
        let (on, off): (Vec<_>, Vec<_>) = lives.into_iter().partition(|(_, l)| l.is_on());
        for (task, life) in off.into_iter().chain(on) {
            life.resume(|kind| push(life.cpu, task, kind));
        }
        events
    }
}

impl Life {
    fn is_on(&self) -> bool {
        matches!(self.run, Run::On)
    }

    fn yield_to_another(&mut self) {
        if self.is_on() {
            self.run = Run::Unseen;
        }
    }

    fn pass(&mut self, event: &Event) {
        if !matches!(event.kind, Kind::Wake { .. }) {
            self.cpu = event.cpu;
        }
        match event.kind {
            Kind::Comm(name) => self.name = Some(name),
            Kind::Exec { path, .. } => {
                (self.exec, self.main, self.call) = (Some(path), false, None);
            }
            Kind::Main => self.main = true,
            Kind::Exit => self.exiting = true,
            Kind::On => self.run = Run::On,
            Kind::Off { why, stack } => self.run = Run::Off { why, stack, wake: None },
            Kind::Wake { .. } => {
                if let Run::Off { wake, .. } = &mut self.run {
                    *wake = Some(event.kind);
                }
            }
            Kind::Syscall { .. } => (self.call, self.call_site) = (Some(*event), None),
            Kind::Back { .. } => self.call = None,
            Kind::Fault { .. } => self.fault = Some(*event),
            Kind::FaultEnd { .. } => self.fault = None,
            Kind::Site(stack) if self.call.is_some_and(|c| c.at == event.at) => {
                self.call_site = Some(stack);
            }
            Kind::Fork { .. }
            | Kind::Calls { .. }
            | Kind::Timer
            | Kind::TimerEnd
            | Kind::Sample { .. }
            | Kind::Site(_)
            | Kind::Map { .. }
            | Kind::Fd { .. }
            | Kind::Page { .. }
            | Kind::Registers { .. }
            | Kind::Probe { .. }
            | Kind::Lost { .. } => {}
        }
    }

    /// Restores the call, fault or wait that the task is in.
    fn resume(&self, mut push: impl FnMut(Kind)) {
        if matches!(self.run, Run::Unseen) {
            return;
        }
        push(Kind::On);
        if let Some(call) = self.call {
            push(call.kind);
            if let Some(stack) = self.call_site {
                push(Kind::Site(stack));
            }
        }
        if let Some(fault) = self.fault {
            push(fault.kind);
        }
        if self.exiting {
            push(Kind::Exit);
        }
        if let Run::Off { why, stack, wake } = self.run {
            push(Kind::Off { why, stack });
            if let Some(wake) = wake {
                push(wake);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    const LONG: &str = "\
task 1 sh
     0 [1] on
     0 [1] fd 0 pipe:[7]
    10 [1] fork 2
    20 [2] on
    25 [2] exec /bin/xxd
    26 [2] fd 1 pipe:[7]
    27 [2] comm xxd
    30 [1] syscall read 0 4096 from fill <- main
    40 [1] off blocked read 0 : anon_pipe_read < vfs_read
    50 [2] syscall write 1 512
    60 [1] woken-by 2 : anon_pipe_write < vfs_write
    65 [1] on
    70 [2] back
    80 [1] back 512
    90 [2] exit
    95 [2] off dead
   100 [1] exit
";

    fn check(from: u64, to: u64, part: &Expect) {
        let cut = Trace::from_text(LONG).unwrap().cut(Ns(from), Ns(to));
        assert_eq!(Trace::from_text(&cut.to_text()).unwrap().to_text(), cut.to_text());
        part.assert_eq(&cut.to_text());
    }

    #[test]
    fn the_state_at_the_start_comes_first() {
        check(
            55,
            75,
            &expect![[r#"
                start 55
                end 75
                task 1 sh
                task 2 xxd
                    55 [1 sh] fd 0 pipe:[7]
                    55 [1 sh] cpu1 fork 2
                    55 [2 xxd] cpu1 exec /bin/xxd
                    55 [2 xxd] fd 0 pipe:[7]
                    55 [2 xxd] fd 1 pipe:[7]
                    55 [1 sh] cpu0 on
                    55 [1 sh] syscall read 0 4096 from fill <- main
                    55 [1 sh] off blocked read 0 : anon_pipe_read < vfs_read
                    55 [2 xxd] on
                    55 [2 xxd] syscall write 1 512
                    60 [1 sh] woken-by 2 xxd : anon_pipe_write < vfs_write
                    65 [1 sh] on
                    70 [2 xxd] back
            "#]],
        );
    }

    #[test]
    fn after_its_death_a_task_is_forgotten() {
        check(
            97,
            100,
            &expect![[r#"
            cpus 2
            start 97
            task 1 sh
                97 fd 0 pipe:[7]
                97 on
               100 exit
        "#]],
        );
    }

    #[test]
    fn a_task_of_another_program_leaves_its_cpu_when_the_next_comes() {
        let text = "task 1 a\n0 [1] on\n5 [7] cpu1 on\n6 [8] cpu1 on\n20 [1] exit";
        let cut = Trace::from_text(text).unwrap().cut(Ns(10), Ns(20));
        let on: Vec<u32> = cut.events().filter(|e| e.kind == Kind::On).map(|e| e.task.0).collect();
        assert_eq!(on, [1, 8]);
    }

    #[test]
    fn cutting_nothing_off_gives_the_same_trace() {
        let whole = Trace::from_text(LONG).unwrap();
        assert_eq!(whole.cut(Ns::ZERO, Ns::MAX).to_text(), whole.to_text());
    }
}
