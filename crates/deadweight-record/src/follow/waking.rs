//! Which task woke which, where the kernel reports it. Elsewhere core infers wakers.

use super::{Follow, REAPED};
use crate::perf::decode::{Record, Sample};
use deadweight_trace::ids::Tid;
use deadweight_trace::raw::RawKind;

impl Follow<'_> {
    pub(super) fn waking(&mut self, record: &Record<'_>, sample: &Sample<'_>) {
        let Some(woken) = sample.raw_u32(self.offsets.woken) else { return };
        let woken = self.pids.here(woken);
        if !self.follows(woken) {
            return;
        }
        let held = self.cpus.get(record.cpu as usize).map_or(0, |h| h.task);
        // The last thread of a reaped process has no id any more, but still holds the CPU. A task of another
        // namespace has no id here either.
        let nameless = record.task == REAPED || self.pids.differ() && record.task == 0;
        let waker = Tid(if nameless { held } else { record.task });
        // common_flags: hard or soft interrupt.
        let irq = sample.raw.get(2).is_some_and(|flags| flags & 0x18 != 0);
        sample.split_chain(&mut self.kernel_chain, &mut self.user_chain);
        let chain = std::mem::take(&mut self.kernel_chain);
        self.emit(record, woken, RawKind::Wake { waker, irq, chain: &chain, inferred: false });
        self.kernel_chain = chain;
    }
}
