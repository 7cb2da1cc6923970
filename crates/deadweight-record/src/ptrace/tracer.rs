//! The thread that traces: waits for stops, notes what they tell, and lets the tasks go on.
//!
//! The program must not notice: signals are passed on, group stops stay, calls are never
//! interrupted. Who cannot be traced without changing what it does is left alone from there:
//! programs with more rights than their user, and those that trace or are traced themselves.

mod aim;
mod aside;
mod joined;
mod recent;
mod samples;

use super::backlog::Backlog;
use super::calibrate::{Costs, thread_time};
use super::clock::Clock;
use super::dense::Watched;
use super::fresh::Fresh;
use super::note::{Note, User, What};
use super::requests::{self, AtCall, Go, Told, Waited};
use super::schedstat::{Counts, Schedstat};
use super::tracee::{Doing, Tracee};
use super::{maps, rights};
use crate::clock::now;
use crate::procfs;
use aim::Aim;
use aside::{effects, user_half};
use joined::Unheld;
use recent::Recent;
use std::collections::HashMap;
use std::fs;

/// Notes are handed on at the latest so many ns after the last time, or when there are so many.
const HAND_ON_EVERY: u64 = 15_000_000;
const HAND_ON_AT: usize = 4096;
/// What a task that waits did is told up to so many ns late.
const LATE: u64 = 25_000_000;
/// A task whose birth is not told after so many ns is taken as what `/proc` says.
const BIRTH: u64 = 20_000_000;

/// More tasks than this are many: each end and stop would cost the kernel time for every one of them.
const MANY: usize = 16;

/// While all wait, from the so manieth tick on, it comes so many times less often.
const RESTING: u32 = 50;
const SELDOM: u64 = 16;

/// What was left alone, and why.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Left {
    /// Programs with more rights than their user.
    pub(super) rights: u64,
    /// Tasks that trace or are traced by the program itself.
    pub(super) traced: u64,
}

/// The root's end as the kernel told it.
pub(super) struct End {
    pub(super) at: u64,
    pub(super) status: i32,
    pub(super) usage: Box<libc::rusage>,
}

pub(super) struct Tracer {
    root: u32,
    tasks: HashMap<u32, Tracee>,
    /// Stopped at their birth before their parent told of it, and since when.
    early: HashMap<u32, u64>,
    /// By process: memory that is not touched yet.
    fresh: HashMap<u32, Fresh>,
    /// Joined, and not stopping at their calls yet.
    unheld: HashMap<u32, Unheld>,
    /// Nothing after this is told.
    until: u64,
    recent: Recent,
    /// Who waits for whom to be left.
    leaving: HashMap<u32, Option<u32>>,
    notes: Vec<Note>,
    to: Backlog,
    told: u64,
    handed_on: u64,
    period: u64,
    aim: Aim,
    /// What the scheduler counts of this thread, and had counted before the present wait.
    own: Schedstat,
    before: Counts,
    /// Whether this thread slept until what it was told last.
    slept: bool,
    /// Ticks since anybody was seen to do anything.
    resting: u32,
    costs: Costs,
    /// Whether we have more rights than a set-user-id program would get.
    capable: bool,
    pub(super) left: Left,
    /// Calls that were told without a stop at each.
    pub(super) unwatched: u64,
}

impl Tracer {
    pub(super) fn new(root: u32, period: u64, costs: Costs, to: Backlog) -> Self {
        Self {
            root,
            tasks: HashMap::new(),
            early: HashMap::new(),
            fresh: HashMap::new(),
            unheld: HashMap::new(),
            until: u64::MAX,
            recent: Recent::default(),
            leaving: HashMap::new(),
            notes: Vec::new(),
            to,
            told: 0,
            handed_on: 0,
            period,
            aim: Aim::new(),
            own: Schedstat::of_this_thread(),
            before: Counts::default(),
            slept: false,
            resting: 0,
            costs,
            capable: rights::may_trace_anybody(),
            left: Left::default(),
            unwatched: 0,
        }
    }

    /// The root, which stands stopped behind its barrier, is let go towards it.
    pub(super) fn begin(&mut self) {
        let mut root = Tracee::new(self.root, self.root, now());
        root.forget_the_past(now());
        self.tasks.insert(self.root, root);
    }

