//! Records of counted functions, into raw events. `session::counting` sets the probes.

use super::Follow;
use crate::perf::decode::{Body, Record, Sample};
use deadweight_trace::probe;
use deadweight_trace::raw::RawKind;

impl Follow<'_> {
    /// There are no more events for the moment.
    pub(crate) fn flush(&mut self) {
        self.sink.flush();
    }

    pub(super) fn count(
        &mut self,
        record: &Record<'_>,
        sample: &Sample<'_>,
        number: u16,
        stack: bool,
    ) {
        let reading = self.start.counts.get(usize::from(number));
        let Some((probe, args)) = reading.and_then(|r| r.read(sample, stack)) else { return };
        self.with_user(record, sample, |user, _| RawKind::Probe { probe, args, user });
    }

    pub(super) fn counting_stopped(&mut self, at: u64) {
        let (task, probe) = (self.start.root, probe::STOPPED);
        let record = Record { at, process: task, task, cpu: 0, body: Body::Other };
        self.emit(&record, task, RawKind::Probe { probe, args: [0; 2], user: None });
    }
}
