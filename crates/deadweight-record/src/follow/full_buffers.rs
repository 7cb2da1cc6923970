//! Rings that were full, with nothing after that. The kernel tells of a record that did not fit before the next one that
//! does; after the last one nobody does.

use super::Follow;
use crate::perf::decode::{Body, Record};
use deadweight_trace::raw::RawKind;

impl Follow<'_> {
    /// What happened on this CPU after its latest record is not known: one was lost at least.
    pub(crate) fn lost_to_the_end(&mut self, cpu: u32) {
        self.seen.lost += 1;
        let record = Record { at: self.end, process: 0, task: 0, cpu, body: Body::Other };
        self.emit(&record, 0, RawKind::Lost { count: 1 });
    }
}