    /// The barrier opened at this instant: what was before does not count.
    pub(super) fn released(&mut self, at: u64) {
        if let Some(root) = self.tasks.get_mut(&self.root) {
            root.forget_the_past(at);
        }
    }

    /// Until the root's end, or until a tick at which it is `over`. None if the root was left: then it is
    /// its parent's to wait for.
    pub(super) fn run(&mut self, clock: &Clock, over: &dyn Fn(bool) -> bool) -> Option<End> {
        loop {
            self.before = self.own.read().unwrap_or_default();
            match self.wait() {
                Waited::Task(task, told) => {
                    self.told = self.happened();
                    if self.resting >= RESTING {
                        clock.set(self.period);
                    }
                    self.resting = 0;
                    self.stopped(task, told);
                }
                Waited::Gone { task, status, usage } => {
                    let at = now();
                    if let Some(mut gone) = self.tasks.remove(&task) {
                        gone.die(at, &mut self.notes);
                    }
                    self.fresh.remove(&task);
                    if let Some(Some(waiter)) = self.leaving.remove(&task) {
                        self.go(waiter, Go::On(0));
                    }
                    if task == self.root {
                        self.hand_on(u64::MAX);
                        return Some(End { at, status, usage });
                    }
                }
                Waited::Tick => {
                    clock.has_ticked();
                    self.tick(clock);
                    let gone = !self.tasks.contains_key(&self.root);
                    if over(gone) || gone && procfs::has_ended(self.root) {
                        break;
                    }
                }
                Waited::Nobody => break,
            }
            // It ticks while others are seen to, too.
            if clock.has_ticked() {
                self.sample_late(clock);
            }
            if self.notes.len() >= HAND_ON_AT {
                self.hand_on(self.horizon());
            }
        }
        self.hand_on(u64::MAX);
        None
    }

    fn wait(&mut self) -> Waited {
        if self.tasks.len() <= MANY {
            return requests::wait();
        }
        requests::wait_among_many(self.root, self.recent.likely())
    }

    /// When that happened which a wait has just told: before we waited for a CPU to hear of it.
    fn happened(&mut self) -> u64 {
        let passed = self.own.read().unwrap_or_default().since(self.before);
        self.slept = passed.turns > 0;
        now().saturating_sub(passed.waited)
    }

    fn hand_on(&mut self, horizon: u64) {
        let mut notes = std::mem::take(&mut self.notes);
        notes.retain(|note| note.at <= self.until);
        self.handed_on = now();
        self.to.send(notes, horizon);
    }

    fn horizon(&self) -> u64 {
        let late = now().saturating_sub(LATE);
        self.tasks.values().map(Tracee::told_until).min().unwrap_or(late).min(late)
    }

    /// The clock ticked, and nobody has stopped whom this thread has not seen to.
    fn tick(&mut self, clock: &Clock) {
        let at = now();
        let next = self.interrupt(true);
        for tracee in self.tasks.values_mut() {
            tracee.look(at, &mut self.notes);
        }
        let rests = self.tasks.values().all(Tracee::is_parked);
        self.resting = if rests { self.resting.saturating_add(1) } else { 0 };
        if self.resting == RESTING {
            clock.set(SELDOM * self.period);
        }
        self.adopt(at);
        self.take_hold();
        if at.saturating_sub(self.handed_on) > HAND_ON_EVERY {
            self.hand_on(self.horizon());
        }
        self.aim_at(next, clock);
    }

    /// Takes those whose parent died before it could tell of their birth.
    fn adopt(&mut self, at: u64) {
        let old = |(_, since): &(&u32, &u64)| at.saturating_sub(**since) > BIRTH;
        let old: Vec<u32> = self.early.iter().filter(old).map(|(task, _)| *task).collect();
        for task in old {
            self.early.remove(&task);
            let process = rights::process_of(task).unwrap_or(task);
            let mut tracee = Tracee::new(process, task, at);
            tracee.stopped = true;
            self.tasks.insert(task, tracee);
            self.go(task, Go::On(0));
        }
    }

