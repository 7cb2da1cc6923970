//! Ring buffers that were full at the end. The kernel reports lost records before the next record that fits; after
//! the last record nothing reports them.

use super::Follow;
use crate::perf::decode::{Body, Record};
use deadweight_trace::raw::RawKind;

impl Follow<'_> {
    /// Nothing is known of this CPU after its latest record: at least one record was lost.
    pub(crate) fn lost_to_the_end(&mut self, cpu: u32) {
        self.stats.lost += 1;
        let record = Record { at: self.end, process: 0, task: 0, cpu, body: Body::Other };
        self.emit(&record, 0, RawKind::Lost { count: 1 });
    }
}
