//! The tracing thread: waits for stops, emits the events that they show, and resumes the tasks.
//!
//! The program must not notice: signals are delivered, group stops stay, calls are never
//! interrupted. Tasks that tracing would change are detached: programs that gain privileges, and
//! tasks that trace or are traced themselves. Does not derive events from counts; see `tracee`.

mod attach;
mod inspect;
mod recently_resumed;
mod samples;
mod sampling_cpu;

use super::calibrate::{StopCosts, thread_cpu_time};
use super::event::{EventKind, TaskEvent, UserSnapshot};
use super::event_queue::EventSender;
use super::first_touch::FirstTouch;
use super::high_rate::ObservedCall;
use super::requests::{self, Resume, StopKind, SyscallStop, WaitResult};
use super::sample_timer::SampleTimer;
use super::schedstat::{SchedCounts, Schedstat};
use super::tracee::{Activity, Tracee};
use super::untraced::Untraced;
use super::{maps, privileges};
use crate::clock::now;
use crate::procfs;
use attach::PendingAttach;
use inspect::{call_effects, user_snapshot};
use recently_resumed::RecentlyResumed;
use sampling_cpu::SamplingCpu;
use std::collections::HashMap;
use std::fs;

/// Events are sent this long (in ns) after the last time, or when there are this many.
const SEND_EVERY: u64 = 15_000_000;
const SEND_AT: usize = 4096;
/// Events of a blocked task may come this late, in ns.
const MAX_DELAY: u64 = 25_000_000;
/// If the fork event is missing after this time, in ns, parent and process are read from `/proc`.
const BIRTH_TIMEOUT: u64 = 20_000_000;

/// With more tasks than this, one `waitpid` for all is too slow: the kernel walks the list of tracees at each call.
const MANY_TASKS: usize = 16;

/// While all tasks are blocked: after this many ticks, the period is this many times as long.
const IDLE_TICKS: u32 = 50;
const IDLE_FACTOR: u64 = 16;

/// The root's end, as the kernel reported it.
pub(super) struct RootExit {
    pub(super) at: u64,
    pub(super) status: i32,
    pub(super) usage: Box<libc::rusage>,
}

pub(super) struct Tracer {
    root: u32,
    tasks: HashMap<u32, Tracee>,
    /// Stopped at their birth before their parent's fork event, and since when.
    unannounced: HashMap<u32, u64>,
    /// By process: fresh memory.
    first_touch: HashMap<u32, FirstTouch>,
    /// Attached to, but not stopping at their calls yet.
    pending_attach: HashMap<u32, PendingAttach>,
    /// No later event is reported.
    record_until: u64,
    recently_resumed: RecentlyResumed,
    /// Tasks to detach from, and the task that waits for that.
    detaching: HashMap<u32, Option<u32>>,
    events: Vec<TaskEvent>,
    sender: EventSender,
    stopped_at: u64,
    sent_at: u64,
    period: u64,
    sampling_cpu: SamplingCpu,
    /// The scheduler's counts of this thread, now and before the current wait.
    own_sched: Schedstat,
    sched_before: SchedCounts,
    /// Whether this thread slept until the latest stop.
    slept: bool,
    /// Ticks since the latest stop of any task.
    idle_ticks: u32,
    costs: StopCosts,
    /// Whether traced programs keep all their privileges.
    can_trace_any: bool,
    pub(super) untraced: Untraced,
    /// Calls estimated without a stop at each.
    pub(super) estimated_calls: u64,
}

impl Tracer {
    pub(super) fn new(root: u32, period: u64, costs: StopCosts, sender: EventSender) -> Self {
        Self {
            root,
            tasks: HashMap::new(),
            unannounced: HashMap::new(),
            first_touch: HashMap::new(),
            pending_attach: HashMap::new(),
            record_until: u64::MAX,
            recently_resumed: RecentlyResumed::default(),
            detaching: HashMap::new(),
            events: Vec::new(),
            sender,
            stopped_at: 0,
            sent_at: 0,
            period,
            sampling_cpu: SamplingCpu::new(),
            own_sched: Schedstat::of_this_thread(),
            sched_before: SchedCounts::default(),
            slept: false,
            idle_ticks: 0,
            costs,
            can_trace_any: privileges::can_trace_any(),
            untraced: Untraced::default(),
            estimated_calls: 0,
        }
    }

    /// Starts with the root, which is stopped behind its barrier.
    pub(super) fn begin(&mut self) {
        let mut root = Tracee::new(self.root, self.root, now());
        root.reset_counters(now());
        self.tasks.insert(self.root, root);
    }

