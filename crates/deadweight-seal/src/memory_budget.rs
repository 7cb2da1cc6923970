//! Whether memory is left for more events (above all for events that are kept in memory to be weighed) and for the
//! lines of a binary. Does not limit trace files; see
//! `sealer::trace_file`.

use crate::elf::Files;
use crate::elf::content::Content;
use crate::host::Host;
use deadweight_trace::encoded::Events;
use deadweight_trace::ids::{Cpu, Tid};
use deadweight_trace::units::Ns;
use deadweight_trace::{Event, Kind, Meta};
use std::time::{Duration, Instant};

/// Bytes to weigh an event: 54 to 68 were measured, and vectors need more while they grow.
const WEIGHED: u64 = 100;
/// Bytes for symbols and code when the recording is over.
const SEALED: u64 = 14 << 20;
/// Bytes to read the lines of a binary, beside those of its files.
const LINES: u64 = 4 << 20;
/// Memory is checked after this time ...
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// ... or this many events.
const CHECK_EVENTS: u32 = 10_000;

/// Watches whether memory is left for events.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    host: Host,
    checked: Option<Instant>,
    /// Events since then.
    since: u32,
    /// Bytes left at the first check.
    first: Option<u64>,
    /// Once the budget is spent: how many events were dropped since.
    dropped: Option<u64>,
}

impl MemoryBudget {
    /// Nothing is checked yet.
    pub(crate) fn new(host: Host) -> Self {
        Self { host, checked: None, since: 0, first: None, dropped: None }
    }

    /// Checks, if it is time to, whether memory is left to weigh the kept events and then to read the largest
    /// file. A file counts as a third of the first budget at most: events are not dropped for it.
    pub(crate) fn check(&mut self, kept: &Events, largest: u64) {
        let due =
            self.since >= CHECK_EVENTS || self.checked.is_none_or(|at| at.elapsed() >= CHECK_EVERY);
        if self.dropped.is_none() && due {
            (self.checked, self.since) = (Some(Instant::now()), 0);
            let weighed = u64::try_from(kept.len()).unwrap_or(u64::MAX).saturating_mul(WEIGHED);
            let left = (self.host.memory_left)();
            let file = for_lines(largest).min(*self.first.get_or_insert(left) / 3);
            if left < weighed.saturating_add(SEALED).saturating_add(file) {
                self.dropped = Some(0);
            }
        }
    }

    /// Another event comes. Whether it must be dropped; a dropped event is counted.
    pub(crate) fn drops_event(&mut self, kept: &Events, largest: u64) -> bool {
        self.since += 1;
        if self.since >= CHECK_EVENTS {
            self.check(kept, largest);
        }
        self.dropped.as_mut().map(|count| *count += 1).is_some()
    }

    /// The recording is over: adds a record of lost events per CPU, and a warning.
    pub(crate) fn finish(&self, events: &mut Events, meta: &mut Meta) {
        let Some(count) = self.dropped else { return };
        (self.host.return_memory)();
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

/// Whether memory is left to read the lines of a binary.
pub(crate) fn can_read_lines(host: &Host, files: &Files<&Content<'_>>) -> bool {
    let all = [Some(files.binary), files.debug, files.shared];
    (host.memory_left)() >= for_lines(all.into_iter().flatten().map(Content::bytes).sum())
}

/// Bytes to read the lines of files of this size: 1.2 to 1.4 times the size were measured.
fn for_lines(bytes: u64) -> u64 {
    LINES.saturating_add(bytes).saturating_add(bytes / 2)
}
