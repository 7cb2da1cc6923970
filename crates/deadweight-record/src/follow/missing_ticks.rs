//! Ticks of the sampling clock without a sample, because they fell into the kernel.
//!
//! An ordinary user's clock also ticks in the kernel, but makes no record there. It counts the CPU time of each task
//! on each CPU, so if a tick was due and no sample came, the task was in the kernel. `follow` reports the switches.

use deadweight_trace::hash::ByFast;
use std::collections::HashMap;

/// A tick in user mode is at most this late, in ns: interrupts are enabled there.
const LATE: u64 = 20_000;

/// The expected state of each task's clock.
pub(crate) struct Ticks {
    period: u64,
    /// By CPU: its task, since when, and the CPU time since its latest tick at that time, in ns.
    on: Vec<Option<On>>,
    /// By task and CPU that it has left: the CPU time since its latest tick there, in ns.
    left: HashMap<(u32, u32), u64, ByFast>,
}

#[derive(Copy, Clone)]
struct On {
    task: u32,
    since: u64,
    done: u64,
}

impl Ticks {
    pub(crate) fn new(period: u64, cpus: usize) -> Self {
        Self { period, on: vec![None; cpus], left: HashMap::default() }
    }

    /// The task got the CPU, or its clock was started there.
    pub(crate) fn on(&mut self, cpu: u32, task: u32, at: u64) {
        let done = self.left.get(&(task, cpu)).copied().unwrap_or(0);
        if let Some(on) = self.on.get_mut(cpu as usize) {
            *on = Some(On { task, since: at, done });
        }
    }

    /// The task left the CPU.
    pub(crate) fn off(&mut self, cpu: u32, task: u32, at: u64) {
        let on = self.on.get_mut(cpu as usize).and_then(|on| on.take_if(|on| on.task == task));
        if let Some(on) = on {
            self.left.insert((task, cpu), (on.done + at.saturating_sub(on.since)).min(self.period));
        }
    }

    /// The task is gone.
    pub(crate) fn forget(&mut self, task: u32) {
        for cpu in (0..).take(self.on.len()) {
            self.left.remove(&(task, cpu));
        }
    }

    /// How many ticks of the task on this CPU were due before `at` and had no sample, since the last question.
    /// `sampled`: there is one now.
    pub(crate) fn missing(&mut self, cpu: u32, task: u32, at: u64, sampled: bool) -> u64 {
        let on = self.on.get_mut(cpu as usize).and_then(Option::as_mut);
        let Some(on) = on.filter(|on| on.task == task && self.period > 0) else { return 0 };
        let done = on.done + at.saturating_sub(on.since);
        on.since = at;
        if sampled {
            // A sample is a tick: the nearest one, and it resets the clock.
            let ticks = ((done + self.period / 2) / self.period).max(1);
            on.done = done.saturating_sub(ticks * self.period).min(LATE);
            return ticks - 1;
        }
        let ticks = done.saturating_sub(LATE) / self.period;
        on.done = done - ticks * self.period;
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_without_a_sample_is_missing() {
        let mut ticks = Ticks::new(100_000, 1);
        ticks.on(0, 7, 0);
        assert_eq!(ticks.missing(0, 7, 90_000, false), 0);
        // Due at 100 000, and perhaps a little late.
        assert_eq!(ticks.missing(0, 7, 110_000, false), 0);
        assert_eq!(ticks.missing(0, 7, 130_000, false), 1);
        // Due at 200 000, and there.
        assert_eq!(ticks.missing(0, 7, 203_000, true), 0);
        // 300 000 and 400 000 passed in the kernel, 500 000 did not.
        assert_eq!(ticks.missing(0, 7, 501_000, true), 2);
    }

    #[test]
    fn the_clock_stands_while_the_task_is_off() {
        let mut ticks = Ticks::new(100_000, 2);
        ticks.on(0, 7, 0);
        ticks.off(0, 7, 60_000);
        ticks.on(1, 7, 70_000);
        assert_eq!(ticks.missing(1, 7, 150_000, false), 0);
        ticks.off(1, 7, 150_000);
        ticks.on(0, 7, 1_000_000);
        assert_eq!(ticks.missing(0, 7, 1_050_000, true), 0);
        assert_eq!(ticks.missing(0, 8, 9_000_000, false), 0);
    }
}
