//! What was seen of a recording as a whole, and what of it a report must say. Not for what happened to tasks.

use crate::dense::TIMED;
use crate::session::NTH;

/// What was seen, for the recording's own account.
#[derive(Default)]
pub(crate) struct Seen {
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
    /// Records that could not be read.
    pub(crate) unreadable: u64,
    /// Calls that were counted and not recorded one by one, and those of which not even that is known.
    pub(crate) counted: u64,
    pub(crate) missed: u64,
    /// Calls that are taken to be like the one in so many that was recorded.
    pub(crate) thinned: u64,
    /// When the root left its CPU for good.
    pub(crate) root_dead: bool,
}

impl Seen {
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
        if self.counted > 0 {
            warnings.push(format!(
                "{} calls came so densely that the kernel counted them, up to 128 at a time: in which order \
                 those came is not recorded, and how long they took is known of one in {TIMED} at least",
                self.counted
            ));
        }
        if self.thinned > 0 {
            warnings.push(format!(
                "{} calls came so densely that one in {NTH} was recorded: how many there were is counted, that the \
                 others were like those recorded, and took as long as some that were timed, is taken for granted",
                self.thinned
            ));
        }
        if self.missed > 0 {
            warnings.push(format!(
                "{} calls are neither recorded nor counted: counts are too low by them, times are not",
                self.missed
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
