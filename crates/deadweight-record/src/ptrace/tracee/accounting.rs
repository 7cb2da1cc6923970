//! Accounting at a stop: divides the time since the task was resumed into CPU time, run delay and
//! blocking, and emits the events for them.
//!
//! Does not read other counts than the scheduler's; see `synthesized` for faults and calls.

use super::{Activity, Switches, TRACER_SLICE, Tracee, WAKE_LATENCY};
use crate::ptrace::calibrate::{StopCost, process_cpu_time};
use crate::ptrace::event::{EventKind, TaskEvent};
use crate::ptrace::schedstat::SchedCounts;
use deadweight_trace::Off;

/// A shorter time off CPU in a call is counted as the ptrace stop itself, not as a wait.
const ROUND_TRIP: u64 = 25_000;
/// The same limit in user code, where only a page fault with a read from storage blocks.
const PAGE_IN: u64 = 200_000;
/// The shortest CPU time of a call, or between two calls, in ns. Otherwise subtracting
/// an overestimated stop cost could leave 0 ns, and the on-CPU span and its wake-up would vanish.
const MIN_CPU_TIME: u64 = 50;
/// At most this many waits are reported while the task runs without stops at system calls.
const MAX_BLOCKS: u64 = 64;

impl Tracee {
    /// It was seen stopped at `at`: emits its events since it was resumed. After them it is on a
    /// CPU until the cursor: the instant up to which its time is accounted for, here its stop.
    pub(in crate::ptrace) fn on_stop(
        &mut self,
        at: u64,
        cost: StopCost,
        events: &mut Vec<TaskEvent>,
    ) {
        let counts = self.sched.read();
        self.account(at, counts, cost, events);
    }

    pub(super) fn account(
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
        // The stop may be reported late, but cannot be before the CPU time that passed.
        let busy = counts.map_or(0, |counts| counts.since(self.counted).cpu_time);
        let at = at.max(self.resumed_at + busy);
        let length = at - self.resumed_at;
        // Without counts: all of the time was on a CPU, except in a call that took long.
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
        // The cost of the stop belongs to the ptrace stop that follows.
        let stop = if self.activity == Activity::UserCode { cost.user } else { cost.call };
        let cpu_time = all.saturating_sub(stop).max(MIN_CPU_TIME.min(all));
        if self.activity == Activity::UserCode {
            self.unsampled += cpu_time;
            self.fault_window += cpu_time;
        }
        if self.blocked {
            self.account_after_block(at, cpu_time, run_delay, events);
        } else {
            let idle = length - all - run_delay;
            self.account_running(at, cpu_time, run_delay, (idle, passed.timeslices), events);
        }
        if let Some(span) = self.on_cpu_spans.last_mut() {
            span.1 = self.cursor;
        }
        if self.activity == Activity::UserCode {
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
        self.high_rate.blocked = true;
        let back = at.saturating_sub(WAKE_LATENCY + cpu_time).max(self.cursor);
        if run_delay > TRACER_SLICE {
            self.delayed(back, run_delay, events);
        }
        if !self.on_cpu {
            self.get_cpu(back, events);
        }
        self.advance_to((self.cursor + cpu_time).min(at));
    }

    /// How much of its run delay the tracer caused.
    fn delay_by_tracer(&self, run_delay: u64) -> u64 {
        if run_delay <= TRACER_SLICE {
            return run_delay;
        }
        run_delay.min(process_cpu_time().saturating_sub(self.tracer_time).max(TRACER_SLICE))
    }

    /// Whether it has blocked since the last call. A time slice ends by blocking, by a ptrace stop,
    /// or by preemption. The kernel counts every slice but the first.
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
        // A poll may have reported when it got a CPU: its run delay ended then.
        let polled =
            self.on_cpu.then(|| run_delay.min(self.on_cpu_since.saturating_sub(self.resumed_at)));
        let delay = polled.unwrap_or_else(|| self.delay_by_tracer(run_delay));
        let others_delay = run_delay - delay;
        if !self.on_cpu {
            self.get_cpu((self.resumed_at + delay).max(self.cursor), events);
        }
        let in_call = self.activity != Activity::UserCode || self.high_rate.free_until().is_some();
        let long = idle > if in_call { ROUND_TRIP } else { PAGE_IN };
        let blocks = timeslices >= 2 && long && self.has_blocked();
        if let Activity::Call { nr, .. } = self.activity {
            let call_sites = self.call_sites.entry(nr).or_default();
            call_sites.latest_blocked = blocks;
            call_sites.any_blocked |= blocks;
        }
        self.high_rate.blocked |= blocks;
        if blocks && self.high_rate.free_until().is_some() {
            return self.spread_blocks(at, cpu_time, others_delay, timeslices - 1, events);
        }
        let middle = (self.resumed_at + delay + cpu_time / 2).max(self.cursor);
        let remaining = cpu_time.saturating_sub(middle - self.resumed_at - delay);
        if blocks {
            if !in_call {
                self.emit(middle, EventKind::Fault { addr: 0, ip: 0 }, events);
            }
            self.leave_cpu(middle, Off::Blocked, events);
            let back = at.saturating_sub(WAKE_LATENCY + remaining).max(self.cursor);
            if others_delay > TRACER_SLICE {
                self.delayed(back, others_delay, events);
            } else {
                self.get_cpu(back, events);
            }
            if !in_call {
                self.emit(back + 1, EventKind::FaultEnd { major: true }, events);
            }
            self.advance_to((back + remaining).min(at));
            return;
        }
        if others_delay > TRACER_SLICE / 2 {
            self.preempt(middle, events);
            self.get_cpu(middle + others_delay, events);
        }
        self.advance_to((middle + others_delay + remaining).min(at));
    }

    /// In a free run it blocked before each of its time slices but the first, evenly spread.
    fn spread_blocks(
        &mut self,
        at: u64,
        cpu_time: u64,
        others_delay: u64,
        times: u64,
        events: &mut Vec<TaskEvent>,
    ) {
        let times = times.clamp(1, MAX_BLOCKS);
        let (work, wait) = (
            cpu_time / (times + 1),
            at.saturating_sub(self.cursor + cpu_time + others_delay) / times,
        );
        for _ in 0..times {
            self.leave_cpu(self.cursor + work, Off::Blocked, events);
            self.get_cpu(self.cursor + wait, events);
        }
        if others_delay > TRACER_SLICE / 2 {
            self.preempt(self.cursor + 1, events);
            self.get_cpu(self.cursor + others_delay, events);
        }
        self.advance_to((self.cursor + work).min(at));
    }
}
