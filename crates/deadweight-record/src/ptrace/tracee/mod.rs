//! One traced task: its events between two stops, derived from the clock and the scheduler's
//! counts.
//!
//! At a stop both are exact: time passed, time on a CPU, run delay, time slices. When it blocked
//! within that time is not known; it is assumed to be in the middle. The cost of the stop itself is
//! part of the ptrace stop. Does not call ptrace; see `tracer`.

mod accounting;
mod attached;
mod synthesized;
#[cfg(test)]
mod tests;

use super::calibrate::process_cpu_time;
use super::event::{EventKind, TaskEvent};
use super::high_rate::HighRate;
use super::schedstat::{SchedCounts, Schedstat, TaskState};
use deadweight_trace::Off;
use std::collections::HashMap;

/// A resumed task may wait this long for a CPU because of the tracer, which may have that CPU until
/// it waits.
const TRACER_SLICE: u64 = 100_000;
/// From a stop until the tracer runs, about.
const WAKE_LATENCY: u64 = 6_000;
/// CPU time of exiting that no poll has shown, in ns: about one tick of the sample timer.
const EXIT_TIME: u64 = 500_000;
/// A task that has not stopped for this long, in ns, is polled.
pub(super) const POLL_AFTER: u64 = 20_000_000;
/// The first stacks of each call number of a task are all taken, then one in this interval (ns).
const FIRST_CALL_SITES: u32 = 16;
const CALL_SITE_INTERVAL: u64 = 2_000_000;

/// What a task is doing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// Runs user code.
    UserCode,
    /// Is in this call.
    Call { nr: u16, args: [u64; 6] },
    /// Exits.
    Exit,
}

/// A traced task.
#[derive(Debug)]
pub(super) struct Tracee {
    pub(super) task: u32,
    pub(super) process: u32,
    pub(super) activity: Activity,
    /// An interrupt is sent, and it has not stopped yet.
    pub(super) interrupt_sent: bool,
    /// It was interrupted from its own CPU. How often that was tried while it was on another one.
    pub(super) local_interrupt: bool,
    pub(super) missed_interrupts: u32,
    /// It is in a ptrace stop.
    pub(super) stopped: bool,
    /// Reported as blocked.
    blocked: bool,
    /// Reported as on a CPU.
    on_cpu: bool,
    /// The call that it restarts: its next entry stop is not a new call.
    pub(super) resumed_call: Option<Activity>,
    /// Reported as soon as it is on a CPU again.
    pub(super) pending: Vec<EventKind>,
    sched: Schedstat,
    counted: SchedCounts,
    polled: Option<SchedCounts>,
    /// When it was resumed, and the tracer's CPU time for that.
    pub(super) resumed_at: u64,
    pub(super) resume_time: u64,
    /// Time of its latest event.
    pub(super) cursor: u64,
    /// User time since the latest sample, in ns.
    pub(super) unsampled: u64,
    call_sites: HashMap<u16, CallSites>,
    /// Ptrace stops so far, and the counts when `has_blocked` was last called.
    stop_count: u64,
    switches: Switches,
    /// CPU time of this process when the task was resumed.
    tracer_time: u64,
    /// Observed calls and free runs, and the task's user time when it was last read.
    pub(super) high_rate: HighRate,
    user_time: Option<u64>,
    /// Interval of page faults when they were last counted, in ns.
    fault_interval: u64,
    /// Page faults so far, and user time since they were last counted, in ns.
    minor_faults: u64,
    fault_window: u64,
    /// The spans of that user time.
    fault_spans: Vec<(u64, u64)>,
    /// When its latest time slice began.
    on_cpu_since: u64,
    /// When it was on a CPU since it was resumed.
    on_cpu_spans: Vec<(u64, u64)>,
}

/// How often it got a CPU, was stopped by ptrace, and was preempted, up to some instant.
#[derive(Copy, Clone, Debug, Default)]
struct Switches {
    timeslices: u64,
    ptrace_stops: u64,
    involuntary_switches: u64,
}

#[derive(Debug, Default)]
struct CallSites {
    taken: u32,
    latest: u64,
    /// Whether the latest call of this number blocked, and whether any did.
    latest_blocked: bool,
    any_blocked: bool,
}

