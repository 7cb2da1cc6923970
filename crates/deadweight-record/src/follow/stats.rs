//! Counts of a recording as a whole, and the warnings that follow from them. For single tasks see `follow`.

use super::cold_events::{ColdEvents, WARM_CALL, WARM_FAULT};
use crate::bpf::TIME_ONE_IN;
use crate::session::NTH;
use crate::session::calibrate::Cold;
use deadweight_trace::Overhead;

/// If no more than this part of the calls was counted together, the reader needs no note of it.
const MENTIONED: f64 = 0.01;

/// Counts of a recording.
#[derive(Default)]
pub(crate) struct RecordingStats {
    /// Records read.
    pub(crate) records: u64,
    /// Records that the kernel dropped.
    pub(crate) lost: u64,
    /// Samples of the clock that the kernel dropped, of any program: no time is missing for that.
    pub(crate) samples_lost: u64,
    /// How often the kernel throttled an event.
    pub(crate) throttled: u64,
    /// Programs that the kernel hid.
    pub(crate) hidden: u64,
    /// Programs with elevated privileges, from which the kernel removed perf's events, and whether system calls of
    /// them were recorded in spite of that.
    pub(crate) elevated: u64,
    pub(crate) elevated_calls: bool,
    /// Records that could not be read.
    pub(crate) unreadable: u64,
    /// Calls that were counted and not recorded one by one, and calls that are not even counted.
    pub(crate) counted: u64,
    pub(crate) missed: u64,
    /// Calls that are assumed to be like the recorded 1 in N.
    pub(crate) decimated: u64,
    /// Fork burst: since when only some calls were recorded.
    pub(crate) fork_burst: Option<ReducedCalls>,
    /// Births and switches of the program's tasks, on the user rung.
    pub(crate) born: u32,
    pub(crate) switches: u32,
    /// Tasks that reuse a tid that the shared events exclude.
    pub(crate) reused_tids: u32,
    /// Recorded calls and page faults.
    pub(crate) calls: ColdEvents,
    pub(crate) faults: ColdEvents,
    /// The root was switched out for the last time.
    pub(crate) root_dead: bool,
}

/// Only some calls are still recorded.
pub(crate) struct ReducedCalls {
    /// After so many births and switches.
    pub(crate) born: u32,
    pub(crate) switches: u32,
    /// The names of those calls.
    pub(crate) calls: Vec<&'static str>,
    /// Of how many.
    pub(crate) of: usize,
}

impl ReducedCalls {
    /// The share of events that remain: a call has five events in two calls, and there are six others.
    fn left(&self) -> f64 {
        let events = |calls: usize| 2.5 * f64::from(u32::try_from(calls).unwrap_or(u32::MAX)) + 6.0;
        events(self.calls.len()) / events(self.of)
    }
}

impl RecordingStats {
    /// The mean tracing overhead of this recording's events, given what a call and a fault cost more after other work,
    /// in ns.
    ///
    /// There may have been fewer events for a part of the recording: a switch handles each event in turn, an exit
    /// searches for each event among all.
    pub(crate) fn scale_overhead(&self, overhead: &mut Overhead, cold: Cold) {
        let half = |more: u64, share: f64| crate::timing::whole(more as f64 * share / 2.0);
        let call = half(cold.call, self.calls.share(WARM_CALL));
        let fault = half(cold.fault, self.faults.share(WARM_FAULT));
        overhead.syscall_user += call;
        overhead.syscall_kernel += call;
        overhead.fault_user += fault;
        overhead.fault_kernel += fault;
        let Some(fewer) = &self.fork_burst else { return };
        let mean = |cost: &mut u64, before: u32, all: u32, left: f64| {
            let before = f64::from(before.min(all)) / f64::from(all.max(1));
            *cost = crate::timing::whole(*cost as f64 * (before + (1.0 - before) * left));
        };
        let left = fewer.left();
        mean(&mut overhead.switch, fewer.switches, self.switches, left);
        mean(&mut overhead.birth, fewer.born, self.born, left);
        mean(&mut overhead.death, fewer.born, self.born, left * left);
    }

    /// The warnings for the reader of a report.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.hidden > 0 {
            warnings.push(format!(
                "programs with elevated privileges (set-user-id, or not readable), {} of them: the kernel \
                 hides what they do, so their time is not recorded",
                self.hidden
            ));
        }
        if self.elevated > 0 {
            let calls = if self.elevated_calls { "" } else { " or their system calls" };
            warnings.push(format!(
                "programs with elevated privileges (set-user-id, or not readable), {} of them: the kernel does not \
                 report their page faults{calls}; the time of these is in the rows around them",
                self.elevated
            ));
        }
        let counted = self.counted as f64;
        if counted > MENTIONED * (counted + self.calls.number()) {
            warnings.push(format!(
                "{} system calls were too frequent to be recorded one by one: the kernel counted them (numbers and sizes \
                 are exact) and timed at least one in {TIME_ONE_IN} (times are estimates)",
                self.counted
            ));
        }
        if self.decimated > 0 {
            warnings.push(format!(
                "{} system calls came so fast that only one in {NTH} was recorded: numbers are exact to {NTH}, times are \
                 estimates from the recorded ones",
                self.decimated
            ));
        }
        if self.reused_tids > 0 {
            warnings.push(format!(
                "{} tasks got the number of one whose calls were counted at a high rate: in their first 10 ms or so \
                 such calls are not recorded, so their number is too low",
                self.reused_tids
            ));
        }
        if self.missed > 0 {
            warnings.push(format!(
                "{} calls are neither recorded nor counted: counts are too low by that, times are not",
                self.missed
            ));
        }
        if let Some(ReducedCalls { born, calls, .. }) = &self.fork_burst {
            warnings.push(format!(
                "{born} threads and processes had been born when the events at most system calls were closed, because each \
                 event makes every birth slower: from then on only {} are recorded one by one, waits in others have no cause",
                calls.join(", ")
            ));
        }
        if self.samples_lost > 0 {
            warnings.push(format!(
                "{} samples were lost, of all programs together: all time is recorded, what it was spent on is less certain. \
                 The recorder did not get a CPU in time: repeat where CPUs are free",
                self.samples_lost
            ));
        }
        if self.throttled > 0 {
            warnings.push(format!(
                "{} times the kernel held back events that came too fast: some of what happened then is not recorded",
                self.throttled
            ));
        }
        if self.unreadable > 0 {
            warnings.push(format!("{} records could not be read", self.unreadable));
        }
        warnings
    }
}
