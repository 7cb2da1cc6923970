//! What was seen of a recording as a whole, and what of it a report must say. Not for what happened to tasks.

use crate::bpf::{REPORT_AFTER, TIME_ONE_IN};
use crate::session::NTH;
use deadweight_trace::Overhead;

/// What was seen, for the recording's own account.
#[derive(Default)]
pub(crate) struct RecordingStats {
    /// Records read.
    pub(crate) records: u64,
    /// Records that the kernel had to drop.
    pub(crate) lost: u64,
    /// Samples of the clock that the kernel had to drop, of whatever program: no time is missing for that.
    pub(crate) samples_lost: u64,
    /// Times that the kernel slowed an event down.
    pub(crate) throttled: u64,
    /// Programs that the kernel hid.
    pub(crate) hidden: u64,
    /// Programs that perf's events were let go of in, and whether system calls of theirs were seen even so.
    pub(crate) elevated: u64,
    pub(crate) elevated_calls: bool,
    /// Records that could not be read.
    pub(crate) unreadable: u64,
    /// Calls that were counted and not recorded one by one, and those of which not even that is known.
    pub(crate) counted: u64,
    pub(crate) missed: u64,
    /// Calls that are taken to be like the one in so many that was recorded.
    pub(crate) decimated: u64,
    /// Where many tasks were born: from when on only some calls were recorded.
    pub(crate) fork_burst: Option<ReducedCalls>,
    /// Births and switches of the program's tasks, on the user rung.
    pub(crate) born: u32,
    pub(crate) switches: u32,
    /// Tasks with the number of one that shared events pass over.
    pub(crate) reused_tids: u32,
    /// When the root left its CPU for good.
    pub(crate) root_dead: bool,
}

/// Only some calls are recorded any more.
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
    /// The share of all events that are left: a call has five in two, and there are six others.
    fn left(&self) -> f64 {
        let events = |calls: usize| 2.5 * f64::from(u32::try_from(calls).unwrap_or(u32::MAX)) + 6.0;
        events(self.calls.len()) / events(self.of)
    }
}

impl RecordingStats {
    /// What recording costs, where there were fewer events for a part of it: a switch takes each in turn, a death looks
    /// for each of them at all of them.
    pub(crate) fn scale_overhead(&self, observer: &mut Overhead) {
        let Some(fewer) = &self.fork_burst else { return };
        let mean = |cost: &mut u64, before: u32, all: u32, left: f64| {
            let before = f64::from(before.min(all)) / f64::from(all.max(1));
            *cost = crate::timing::whole(*cost as f64 * (before + (1.0 - before) * left));
        };
        let left = fewer.left();
        mean(&mut observer.switch, fewer.switches, self.switches, left);
        mean(&mut observer.death, fewer.born, self.born, left * left);
    }

    /// What the reader of a report must know of it.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.hidden > 0 {
            warnings.push(format!(
                "programs with more rights than their user (set-user-id, or not readable), {} of them: \
                 the kernel hides what they do, their time is not recorded",
                self.hidden
            ));
        }
        if self.elevated > 0 {
            let calls = if self.elevated_calls { "" } else { ", nor their system calls" };
            warnings.push(format!(
                "programs with more rights than their user (set-user-id, or not readable), {} of them: \
                 the kernel does not tell their page faults{calls}; they are in the rows of what they happened in",
                self.elevated
            ));
        }
        if self.counted > 0 {
            warnings.push(format!(
                "{} calls came so densely that the kernel counted them, up to {REPORT_AFTER} at a time: in which order \
                 those came is not recorded, and how long they took is known of one in {TIME_ONE_IN} at least",
                self.counted
            ));
        }
        if self.decimated > 0 {
            warnings.push(format!(
                "{} calls came so densely that one in {NTH} was recorded: how many there were is counted in steps \
                 of {NTH}, that the others were like those recorded, and took as long as some that were timed, is taken for granted",
                self.decimated
            ));
        }
        if self.reused_tids > 0 {
            warnings.push(format!(
                "{} tasks got the number of one that dense calls had been counted of: in their first moments, some 10 ms, \
                 such calls are not recorded, and their number is too low",
                self.reused_tids
            ));
        }
        if self.missed > 0 {
            warnings.push(format!(
                "{} calls are neither recorded nor counted: counts are too low by them, times are not",
                self.missed
            ));
        }
        if let Some(ReducedCalls { born, calls, .. }) = &self.fork_burst {
            warnings.push(format!(
                "{born} threads and processes had been born when the events at most system calls were let go, because each \
                 makes every birth slower: from then on only {} are seen apart, waits in others have no cause",
                calls.join(", ")
            ));
        }
        if self.samples_lost > 0 {
            warnings.push(format!(
                "{} samples were lost, of all programs together: all time is told, what it was spent on is less sure. \
                 Something kept the recorder from running: repeat where CPUs are free",
                self.samples_lost
            ));
        }
        if self.throttled > 0 {
            warnings.push(format!("the kernel throttled an event {} times", self.throttled));
        }
        if self.unreadable > 0 {
            warnings.push(format!("{} records could not be read", self.unreadable));
        }
        warnings
    }
}