impl Tracee {
    /// A task that is born at this instant.
    pub(super) fn new(process: u32, task: u32, at: u64) -> Self {
        Self {
            task,
            process,
            activity: Activity::UserCode,
            interrupt_sent: false,
            local_interrupt: false,
            missed_interrupts: 0,
            stopped: false,
            blocked: false,
            on_cpu: false,
            resumed_call: None,
            pending: Vec::new(),
            sched: Schedstat::of(process, task),
            counted: SchedCounts::default(),
            polled: None,
            resumed_at: at,
            resume_time: 0,
            cursor: at,
            unsampled: 0,
            call_sites: HashMap::new(),
            stop_count: 0,
            switches: Switches::default(),
            tracer_time: process_cpu_time(),
            high_rate: HighRate::new(at),
            user_time: None,
            fault_interval: u64::MAX,
            minor_faults: 0,
            fault_window: 0,
            fault_spans: Vec::new(),
            on_cpu_since: at,
            on_cpu_spans: Vec::new(),
        }
    }

    /// Does not count what it used before the recording.
    pub(super) fn reset_counters(&mut self, at: u64) {
        self.counted = self.sched.read().unwrap_or_default();
        (self.resumed_at, self.cursor) = (at, at);
        let involuntary_switches = self.sched.involuntary_switches().unwrap_or(0);
        self.switches =
            Switches { timeslices: self.counted.timeslices, ptrace_stops: 0, involuntary_switches };
        self.minor_faults = self.sched.minor_faults().unwrap_or(0);
    }

    pub(super) fn emit(&mut self, at: u64, kind: EventKind, events: &mut Vec<TaskEvent>) {
        self.cursor = self.cursor.max(at);
        if let (EventKind::Off(_) | EventKind::Preempted, Some(span)) =
            (&kind, self.on_cpu_spans.last_mut())
        {
            span.1 = self.cursor;
        }
        let (at, process, task) = (self.cursor, self.process, self.task);
        events.push(TaskEvent { at, process, task, kind });
    }

    fn advance_to(&mut self, at: u64) {
        self.cursor = self.cursor.max(at);
    }

    /// It is on a CPU from `at` on. Its pending events follow.
    fn get_cpu(&mut self, at: u64, events: &mut Vec<TaskEvent>) {
        (self.on_cpu, self.blocked) = (true, false);
        self.emit(at, EventKind::On, events);
        self.on_cpu_since = self.cursor;
        for kind in std::mem::take(&mut self.pending) {
            // An instant later, so that there is a span in the kernel to end.
            let later = u64::from(matches!(kind, EventKind::CallReturn(_)));
            self.emit(self.cursor + later, kind, events);
        }
        self.on_cpu_spans.push((self.cursor, self.cursor));
    }

    /// It leaves its CPU by itself. In a free run it does so in a call like the observed ones.
    fn leave_cpu(&mut self, at: u64, why: Off, events: &mut Vec<TaskEvent>) {
        let has_blocked = |nr| self.call_sites.get(&nr).is_some_and(|sites| sites.any_blocked);
        if let Some(call) =
            self.high_rate.free_until().and_then(|_| self.high_rate.take_blocking_call(has_blocked))
        {
            self.emit(at, EventKind::Call { nr: call.nr, args: call.args }, events);
            self.pending.push(EventKind::CallReturn(call.ret));
            self.emit(at + 1, EventKind::Off(why), events);
        } else {
            self.emit(at, EventKind::Off(why), events);
        }
        self.on_cpu = false;
    }

    /// Whether it calls `sched_yield`.
    fn yields(&self) -> bool {
        let likely = || {
            self.high_rate.free_until().and_then(|_| self.high_rate.likeliest_blocking(|_| false))
        };
        let nr = match self.activity {
            Activity::Call { nr, .. } => Some(nr),
            _ => likely().map(|call| call.nr),
        };
        nr.is_some_and(|nr| libc::c_long::from(nr) == libc::SYS_sched_yield)
    }

    /// It waited for a CPU before `at`, when it gets one.
    fn delayed(&mut self, at: u64, run_delay: u64, events: &mut Vec<TaskEvent>) {
        if !self.on_cpu {
            self.get_cpu(at.saturating_sub(run_delay), events);
        }
        self.preempt(self.cursor + 1, events);
        self.get_cpu(at, events);
    }

    fn preempt(&mut self, at: u64, events: &mut Vec<TaskEvent>) {
        if self.yields() {
            return self.leave_cpu(at, Off::Yielded, events);
        }
        self.on_cpu = false;
        self.emit(at, EventKind::Preempted, events);
    }

    /// It is in a ptrace stop from the cursor on.
    pub(super) fn enter_ptrace_stop(&mut self, events: &mut Vec<TaskEvent>) {
        self.on_cpu = false;
        self.emit(self.cursor, EventKind::PtraceStop, events);
    }