    fn stopped(&mut self, task: u32, told: Told) {
        if told == Told::Exec {
            self.exec(task);
            return;
        }
        let Some(tracee) = self.tasks.get_mut(&task) else {
            self.early.insert(task, now());
            return;
        };
        let asked = tracee.asked;
        tracee.arrive(self.told, self.costs.of(tracee.letting_go, self.slept), &mut self.notes);
        if self.unheld.remove(&task).is_some() {
            return self.first_stop(task, told);
        }
        let sampled = told == Told::Interrupted && asked;
        let user = if sampled { user_half(task) } else { None };
        if tracee.doing == Doing::User {
            let fresh = self.fresh.get_mut(&tracee.process);
            tracee.count_faults(self.costs.fault, fresh, user.as_ref(), &mut self.notes);
        }
        if let Some(waiter) = self.leaving.remove(&task) {
            self.leave(task);
            self.left.traced += 1;
            if let Some(waiter) = waiter {
                self.go(waiter, Go::On(0));
            }
            return;
        }
        if let Some(until) = tracee.dense.until() {
            return self.loose(task, told, user, sampled && self.told < until);
        }
        self.strict(task, told, user);
    }

    fn strict(&mut self, task: u32, told: Told, user: Option<User>) {
        match told {
            Told::AtCall => return self.at_call(task),
            Told::Birth => self.birth(task),
            Told::GroupStop => {
                if let Some(tracee) = self.tasks.get_mut(&task) {
                    tracee.rest(&mut self.notes);
                }
                return self.go(task, Go::Listening);
            }
            Told::Signal(signal) => {
                self.hold(task);
                return self.go(task, Go::On(signal));
            }
            Told::Exiting => {
                if let Some(tracee) = self.tasks.get_mut(&task) {
                    tracee.doing = Doing::Exit;
                    tracee.pending.push(What::Exit);
                }
            }
            Told::Interrupted => self.sample(task, user),
            Told::Exec => {}
        }
        self.hold(task);
        self.go(task, Go::On(0));
    }

    fn hold(&mut self, task: u32) {
        if let Some(tracee) = self.tasks.get_mut(&task) {
            tracee.hold(&mut self.notes);
        }
    }

    fn go(&mut self, task: u32, how: Go) {
        if self.tasks.len() > MANY {
            self.recent.add(task);
        }
        if let Some(tracee) = self.tasks.get_mut(&task) {
            tracee.let_go(now());
            let start = thread_time();
            // Only who was killed meanwhile refuses: its end will be told.
            _ = requests::go(task, how);
            tracee.letting_go = thread_time() - start;
        }
    }

    fn at_call(&mut self, task: u32) {
        let Some(tracee) = self.tasks.get_mut(&task) else { return };
        tracee.dense.add();
        match requests::at_call(task) {
            AtCall::Entry { nr, args } => {
                if let Some(same) = tracee.resumes.take() {
                    // The call that it was in when it was joined goes on.
                    tracee.doing = same;
                    tracee.hold(&mut self.notes);
                    return self.go(task, Go::On(0));
                }
                tracee.doing = Doing::Call { nr, args };
                tracee.pending.push(What::Call { nr, args });
                if tracee.wants_site(nr, self.told)
                    && let Some(user) = user_half(task)
                {
                    tracee.pending.push(What::Site(user));
                }
                tracee.hold(&mut self.notes);
                if !self.may_stay(task, nr, &args) {
                    return;
                }
            }
            AtCall::Exit { ret } => {
                let was = std::mem::replace(&mut tracee.doing, Doing::User);
                tracee.hold(&mut self.notes);
                if let Doing::Call { nr, args } = was {
                    tracee.pending.push(What::Back(ret));
                    effects(tracee, nr, &args, ret);
                    let fresh = self.fresh.entry(tracee.process).or_default();
                    fresh.returned(libc::c_long::from(nr), &args, ret);
                    tracee.dense.watch(Watched { nr, args, ret });
                }
                if tracee.dense.is_due(self.told) {
                    tracee.loosen(self.told);
                    return self.go(task, Go::Loose);
                }
            }
            AtCall::Neither => tracee.hold(&mut self.notes),
        }
        self.go(task, Go::On(0));
    }