    /// The barrier opened at this instant. Earlier counts do not matter.
    pub(super) fn released(&mut self, at: u64) {
        if let Some(root) = self.tasks.get_mut(&self.root) {
            root.reset_counters(at);
        }
    }

    /// Runs until the root's end, or until a tick at which it is `over`. None if the root was
    /// detached: its parent waits for it.
    pub(super) fn run(
        &mut self,
        timer: &SampleTimer,
        over: &dyn Fn(bool) -> bool,
    ) -> Option<RootExit> {
        loop {
            self.sched_before = self.own_sched.read().unwrap_or_default();
            match self.wait() {
                WaitResult::Stopped(task, kind) => {
                    self.stopped_at = self.event_time();
                    if self.idle_ticks >= IDLE_TICKS {
                        timer.set_period(self.period);
                    }
                    self.idle_ticks = 0;
                    self.on_stop(task, kind);
                }
                WaitResult::Ended { task, status, usage } => {
                    let at = now();
                    if let Some(mut gone) = self.tasks.remove(&task) {
                        gone.exited(at, &mut self.events);
                    }
                    self.first_touch.remove(&task);
                    if let Some(Some(waiter)) = self.detaching.remove(&task) {
                        self.resume(waiter, Resume::ToNextCall(0));
                    }
                    if task == self.root {
                        self.send_events(u64::MAX);
                        return Some(RootExit { at, status, usage });
                    }
                }
                WaitResult::Tick => {
                    timer.take_tick();
                    self.on_tick(timer);
                    let gone = !self.tasks.contains_key(&self.root);
                    if over(gone) || gone && procfs::has_ended(self.root) {
                        break;
                    }
                }
                WaitResult::NoTracees => break,
            }
            // The timer also expires while stops are handled.
            if timer.take_tick() {
                self.sample_late(timer);
            }
            if self.events.len() >= SEND_AT {
                self.send_events(self.watermark());
            }
        }
        self.send_events(u64::MAX);
        None
    }

    fn wait(&mut self) -> WaitResult {
        if self.tasks.len() <= MANY_TASKS {
            return requests::wait();
        }
        requests::wait_among_many(self.root, self.recently_resumed.likely())
    }

    /// When the event of the latest wait happened: before this thread waited for a CPU.
    fn event_time(&mut self) -> u64 {
        let passed = self.own_sched.read().unwrap_or_default().since(self.sched_before);
        self.slept = passed.timeslices > 0;
        now().saturating_sub(passed.run_delay)
    }

    fn send_events(&mut self, watermark: u64) {
        let mut events = std::mem::take(&mut self.events);
        events.retain(|event| event.at <= self.record_until);
        self.sent_at = now();
        self.sender.send(events, watermark);
    }

    fn watermark(&self) -> u64 {
        let late = now().saturating_sub(MAX_DELAY);
        self.tasks.values().map(Tracee::final_until).min().unwrap_or(late).min(late)
    }

    /// The timer expired, and all stops are handled.
    fn on_tick(&mut self, timer: &SampleTimer) {
        let at = now();
        let next = self.interrupt_running(true);
        for tracee in self.tasks.values_mut() {
            tracee.poll(at, &mut self.events);
        }
        let all_blocked = self.tasks.values().all(Tracee::is_blocked);
        self.idle_ticks = if all_blocked { self.idle_ticks.saturating_add(1) } else { 0 };
        if self.idle_ticks == IDLE_TICKS {
            timer.set_period(IDLE_FACTOR * self.period);
        }
        self.adopt_unannounced(at);
        self.interrupt_pending();
        if at.saturating_sub(self.sent_at) > SEND_EVERY {
            self.send_events(self.watermark());
        }
        self.move_to(next, timer);
    }

    /// Takes tasks whose parent died before its fork event.
    fn adopt_unannounced(&mut self, at: u64) {
        let old = |(_, since): &(&u32, &u64)| at.saturating_sub(**since) > BIRTH_TIMEOUT;
        let old: Vec<u32> = self.unannounced.iter().filter(old).map(|(task, _)| *task).collect();
        for task in old {
            self.unannounced.remove(&task);
            let process = privileges::process_of(task).unwrap_or(task);
            let mut tracee = Tracee::new(process, task, at);
            tracee.stopped = true;
            self.tasks.insert(task, tracee);
            self.resume(task, Resume::ToNextCall(0));
        }
    }

