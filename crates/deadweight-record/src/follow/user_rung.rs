//! Records of the program's own tasks, where nothing else is recorded: the user rung.
//!
//! There the kernel reports that a task was switched out, but not why. The last record of a task
//! comes before the kernel frees its memory, so the task ends later than recorded. After exec, only
//! the first mapping names the new program. Wakers are inferred later, from the whole recording.

use super::missing_ticks::Ticks;
use super::{Exec, Follow, Role};
use crate::perf::decode::{Body, Record};
use crate::session::UserView;
use deadweight_trace::Off;
use deadweight_trace::hash::ByFast;
use deadweight_trace::raw::{OTHER_PROGRAM, OTHER_PROGRAM_NAME, RawKind};
use std::collections::HashMap;

/// How long the exit of a process may take, in ns, if no process waits for it. If one does, its wake-up
/// shows the end.
const LONGEST_DEATH: u64 = 20_000_000;
/// The same for a thread whose process lives on.
const LONGEST_DEATH_OF_THREAD: u64 = 200_000;

/// The state of the user rung.
pub(super) struct UserRung {
    /// Whether switches of all tasks of the machine are recorded, not only of the program's.
    everyone: bool,
    ticks: Ticks,
    /// Whether the command's first process called exec: the wall time begins.
    started: bool,
    /// Tasks after an exec whose file is not known yet.
    execs: HashMap<u32, Named, ByFast>,
    dying: Vec<Dying>,
    /// Since when tasks are on a CPU, and the sum of all times on a CPU.
    on_since: HashMap<u32, u64, ByFast>,
    on_cpu: u64,
    /// When and on which CPU the root's records ended.
    root_ended: Option<(u64, u32)>,
}

struct Named {
    record: Record<'static>,
    name: Vec<u8>,
}

#[derive(Copy, Clone)]
struct Dying {
    task: u32,
    process: u32,
    parent: u32,
    cpu: u32,
    at: u64,
}

impl UserRung {
    pub(super) fn new(view: UserView, cpus: usize) -> Self {
        Self {
            everyone: view.everyone,
            ticks: Ticks::new(view.period, cpus),
            started: false,
            execs: HashMap::default(),
            dying: Vec::new(),
            on_since: HashMap::default(),
            on_cpu: 0,
            root_ended: None,
        }
    }
}

impl Dying {
    /// When it is dead, if no record shows it earlier.
    fn at_the_latest(&self) -> u64 {
        let longest = match self.task == self.process {
            true => LONGEST_DEATH,
            false => LONGEST_DEATH_OF_THREAD,
        };
        self.at.saturating_add(longest)
    }
}

impl UserRung {
    fn leaves_cpu(&mut self, task: u32, at: u64) {
        if let Some(since) = self.on_since.remove(&task) {
            self.on_cpu += at.saturating_sub(since);
        }
    }
}

