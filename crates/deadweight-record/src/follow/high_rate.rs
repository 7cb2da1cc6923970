//! Records of system calls that a BPF program counted, into raw events. `bpf::high_rate` counts them.

use super::Follow;
use crate::bpf::high_rate::{CallCount, CountRecord};
use crate::perf::decode::{Record, Sample};
use crate::perf::schema::Role;
use deadweight_trace::raw::{Calls, RawKind};

impl Follow<'_> {
    pub(super) fn counted(&mut self, record: &Record<'_>, sample: &Sample<'_>) {
        let counts = CountRecord(sample.raw);
        let Some(task) = counts.task().filter(|task| self.follows(*task)) else { return };
        self.note_on_cpu(record, task);
        if let Some((nr, args)) = counts.open_call() {
            self.emit(record, task, RawKind::Syscall { nr, args });
            self.expect_user_stack(record, task, Role::CallSite);
        }
        self.stats.missed += counts.missed();
        let Some(until) = counts.duration().map(|duration| record.at.saturating_add(duration))
        else {
            return;
        };
        for CallCount { nr, args, ret, count, inside } in counts.counts() {
            self.stats.counted += u64::from(count);
            // Events that were passed on meanwhile were later than the calls' beginning.
            let over = until.saturating_sub(self.last.max(record.at));
            let inside = inside.min(over);
            self.emit(record, task, RawKind::Calls(Calls { nr, args, ret, count, inside, over }));
        }
    }
}