    fn on_stop(&mut self, task: u32, kind: StopKind) {
        if kind == StopKind::Exec {
            self.on_exec(task);
            return;
        }
        let Some(tracee) = self.tasks.get_mut(&task) else {
            self.unannounced.insert(task, now());
            return;
        };
        let interrupted = tracee.interrupt_sent;
        tracee.on_stop(
            self.stopped_at,
            self.costs.of(tracee.resume_time, self.slept),
            &mut self.events,
        );
        if self.pending_attach.remove(&task).is_some() {
            return self.first_stop(task, kind);
        }
        let is_sample = kind == StopKind::Interrupted && interrupted;
        let user = if is_sample { user_snapshot(task) } else { None };
        if tracee.activity == Activity::UserCode {
            let first_touch = self.first_touch.get_mut(&tracee.process);
            tracee.emit_faults(self.costs.page_fault, first_touch, user.as_ref(), &mut self.events);
        }
        if let Some(waiter) = self.detaching.remove(&task) {
            self.detach(task);
            self.untraced.traced += 1;
            if let Some(waiter) = waiter {
                self.resume(waiter, Resume::ToNextCall(0));
            }
            return;
        }
        if let Some(free_until) = tracee.high_rate.free_until() {
            return self.free_running_stop(
                task,
                kind,
                user,
                is_sample && self.stopped_at < free_until,
            );
        }
        self.syscall_traced_stop(task, kind, user);
    }

    fn syscall_traced_stop(&mut self, task: u32, kind: StopKind, user: Option<UserSnapshot>) {
        match kind {
            StopKind::Syscall => return self.on_syscall_stop(task),
            StopKind::Fork => self.on_fork(task),
            StopKind::GroupStop => {
                if let Some(tracee) = self.tasks.get_mut(&task) {
                    tracee.enter_group_stop(&mut self.events);
                }
                return self.resume(task, Resume::Listen);
            }
            StopKind::Signal(signal) => {
                self.enter_ptrace_stop(task);
                return self.resume(task, Resume::ToNextCall(signal));
            }
            StopKind::Exit => {
                if let Some(tracee) = self.tasks.get_mut(&task) {
                    tracee.activity = Activity::Exit;
                    tracee.pending.push(EventKind::Exit);
                }
            }
            StopKind::Interrupted => self.take_sample(task, user),
            StopKind::Exec => {}
        }
        self.enter_ptrace_stop(task);
        self.resume(task, Resume::ToNextCall(0));
    }

    fn enter_ptrace_stop(&mut self, task: u32) {
        if let Some(tracee) = self.tasks.get_mut(&task) {
            tracee.enter_ptrace_stop(&mut self.events);
        }
    }

    fn resume(&mut self, task: u32, how: Resume) {
        if self.tasks.len() > MANY_TASKS {
            self.recently_resumed.add(task);
        }
        if let Some(tracee) = self.tasks.get_mut(&task) {
            tracee.resumed(now());
            let start = thread_cpu_time();
            // It fails only if the task was killed meanwhile: its end comes next.
            _ = requests::resume(task, how);
            tracee.resume_time = thread_cpu_time() - start;
        }
    }

    fn on_syscall_stop(&mut self, task: u32) {
        let Some(tracee) = self.tasks.get_mut(&task) else { return };
        tracee.high_rate.add_observed_time();
        match requests::syscall_stop(task) {
            SyscallStop::Entry { nr, args } => {
                if let Some(call) = tracee.resumed_call.take() {
                    // It restarts the call that it was in when it was attached to.
                    tracee.activity = call;
                    tracee.enter_ptrace_stop(&mut self.events);
                    return self.resume(task, Resume::ToNextCall(0));
                }
                tracee.activity = Activity::Call { nr, args };
                tracee.pending.push(EventKind::Call { nr, args });
                if tracee.wants_call_site(nr, self.stopped_at)
                    && let Some(user) = user_snapshot(task)
                {
                    tracee.pending.push(EventKind::CallSite(user));
                }
                tracee.enter_ptrace_stop(&mut self.events);
                if !self.can_trace_through(task, nr, &args) {
                    return;
                }
            }
            SyscallStop::Exit { ret } => {
                let previous = std::mem::replace(&mut tracee.activity, Activity::UserCode);
                tracee.enter_ptrace_stop(&mut self.events);
                if let Activity::Call { nr, args } = previous {
                    tracee.pending.push(EventKind::CallReturn(ret));
                    call_effects(tracee, nr, &args, ret);
                    let first_touch = self.first_touch.entry(tracee.process).or_default();
                    first_touch.call_returned(libc::c_long::from(nr), &args, ret);
                    tracee.high_rate.observe(ObservedCall { nr, args, ret });
                }
                if tracee.high_rate.may_run_freely(self.stopped_at) {
                    tracee.start_free_run(self.stopped_at);
                    return self.resume(task, Resume::Free);
                }
            }
            SyscallStop::Unknown => tracee.enter_ptrace_stop(&mut self.events),
        }
        self.resume(task, Resume::ToNextCall(0));
    }