    /// Whether the task can be traced through this call. If not it is left, or waits for another
    /// to be.
    fn may_stay(&mut self, task: u32, nr: u16, args: &[u64; 6]) -> bool {
        let call = libc::c_long::from(nr);
        let becomes = match call {
            libc::SYS_execve => Some((libc::AT_FDCWD, args[0])),
            #[expect(clippy::cast_possible_truncation, reason = "an int in a register")]
            libc::SYS_execveat => Some((args[0] as i32, args[1])),
            _ => None,
        };
        if let Some((dir, name)) = becomes.filter(|_| !self.capable)
            && rights::more_than_ours(task, dir, name)
        {
            self.left.rights += 1;
            self.leave(task);
            return false;
        }
        if call != libc::SYS_ptrace {
            return true;
        }
        match rights::traced_by(args) {
            rights::Traced::Itself => {
                self.left.traced += 1;
                self.leave(task);
                false
            }
            rights::Traced::Other(other) if other != task && self.tasks.contains_key(&other) => {
                if requests::interrupt(other).is_err() {
                    return true;
                }
                self.leaving.insert(other, Some(task));
                false
            }
            _ => true,
        }
    }

    /// Leaves a stopped task to itself: nothing more is known of it.
    fn leave(&mut self, task: u32) {
        let Some(mut tracee) = self.tasks.remove(&task) else { return };
        let at = tracee.cursor;
        tracee.note(at, What::On, &mut self.notes);
        tracee.note(at, What::Left, &mut self.notes);
        _ = requests::detach(task, 0);
    }

    fn birth(&mut self, task: u32) {
        let Some(child) = requests::message(task).filter(|child| !self.tasks.contains_key(child))
        else {
            // Joined while it was being born.
            return;
        };
        let Some(parent) = self.tasks.get_mut(&task) else { return };
        let thread = fs::exists(format!("/proc/{}/task/{child}", parent.process));
        let process = if thread.unwrap_or(false) { parent.process } else { child };
        let at = parent.cursor;
        parent.note(at, What::Fork { child, process }, &mut self.notes);
        let mut tracee = Tracee::new(process, child, at);
        if self.early.remove(&child).is_some() {
            tracee.arrive(self.told, self.costs.of(tracee.letting_go, self.slept), &mut self.notes);
            tracee.hold(&mut self.notes);
        }
        let waits = tracee.stopped;
        self.tasks.insert(child, tracee);
        if waits {
            self.go(child, Go::On(0));
        }
    }

    /// A task became another program. One that is not its process's first takes the first one's
    /// number, and all others are gone.
    fn exec(&mut self, task: u32) {
        let former = requests::message(task).unwrap_or(task);
        let Some(mut tracee) = self.tasks.remove(&former) else {
            self.early.insert(task, now());
            return;
        };
        tracee.arrive(self.told, self.costs.of(tracee.letting_go, self.slept), &mut self.notes);
        tracee.dense.again(self.told);
        self.fresh.remove(&tracee.process);
        if former != task
            && let Some(first) = self.tasks.get_mut(&task)
        {
            tracee.becomes(task, first);
        }
        let path = fs::read_link(format!("/proc/{task}/exe")).unwrap_or_default();
        let path = path.to_string_lossy().into_owned();
        let mut note = |what| tracee.note(tracee.cursor, what, &mut self.notes);
        note(What::Exec { former, path });
        if let Some(name) = procfs::line(format!("/proc/{task}/comm")) {
            note(What::Comm(name));
        }
        maps::all(task).into_iter().map(What::Map).for_each(&mut note);
        let descriptors = procfs::descriptors(task);
        for closed in (0..3).filter(|fd| descriptors.iter().all(|(open, _)| open != fd)) {
            note(What::Fd { fd: closed, what: String::new() });
        }
        descriptors.into_iter().for_each(|(fd, what)| note(What::Fd { fd, what }));
        tracee.hold(&mut self.notes);
        self.tasks.insert(task, tracee);
        self.go(task, Go::On(0));
    }
}