/// The same instant, without its event.
fn instant(record: &Record<'_>) -> Record<'static> {
    let Record { at, process, task, cpu, .. } = *record;
    Record { at, process, task, cpu, body: Body::Other }
}

impl Follow<'_> {
    /// Reports everything that must have happened before this record.
    pub(super) fn catch_up(&mut self, record: &Record<'_>) {
        let Some(rung) = &mut self.user_rung else { return };
        let task = record.task;
        if rung.execs.contains_key(&task) {
            match &record.body {
                Body::Map { executable: true, path, .. } => self.executed(task, path),
                Body::Map { .. } | Body::Comm { .. } | Body::Exit { .. } => {}
                _ => self.executed(task, b""),
            }
        }
        self.missing_ticks(record);
        let Some(rung) = &mut self.user_rung else { return };
        if rung.dying.is_empty() {
            return;
        }
        let late: Vec<Dying> =
            rung.dying.extract_if(.., |dying| record.at > dying.at_the_latest()).collect();
        self.report_late_deaths(late, record.at);
    }

    /// Whether a breakpoint in the command's binary was hit by a process that runs another program: a breakpoint is
    /// only an address.
    pub(super) fn ran_another_program(&self, process: u32) -> bool {
        self.user_rung.is_some() && self.tasks.get(&process).is_none_or(|task| task.other_program)
    }

    fn missing_ticks(&mut self, record: &Record<'_>) {
        let Some(rung) = self.user_rung.as_mut().filter(|rung| rung.started) else { return };
        let sampled = matches!(&record.body, Body::Sample(sample) if sample.role == Role::Clock);
        let missing = rung.ticks.missing(record.cpu, record.task, record.at, sampled);
        for _ in 0..missing.min(1 << 16) {
            let tick = RawKind::Sample { kernel: true, user: None, chain: &[] };
            self.emit(record, record.task, tick);
        }
    }

    /// A task was switched in or out.
    pub(super) fn user_rung_switched(&mut self, record: &Record<'_>, out: bool, runnable: bool) {
        let task = record.task;
        let followed = self.follows(task);
        let Some(rung) = &mut self.user_rung else { return };
        if task == super::REAPED || !(followed || rung.everyone) {
            return;
        }
        if out && followed {
            self.stats.switches += 1;
            rung.ticks.off(record.cpu, task, record.at);
            rung.leaves_cpu(task, record.at);
            let dying = rung.dying.extract_if(.., |dying| dying.task == task).next().is_some();
            let yielding = self.tasks.get(&task).is_some_and(|t| t.yielding);
            let why = match (runnable, yielding) {
                _ if dying && !runnable => Off::Dead,
                (true, true) => Off::Yielded,
                (true, false) => Off::Preempted,
                (false, _) => Off::Blocked,
            };
            self.emit(record, task, RawKind::Off { why, chain: &[] });
            self.expect_user_stack(record, task, Role::WaitSite);
            if runnable {
                self.taken_over(record);
            }
            self.stats.root_dead |= task == self.start.root && why == Off::Dead;
        } else if !out {
            self.report_deaths_before(record);
            let known = self.tasks.contains_key(&task);
            self.tasks.entry(task).or_default().process = record.process;
            self.emit(record, task, RawKind::On);
            if let Some(rung) = self.user_rung.as_mut().filter(|_| followed) {
                rung.ticks.on(record.cpu, task, record.at);
                rung.on_since.insert(task, record.at);
            } else if !known && let Ok(name) = std::fs::read(format!("/proc/{task}/comm")) {
                self.named(record, task, name.trim_ascii());
            }
        }
    }

    /// A runnable task lost its CPU: another task has it now. Where only the program's tasks are recorded, it is
    /// another program's, until one of the program's tasks shows up there.
    fn taken_over(&mut self, record: &Record<'_>) {
        if self.user_rung.as_ref().is_some_and(|rung| !rung.everyone) {
            self.tasks.entry(OTHER_PROGRAM).or_default();
            self.named(record, OTHER_PROGRAM, OTHER_PROGRAM_NAME.as_bytes());
            self.emit(record, OTHER_PROGRAM, RawKind::On);
        }
    }

    /// The next task on a CPU follows the exit of a dying task there; and a parent that waits is woken by its child's
    /// exit.
    fn report_deaths_before(&mut self, record: &Record<'_>) {
        let waits = self.tasks.get(&record.task).is_some_and(|t| t.waits_for_children);
        let Some(rung) = &mut self.user_rung else { return };
        let over = |dying: &Dying| {
            dying.cpu == record.cpu
                || waits && dying.parent == record.process
                || dying.task != dying.process && dying.process == record.process
        };
        let over: Vec<Dying> = rung.dying.extract_if(.., |dying| over(dying)).collect();
        over.into_iter().for_each(|dying| self.report_death(record.at, dying));
    }

    fn report_death(&mut self, at: u64, dying: Dying) {
        let Dying { task, process, cpu, .. } = dying;
        if let Some(rung) = &mut self.user_rung {
            rung.ticks.forget(task);
        }
        let record = Record { at, process, task, cpu, body: Body::Other };
        self.emit(&record, task, RawKind::Off { why: Off::Dead, chain: &[] });
    }

    /// The root's last steps, after its records ended. `used` is the kernel's count of all CPU time in ns. The unused
    /// time until `end` was spent without a CPU: waiting for one if the root was `queued` as long in all its life,
    /// otherwise waiting for something unknown.
    pub(crate) fn last_steps(&mut self, used: u64, queued: Option<u64>, end: u64) {
        self.report_all_deaths(end);
        let Some(rung) = &self.user_rung else { return };
        let Some((at, cpu)) = rung.root_ended else { return };
        let idle_from = at.saturating_add(used.saturating_sub(rung.on_cpu));
        if rung.everyone || idle_from >= end {
            return;
        }
        let root = self.start.root;
        let step = |at| Record { at, process: root, task: root, cpu, body: Body::Other };
        let asleep = queued.is_some_and(|queued| queued < (end - idle_from) / 2);
        let why = if asleep { Off::Blocked } else { Off::Preempted };
        self.emit(&step(idle_from), root, RawKind::Off { why, chain: &[] });
        if !asleep {
            self.taken_over(&step(idle_from));
        }
        self.emit(&step(end), root, RawKind::On);
        self.emit(&step(end), root, RawKind::Off { why: Off::Dead, chain: &[] });
    }

    /// No more records can show their exits: without this they would seem to be dying until the end.
    fn report_all_deaths(&mut self, end: u64) {
        let Some(rung) = &mut self.user_rung else { return };
        let dying = std::mem::take(&mut rung.dying);
        self.report_late_deaths(dying, end);
    }

    /// Nothing showed these deaths. The next record may come long after them, where all other tasks sleep.
    fn report_late_deaths(&mut self, mut dying: Vec<Dying>, end: u64) {
        dying.sort_by_key(Dying::at_the_latest);
        for dying in dying {
            self.report_death(dying.at_the_latest().min(end), dying);
        }
    }

    /// A task called exec; its first mapping shows the file.
    pub(super) fn user_rung_execs(&mut self, record: &Record<'_>, task: u32, name: &[u8]) {
        let Some(rung) = &mut self.user_rung else { return };
        if task == self.start.root && !rung.started {
            rung.started = true;
            rung.ticks.forget(task);
            rung.ticks.on(record.cpu, task, record.at);
        }
        rung.execs.insert(task, Named { record: instant(record), name: name.to_vec() });
    }

    fn executed(&mut self, task: u32, path: &[u8]) {
        let Some(named) = self.user_rung.as_mut().and_then(|rung| rung.execs.remove(&task)) else {
            return;
        };
        let process = self.tasks.get(&task).map_or(task, |t| t.process);
        let caller =
            self.tasks.iter().find(|(_, t)| t.followed && t.process == process && t.in_exec);
        let former = caller.map_or(task, |(tid, _)| *tid);
        self.exec(&named.record, task, Some(&Exec { former, path }));
        self.named(&named.record, task, &named.name);
    }

    /// The records of a task end: it exits, or it called exec on a program that an ordinary user may not trace.
    pub(super) fn user_rung_exits(&mut self, record: &Record<'_>, task: u32) {
        let Some(rung) = &mut self.user_rung else { return };
        let hidden = rung.execs.contains_key(&task);
        rung.leaves_cpu(task, record.at);
        if let Some(ends) = self.tasks.get_mut(&task) {
            ends.entered = None;
        }
        if task == self.start.root && !hidden {
            rung.root_ended = Some((record.at, record.cpu));
        }
        if task != self.start.root {
            let (process, parent) =
                self.tasks.get(&task).map_or((task, 0), |t| (t.process, t.parent));
            rung.dying.push(Dying { task, process, parent, cpu: record.cpu, at: record.at });
        }
        if hidden {
            self.stats.hidden += 1;
            self.executed(task, b"");
            self.emit(record, task, RawKind::Lost { count: 1 });
        } else {
            self.emit(record, task, RawKind::Exit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Start;
    use super::*;
    use crate::perf::schema::Offsets;
    use deadweight_trace::Meta;
    use deadweight_trace::raw::{RawEvent, Sink};

    /// Keeps which tasks were switched out, when and why.
    #[derive(Default)]
    struct Leaving(Vec<(u32, u64, Off)>);

    impl Sink for Leaving {
        fn begin(&mut self, _: &Meta) {}
        fn event(&mut self, event: &RawEvent<'_>) {
            if let RawKind::Off { why, .. } = event.kind {
                self.0.push((event.task.0, event.at, why));
            }
        }
        fn finish(&mut self, _: Meta) {}
    }

    /// A thread exits after its process's first, and nothing follows.
    fn last_steps(queued: Option<u64>) -> Vec<(u32, u64, Off)> {
        let mut leaving = Leaving::default();
        let view = UserView { everyone: false, period: 0, recording: 0 };
        let start = Start { root: 7, user_view: Some(view), ..Start::default() };
        let mut follow = Follow::new(&mut leaving, Offsets::default(), &[], start, 2);
        let record = |at, task, body| Record { at, process: 7, task, cpu: 0, body };
        let body = Body::Fork { process: 7, task: 8, parent: 7 };
        follow.take(&record(1_000, 7, body), None);
        follow.user_rung_exits(&record(2_000, 7, Body::Other), 7);
        follow.user_rung_exits(&record(3_000, 8, Body::Other), 8);
        follow.last_steps(1_000_000, queued, 5_000_000);
        leaving.0
    }

    #[test]
    fn a_thread_that_dies_as_the_last_one_is_not_dying_until_the_end() {
        let thread = (8, 3_000 + LONGEST_DEATH_OF_THREAD, Off::Dead);
        let root = [(7, 1_002_000, Off::Preempted), (7, 5_000_000, Off::Dead)];
        assert_eq!(last_steps(None), [thread, root[0], root[1]]);
    }

    #[test]
    fn a_thread_that_ends_while_all_others_sleep_is_dead_long_before_they_go_on() {
        let mut leaving = Leaving::default();
        let view = UserView { everyone: false, period: 0, recording: 0 };
        let start = Start { root: 7, user_view: Some(view), ..Start::default() };
        let mut follow = Follow::new(&mut leaving, Offsets::default(), &[], start, 2);
        let record = |at, task, cpu, body| Record { at, process: 7, task, cpu, body };
        follow.take(&record(1_000, 7, 0, Body::Fork { process: 7, task: 8, parent: 7 }), None);
        follow.take(&record(3_000, 8, 1, Body::Exit { task: 8 }), None);
        let woken = Body::Switched { out: false, runnable: false };
        follow.take(&record(15_000_000, 7, 0, woken), None);
        assert_eq!(leaving.0, [(8, 3_000 + LONGEST_DEATH_OF_THREAD, Off::Dead)]);
    }

    #[test]
    fn a_root_that_was_rarely_queued_did_not_wait_for_a_cpu_at_its_end() {
        assert_eq!(last_steps(Some(3_000_000))[1], (7, 1_002_000, Off::Preempted));
        assert_eq!(last_steps(Some(1_000_000))[1], (7, 1_002_000, Off::Blocked));
    }
}