    /// Whether the task can be traced through this call. If not, it is detached, or waits until
    /// another task is.
    fn can_trace_through(&mut self, task: u32, nr: u16, args: &[u64; 6]) -> bool {
        let call = libc::c_long::from(nr);
        let executes = match call {
            libc::SYS_execve => Some((libc::AT_FDCWD, args[0])),
            #[expect(clippy::cast_possible_truncation, reason = "an int in a register")]
            libc::SYS_execveat => Some((args[0] as i32, args[1])),
            _ => None,
        };
        if let Some((dir, name)) = executes.filter(|_| !self.can_trace_any)
            && privileges::gains_privileges(task, dir, name)
        {
            self.untraced.elevated += 1;
            self.detach(task);
            return false;
        }
        if call != libc::SYS_ptrace {
            return true;
        }
        match privileges::new_tracee(args) {
            privileges::NewTracee::Caller => {
                self.untraced.traced += 1;
                self.detach(task);
                false
            }
            privileges::NewTracee::Other(other)
                if other != task && self.tasks.contains_key(&other) =>
            {
                if requests::interrupt(other).is_err() {
                    return true;
                }
                self.detaching.insert(other, Some(task));
                false
            }
            _ => true,
        }
    }

    /// Detaches from a stopped task: no more of its events are known.
    fn detach(&mut self, task: u32) {
        let Some(mut tracee) = self.tasks.remove(&task) else { return };
        let at = tracee.cursor;
        tracee.emit(at, EventKind::On, &mut self.events);
        tracee.emit(at, EventKind::Detached, &mut self.events);
        _ = requests::detach(task, 0);
    }

    fn on_fork(&mut self, task: u32) {
        let Some(child) =
            requests::event_message(task).filter(|child| !self.tasks.contains_key(child))
        else {
            // It was attached to while it was being born.
            return;
        };
        let Some(parent) = self.tasks.get_mut(&task) else { return };
        let thread = fs::exists(format!("/proc/{}/task/{child}", parent.process));
        let process = if thread.unwrap_or(false) { parent.process } else { child };
        let at = parent.cursor;
        parent.emit(at, EventKind::Fork { child, process }, &mut self.events);
        let mut tracee = Tracee::new(process, child, at);
        if self.unannounced.remove(&child).is_some() {
            tracee.on_stop(
                self.stopped_at,
                self.costs.of(tracee.resume_time, self.slept),
                &mut self.events,
            );
            tracee.enter_ptrace_stop(&mut self.events);
        }
        let is_stopped = tracee.stopped;
        self.tasks.insert(child, tracee);
        if is_stopped {
            self.resume(child, Resume::ToNextCall(0));
        }
    }

    /// A task executed another program. If it is not its process's first task, it takes over the
    /// first one's id. All others are gone.
    fn on_exec(&mut self, task: u32) {
        let former = requests::event_message(task).unwrap_or(task);
        let Some(mut tracee) = self.tasks.remove(&former) else {
            self.unannounced.insert(task, now());
            return;
        };
        tracee.on_stop(
            self.stopped_at,
            self.costs.of(tracee.resume_time, self.slept),
            &mut self.events,
        );
        tracee.high_rate.restart_observation(self.stopped_at);
        self.first_touch.remove(&tracee.process);
        if former != task
            && let Some(first) = self.tasks.get_mut(&task)
        {
            tracee.take_over_tid(task, first);
        }
        let path = fs::read_link(format!("/proc/{task}/exe")).unwrap_or_default();
        let path = path.to_string_lossy().into_owned();
        let mut emit = |kind| tracee.emit(tracee.cursor, kind, &mut self.events);
        emit(EventKind::Exec { former, path });
        if let Some(name) = procfs::line(format!("/proc/{task}/comm")) {
            emit(EventKind::Comm(name));
        }
        maps::of_process(task).into_iter().map(EventKind::Map).for_each(&mut emit);
        let descriptors = procfs::descriptors(task);
        for closed in (0..3).filter(|fd| descriptors.iter().all(|(open, _)| open != fd)) {
            emit(EventKind::Fd { fd: closed, target: String::new() });
        }
        descriptors.into_iter().for_each(|(fd, target)| emit(EventKind::Fd { fd, target }));
        tracee.enter_ptrace_stop(&mut self.events);
        self.tasks.insert(task, tracee);
        self.resume(task, Resume::ToNextCall(0));
    }
}