    /// Its whole group is stopped.
    pub(super) fn enter_group_stop(&mut self, events: &mut Vec<TaskEvent>) {
        (self.on_cpu, self.blocked) = (false, true);
        self.fault_spans.clear();
        self.emit(self.cursor, EventKind::Off(Off::Stopped), events);
    }

    /// It is resumed.
    pub(super) fn resumed(&mut self, at: u64) {
        (self.stopped, self.local_interrupt) = (false, false);
        self.resumed_at = at;
        self.tracer_time = process_cpu_time();
    }

    /// It runs freely from now on.
    pub(super) fn start_free_run(&mut self, at: u64) {
        self.user_time = self.sched.state().map(|s| s.user_time);
        self.high_rate.start_free_run(at, self.sched.io_calls(), self.user_time);
    }

    /// Its state while it runs.
    pub(super) fn state(&mut self) -> Option<TaskState> {
        let state = self.sched.state();
        self.user_time = state.map(|s| s.user_time).or(self.user_time);
        state
    }

    /// It exited, and the tracer knows that at `at`. The CPU time of its last steps is not counted:
    /// the latest poll misses one tick at most. After them it waits for the tracer.
    pub(super) fn exited(&mut self, at: u64, events: &mut Vec<TaskEvent>) {
        let last_steps =
            if self.blocked { at.saturating_sub(WAKE_LATENCY) } else { self.resumed_at };
        if !self.on_cpu {
            self.get_cpu(last_steps.max(self.cursor), events);
        }
        let shown = self.polled.map_or(0, |counts| counts.since(self.counted).cpu_time);
        let died = (last_steps + shown + EXIT_TIME).max(self.cursor);
        if died + 1 < at {
            self.advance_to(died);
            self.enter_ptrace_stop(events);
            self.get_cpu(at - 1, events);
        }
        self.emit(at, EventKind::Off(Off::Dead), events);
    }

    /// By an `execve` it takes over the id of its process's first task.
    pub(super) fn take_over_tid(&mut self, task: u32, first: &Self) {
        self.cursor = self.cursor.max(first.cursor);
        self.task = task;
        self.sched = Schedstat::of(self.process, task);
        self.counted = self.sched.read().unwrap_or_default();
    }

    /// Polls its counts, because it has not stopped for long.
    pub(super) fn poll(&mut self, now: u64, events: &mut Vec<TaskEvent>) {
        let dying = self.activity == Activity::Exit;
        let long = now.saturating_sub(self.resumed_at) >= POLL_AFTER;
        if self.stopped || self.blocked || !(long || dying) {
            return;
        }
        let Some(counts) = self.sched.read() else { return };
        let unchanged = self.polled.replace(counts) == Some(counts);
        if !long {
            return;
        }
        let passed = counts.since(self.counted);
        let delay = passed.run_delay.min(TRACER_SLICE);
        if !self.on_cpu {
            self.get_cpu((self.resumed_at + delay).max(self.cursor), events);
        }
        let ran_until = self.resumed_at + delay + passed.cpu_time;
        let may_wait = self.activity != Activity::UserCode || self.high_rate.free_until().is_some();
        if unchanged && may_wait && !self.sched.runs() {
            self.leave_cpu(ran_until.min(now), Off::Blocked, events);
            self.blocked = true;
            // Events up to now are final.
            self.fault_spans.clear();
            self.counted = counts;
            if let Activity::Call { nr, .. } = self.activity {
                let call_sites = self.call_sites.entry(nr).or_default();
                (call_sites.latest_blocked, call_sites.any_blocked) = (true, true);
            }
        } else {
            self.advance_to(ran_until.min(now.saturating_sub(POLL_AFTER)));
        }
    }

    /// Whether it is reported as blocked.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// No event before this time will follow.
    pub(super) fn final_until(&self) -> u64 {
        let counted = self.fault_spans.first().map_or(u64::MAX, |(start, _)| *start);
        if self.blocked { u64::MAX } else { self.cursor.max(self.resumed_at).min(counted) }
    }

    /// Whether the stack of this call should be taken.
    pub(super) fn wants_call_site(&mut self, nr: u16, now: u64) -> bool {
        let call_sites = self.call_sites.entry(nr).or_default();
        let due = now.saturating_sub(call_sites.latest) >= CALL_SITE_INTERVAL;
        let wanted = call_sites.latest_blocked || call_sites.taken < FIRST_CALL_SITES || due;
        if wanted {
            call_sites.taken = call_sites.taken.saturating_add(1);
            call_sites.latest = now;
        }
        wanted
    }
}
