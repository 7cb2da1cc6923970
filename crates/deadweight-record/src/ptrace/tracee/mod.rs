//! One traced task: what it did between two stops, told from the clock and the scheduler's counts.
//!
//! At a stop both are exact: so much time passed, so much of it on a CPU, so much runnable, so many
//! turns. Where within that time it blocked is not known: in the middle. What a stop itself takes is a
//! hold of ours. Not for talking to the kernel: that is `tracer`.

mod attached;
mod synthesized;
#[cfg(test)]
mod tests;

use super::calibrate::{StopCost, process_cpu_time};
use super::event::{EventKind, TaskEvent};
use super::high_rate::HighRate;
use super::schedstat::{SchedCounts, Schedstat, TaskState};
use deadweight_trace::Off;
use std::collections::HashMap;

/// So long may who was let go wait for a CPU because of us: we may have that very one until we wait.
const TRACER_SLICE: u64 = 100_000;
/// A shorter time in a call without a CPU is the way to us and back.
const ROUND_TRIP: u64 = 25_000;
/// From a stop to our knowing of it, about.
const WAKE_LATENCY: u64 = 6_000;
/// The same in user code, where only a page that is fetched from storage blocks.
const PAGE_IN: u64 = 200_000;
/// What dying takes where no look has shown it, in ns: about one tick of our clock.
const EXIT_TIME: u64 = 500_000;
/// No call, and no way from one to the next, takes less, in ns. A stop that cost less than usual would hide that it was
/// on a CPU at all, and with that whom it woke then.
const MIN_CPU_TIME: u64 = 50;
/// Past its calls it is told to have blocked so many times at most between two stops.
const MAX_BLOCKS: u64 = 64;
/// What has not stopped for so long is looked at from the side, in ns.
pub(super) const POLL_AFTER: u64 = 20_000_000;
/// The first stacks of each call of a task are all taken, then one in so many ns.
const FIRST_CALL_SITES: u32 = 16;
const CALL_SITE_INTERVAL: u64 = 2_000_000;

/// What a task is in the middle of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// Its own code.
    UserSnapshot,
    /// This call.
    Call { nr: u16, args: [u64; 6] },
    /// Dying.
    Exit,
}

/// A traced task.
#[derive(Debug)]
pub(super) struct Tracee {
    pub(super) task: u32,
    pub(super) process: u32,
    pub(super) activity: Activity,
    /// We have asked it to stop, and it has not yet.
    pub(super) interrupt_sent: bool,
    /// And that from the CPU that it was on; or so many times we meant to, and it was not there.
    pub(super) local_interrupt: bool,
    pub(super) missed_interrupts: u32,
    /// It is stopped by us.
    pub(super) stopped: bool,
    /// Noted as blocked.
    blocked: bool,
    /// Noted as being on a CPU.
    on_cpu: bool,
    /// The call that it goes on with, which its next entry is not a new one of.
    pub(super) resumed_call: Option<Activity>,
    /// Told as soon as it is on a CPU again.
    pub(super) pending: Vec<EventKind>,
    sched: Schedstat,
    counted: SchedCounts,
    polled: Option<SchedCounts>,
    /// When it was let go, and the CPU time that this took us.
    pub(super) resumed_at: u64,
    pub(super) resume_time: u64,
    /// Time of its latest note.
    pub(super) cursor: u64,
    /// CPU time in user code since the latest sample, in ns.
    pub(super) unsampled: u64,
    call_sites: HashMap<u16, CallSites>,
    /// Stops, and what the kernel counted when blocks were told from preemption last.
    stop_count: u64,
    switches: Switches,
    /// Our own CPU time when it was let go.
    tracer_time: u64,
    /// What is let run without stops at its calls, and its CPU time in user code as the kernel told it then.
    pub(super) high_rate: HighRate,
    user_time: Option<u64>,
    /// From one page fault to the next when they were counted last, in ns.
    fault_interval: u64,
    /// Page faults told so far, and CPU time in user code since they were counted, in ns.
    minor_faults: u64,
    fault_window: u64,
    /// Where that time was.
    fault_spans: Vec<(u64, u64)>,
    /// When its latest turn on a CPU began.
    on_cpu_since: u64,
    /// When it was on a CPU since it was let go.
    on_cpu_spans: Vec<(u64, u64)>,
}

