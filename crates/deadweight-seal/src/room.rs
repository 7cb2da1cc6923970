//! Whether there is memory for more events, those that are kept to be weighed above all. Not for files, which
//! have a limit of their own: see `output`.

use super::content::Content;
use super::resolve::Files;
use deadweight_record::{give_back, memory_left};
use deadweight_trace::encoded::Events;
use deadweight_trace::ids::{Cpu, Tid};
use deadweight_trace::units::Ns;
use deadweight_trace::{Event, Kind, Meta};
use std::time::{Duration, Instant};

/// Bytes that it takes to weigh an event: 54 to 68 were measured, and lists need more while they grow.
const WEIGHED: u64 = 100;
/// Bytes for symbols and code when the recording is over.
const SEALED: u64 = 14 << 20;
/// Bytes beside those of its files, to read the lines of one.
const LINES: u64 = 4 << 20;
/// How often memory is looked at: after so long, or so many events.
const LOOK: Duration = Duration::from_millis(50);
const EVENTS: u32 = 10_000;

/// What is known of the room for events.
#[derive(Debug, Default)]
pub(super) struct Room {
    looked: Option<Instant>,
    /// Events since then.
    since: u32,
    /// What was left when it was looked at first.
    first: Option<u64>,
    /// Once there was none: how many events are left out since.
    without: Option<u64>,
}

impl Room {
    /// Looks, if it is time to, whether these events can be kept and weighed, and the largest file be read
    /// then. For a file that takes much of what there is events are not left out.
    pub(super) fn look(&mut self, kept: &Events, largest: u64) {
        let due = self.since >= EVENTS || self.looked.is_none_or(|at| at.elapsed() >= LOOK);
        if self.without.is_none() && due {
            (self.looked, self.since) = (Some(Instant::now()), 0);
            let weighed = u64::try_from(kept.len()).unwrap_or(u64::MAX).saturating_mul(WEIGHED);
            let left = memory_left();
            let file = for_lines(largest).min(*self.first.get_or_insert(left) / 3);
            if left < weighed.saturating_add(SEALED).saturating_add(file) {
                self.without = Some(0);
            }
        }
    }

    /// Another event comes. Whether it is left out, which is counted.
    pub(super) fn leaves_out(&mut self, kept: &Events, largest: u64) -> bool {
        self.since += 1;
        if self.since >= EVENTS {
            self.look(kept, largest);
        }
        self.without.as_mut().map(|count| *count += 1).is_some()
    }

    /// The recording is over: says what is missing, in the events and in words.
    pub(super) fn finish(&self, events: &mut Events, meta: &mut Meta) {
        let Some(count) = self.without else { return };
        give_back();
        let cpus = meta.cpus.max(1);
        let share = (count / u64::from(cpus)).max(1);
        for cpu in (0..cpus).map(Cpu) {
            let kind = Kind::Lost { count: share };
            events.push(Event { at: meta.end.max(Ns(0)), cpu, task: Tid(0), kind });
        }
        meta.warnings.push(
            "too little memory was left to keep more of the recording: later events are missing in it. `deadweight \
             record` needs less"
                .into(),
        );
    }
}

/// Whether there is room to read the lines of a binary.
pub(super) fn has_lines(files: &Files<&Content<'_>>) -> bool {
    let all = [Some(files.binary), files.debug, files.shared];
    memory_left() >= for_lines(all.into_iter().flatten().map(Content::bytes).sum())
}

/// Bytes that it takes to read the lines of files that have so many: 1.2 to 1.4 of each were measured.
fn for_lines(bytes: u64) -> u64 {
    LINES.saturating_add(bytes).saturating_add(bytes / 2)
}
