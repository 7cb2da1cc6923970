//! Whether there is memory for more events, those that are kept to be weighed above all. Not for files, which
//! have a limit of their own: see `output`.

use deadweight_core::ids::{Cpu, Tid};
use deadweight_core::trace::encoded::Events;
use deadweight_core::trace::{Event, Kind, Meta};
use deadweight_core::units::Ns;
use deadweight_record::memory_left;
use std::time::{Duration, Instant};

/// Bytes that it takes to weigh an event: 56 to 68 were measured.
const WEIGHED: u64 = 80;
/// Bytes for symbols, lines and code when the recording is over.
const SEALED: u64 = 10 << 20;
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What is known of the room for events.
#[derive(Debug, Default)]
pub(super) struct Room {
    looked: Option<Instant>,
    /// Once there was none: how many events are left out since.
    without: Option<u64>,
}

impl Room {
    /// Looks, if it is time to, whether these events can be kept and weighed.
    pub(super) fn look(&mut self, kept: &Events) {
        let due = self.looked.is_none_or(|at| at.elapsed() >= LOOK);
        if self.without.is_none() && due {
            self.looked = Some(Instant::now());
            let weighed = u64::try_from(kept.len()).unwrap_or(u64::MAX).saturating_mul(WEIGHED);
            if memory_left() < weighed.saturating_add(SEALED) {
                self.without = Some(0);
            }
        }
    }

    /// Whether an event that comes now is left out, which is counted.
    pub(super) fn leaves_out(&mut self) -> bool {
        self.without.as_mut().map(|count| *count += 1).is_some()
    }

    /// The recording is over: says what is missing, in the events and in words.
    pub(super) fn finish(&self, events: &mut Events, meta: &mut Meta) {
        let Some(count) = self.without else { return };
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