/// How often it got a CPU, was stopped by us and was put aside, up to some instant.
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
    /// The latest call of this number blocked; any of them did.
    blocks: bool,
    waits: bool,
}

impl Tracee {
    /// A task that is born at this instant.
    pub(super) fn new(process: u32, task: u32, at: u64) -> Self {
        Self {
            task,
            process,
            activity: Activity::UserSnapshot,
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

    /// What it has used before the recording does not count.
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
        if let (EventKind::Off(_) | EventKind::Preempted, Some(stretch)) =
            (&kind, self.on_cpu_spans.last_mut())
        {
            stretch.1 = self.cursor;
        }
        let (at, process, task) = (self.cursor, self.process, self.task);
        events.push(TaskEvent { at, process, task, kind });
    }

    fn advance_to(&mut self, at: u64) {
        self.cursor = self.cursor.max(at);
    }

    /// It has a CPU from `at` on, and what waited for that is told.
    fn get_cpu(&mut self, at: u64, events: &mut Vec<TaskEvent>) {
        (self.on_cpu, self.blocked) = (true, false);
        self.emit(at, EventKind::On, events);
        self.on_cpu_since = self.cursor;
        for kind in std::mem::take(&mut self.pending) {
            // An instant later, so that there is a span in the kernel that ends.
            let later = u64::from(matches!(kind, EventKind::CallReturn(_)));
            self.emit(self.cursor + later, kind, events);
        }
        self.on_cpu_spans.push((self.cursor, self.cursor));
    }

    /// It leaves its CPU by itself. If it runs past its calls, then in one that is like those that were
    /// watched.
    fn leave_cpu(&mut self, at: u64, why: Off, events: &mut Vec<TaskEvent>) {
        let run_delay = |nr| self.call_sites.get(&nr).is_some_and(|call_sites| call_sites.waits);
        if let Some(call) =
            self.high_rate.free_until().and_then(|_| self.high_rate.take_blocking_call(run_delay))
        {
            self.emit(at, EventKind::Call { nr: call.nr, args: call.args }, events);
            self.pending.push(EventKind::CallReturn(call.ret));
            self.emit(at + 1, EventKind::Off(why), events);
        } else {
            self.emit(at, EventKind::Off(why), events);
        }
        self.on_cpu = false;
    }

    /// Whether it offers its CPU to others.
    fn yields(&self) -> bool {
        let likeliest_blocking = || {
            self.high_rate.free_until().and_then(|_| self.high_rate.likeliest_blocking(|_| false))
        };
        let nr = match self.activity {
            Activity::Call { nr, .. } => Some(nr),
            _ => likeliest_blocking().map(|call| call.nr),
        };
        nr.is_some_and(|nr| libc::c_long::from(nr) == libc::SYS_sched_yield)
    }

    /// It waited for a CPU before `at`, where it gets one.
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

    /// It was seen stopped at `at`: tells what it did since it was let go. It is on a CPU after
    /// that, until the cursor, when it stopped.
    pub(super) fn on_stop(&mut self, at: u64, cost: StopCost, events: &mut Vec<TaskEvent>) {
        let counts = self.sched.read();
        self.account(at, counts, cost, events);
    }

    fn account(
        &mut self,
        at: u64,
        counts: Option<SchedCounts>,
        cost: StopCost,
        events: &mut Vec<TaskEvent>,
    ) {
        self.on_cpu_spans.clear();
        if self.on_cpu {
            self.on_cpu_spans.push((self.cursor, self.cursor));
        }
        // Told a little late, it cannot have stopped before it did what it did.
        let busy = counts.map_or(0, |counts| counts.since(self.counted).cpu_time);
        let at = at.max(self.resumed_at + busy);
        let length = at - self.resumed_at;
        // Without counts: all of it was on a CPU, but in a call that took long none.
        let guessed = match self.activity {
            Activity::Call { .. } if length > 2 * ROUND_TRIP => {
                SchedCounts { timeslices: 2, ..SchedCounts::default() }
            }
            _ => SchedCounts { cpu_time: length, run_delay: 0, timeslices: 1 },
        };
        let passed = counts.map_or(guessed, |counts| counts.since(self.counted));
        self.counted = counts.unwrap_or(self.counted);
        self.stop_count += 1;
        let all = passed.cpu_time.min(length);
        let run_delay = passed.run_delay.min(length - all);
        // What the stop took of its own time belongs to the hold that follows.
        let stop = if self.activity == Activity::UserSnapshot { cost.user } else { cost.call };
        let cpu_time = all.saturating_sub(stop).max(MIN_CPU_TIME.min(all));
        if self.activity == Activity::UserSnapshot {
            self.unsampled += cpu_time;
            self.fault_window += cpu_time;
        }
        if self.blocked {
            self.account_after_block(at, cpu_time, run_delay, events);
        } else {
            let idle = length - all - run_delay;
            self.account_running(at, cpu_time, run_delay, (idle, passed.timeslices), events);
        }
        if let Some(stretch) = self.on_cpu_spans.last_mut() {
            stretch.1 = self.cursor;
        }
        if self.activity == Activity::UserSnapshot {
            self.fault_spans.extend(&self.on_cpu_spans);
        }
        (self.interrupt_sent, self.stopped, self.polled) = (false, true, None);
        self.high_rate.cpu_time = cpu_time;
    }

    fn account_after_block(
        &mut self,
        at: u64,
        cpu_time: u64,
        run_delay: u64,
        events: &mut Vec<TaskEvent>,
    ) {
        self.high_rate.waits = true;
        let back = at.saturating_sub(WAKE_LATENCY + cpu_time).max(self.cursor);
        if run_delay > TRACER_SLICE {
            self.delayed(back, run_delay, events);
        }
        if !self.on_cpu {
            self.get_cpu(back, events);
        }
        self.advance_to((self.cursor + cpu_time).min(at));
    }

    /// How much of the time that it waited for a CPU we had one.
    fn delay_by_tracer(&self, run_delay: u64) -> u64 {
        if run_delay <= TRACER_SLICE {
            return run_delay;
        }
        run_delay.min(process_cpu_time().saturating_sub(self.tracer_time).max(TRACER_SLICE))
    }

    /// Whether it has blocked since this was asked last. Each turn on a CPU ends by that, by a stop of
    /// ours, or by another task's turn, and the kernel counts all but the first.
    fn has_blocked(&mut self) -> bool {
        let Some(involuntary_switches) = self.sched.involuntary_switches() else { return true };
        let now = Switches {
            timeslices: self.counted.timeslices,
            ptrace_stops: self.stop_count,
            involuntary_switches,
        };
        let then = std::mem::replace(&mut self.switches, now);
        let others = now.ptrace_stops - then.ptrace_stops
            + now.involuntary_switches.saturating_sub(then.involuntary_switches);
        now.timeslices.saturating_sub(then.timeslices) > others
    }

    fn account_running(
        &mut self,
        at: u64,
        cpu_time: u64,
        run_delay: u64,
        (idle, timeslices): (u64, u64),
        events: &mut Vec<TaskEvent>,
    ) {
        // A look from the side may have told when it got a CPU: what it waited by then is that.
        let polled =
            self.on_cpu.then(|| run_delay.min(self.on_cpu_since.saturating_sub(self.resumed_at)));
        let delay = polled.unwrap_or_else(|| self.delay_by_tracer(run_delay));
        let enter_group_stop = run_delay - delay;
        if !self.on_cpu {
            self.get_cpu((self.resumed_at + delay).max(self.cursor), events);
        }
        let in_call =
            self.activity != Activity::UserSnapshot || self.high_rate.free_until().is_some();
        let long = idle > if in_call { ROUND_TRIP } else { PAGE_IN };
        let blocks = timeslices >= 2 && long && self.has_blocked();
        if let Activity::Call { nr, .. } = self.activity {
            let call_sites = self.call_sites.entry(nr).or_default();
            call_sites.blocks = blocks;
            call_sites.waits |= blocks;
        }
        self.high_rate.waits |= blocks;
        if blocks && self.high_rate.free_until().is_some() {
            return self.spread_blocks(at, cpu_time, enter_group_stop, timeslices - 1, events);
        }
        let middle = (self.resumed_at + delay + cpu_time / 2).max(self.cursor);
        let untraced = cpu_time.saturating_sub(middle - self.resumed_at - delay);
        if blocks {
            if !in_call {
                self.emit(middle, EventKind::Fault { addr: 0, ip: 0 }, events);
            }
            self.leave_cpu(middle, Off::Blocked, events);
            let back = at.saturating_sub(WAKE_LATENCY + untraced).max(self.cursor);
            if enter_group_stop > TRACER_SLICE {
                self.delayed(back, enter_group_stop, events);
            } else {
                self.get_cpu(back, events);
            }
            if !in_call {
                self.emit(back + 1, EventKind::FaultEnd { major: true }, events);
            }
            self.advance_to((back + untraced).min(at));
            return;
        }
        if enter_group_stop > TRACER_SLICE / 2 {
            self.preempt(middle, events);
            self.get_cpu(middle + enter_group_stop, events);
        }
        self.advance_to((middle + enter_group_stop + untraced).min(at));
    }

    /// Past its calls it blocked before each of its turns but the first, evenly.
    fn spread_blocks(
        &mut self,
        at: u64,
        cpu_time: u64,
        enter_group_stop: u64,
        times: u64,
        events: &mut Vec<TaskEvent>,
    ) {
        let times = times.clamp(1, MAX_BLOCKS);
        let (work, wait) = (
            cpu_time / (times + 1),
            at.saturating_sub(self.cursor + cpu_time + enter_group_stop) / times,
        );
        for _ in 0..times {
            self.leave_cpu(self.cursor + work, Off::Blocked, events);
            self.get_cpu(self.cursor + wait, events);
        }
        if enter_group_stop > TRACER_SLICE / 2 {
            self.preempt(self.cursor + 1, events);
            self.get_cpu(self.cursor + enter_group_stop, events);
        }
        self.advance_to((self.cursor + work).min(at));
    }

    /// It is held by us from the cursor on.
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

    /// It goes on.
    pub(super) fn resumed(&mut self, at: u64) {
        (self.stopped, self.local_interrupt) = (false, false);
        self.resumed_at = at;
        self.tracer_time = process_cpu_time();
    }

    /// From here on its calls count as those of a dense stretch.
    pub(super) fn start_free_run(&mut self, at: u64) {
        self.user_time = self.sched.state().map(|s| s.user_time);
        self.high_rate.start_free_run(at, self.sched.io_calls(), self.user_time);
    }

    /// How it stands while it runs.
    pub(super) fn state(&mut self) -> Option<TaskState> {
        let state = self.sched.state();
        self.user_time = state.map(|s| s.user_time).or(self.user_time);
        state
    }

    /// It died, and its end is known at `at`. Nobody counts its last steps; what the latest look showed
    /// is missing one tick at most, and after them it waits for us.
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

    /// By an exec it takes the place of its process's first task.
    pub(super) fn take_over_tid(&mut self, task: u32, first: &Self) {
        self.cursor = self.cursor.max(first.cursor);
        self.task = task;
        self.sched = Schedstat::of(self.process, task);
        self.counted = self.sched.read().unwrap_or_default();
    }

    /// Looks at it from the side, because it has not stopped for long.
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
        let may_wait =
            self.activity != Activity::UserSnapshot || self.high_rate.free_until().is_some();
        if unchanged && may_wait && !self.sched.runs() {
            self.leave_cpu(ran_until.min(now), Off::Blocked, events);
            self.blocked = true;
            // What is told until now is told for good.
            self.fault_spans.clear();
            self.counted = counts;
            if let Activity::Call { nr, .. } = self.activity {
                let call_sites = self.call_sites.entry(nr).or_default();
                (call_sites.blocks, call_sites.waits) = (true, true);
            }
        } else {
            self.advance_to(ran_until.min(now.saturating_sub(POLL_AFTER)));
        }
    }

    /// Whether it is noted as waiting.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Nothing that it did before this will be told later.
    pub(super) fn final_until(&self) -> u64 {
        let counted = self.fault_spans.first().map_or(u64::MAX, |(start, _)| *start);
        if self.blocked { u64::MAX } else { self.cursor.max(self.resumed_at).min(counted) }
    }

    /// Whether this call should have its stack taken.
    pub(super) fn wants_call_site(&mut self, nr: u16, now: u64) -> bool {
        let call_sites = self.call_sites.entry(nr).or_default();
        let due = now.saturating_sub(call_sites.latest) >= CALL_SITE_INTERVAL;
        let wanted = call_sites.blocks || call_sites.taken < FIRST_CALL_SITES || due;
        if wanted {
            call_sites.taken = call_sites.taken.saturating_add(1);
            call_sites.latest = now;
        }
        wanted
    }
}
