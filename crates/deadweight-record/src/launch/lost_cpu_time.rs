//! What the machine took of the CPUs while a recording ran. Not for what other programs did there.

use super::Ended;
use crate::procfs;
use crate::procfs::cgroup;
use deadweight_trace::Meta;
use deadweight_trace::units::Ns;

/// What others had taken of the CPUs when a recording began.
pub(crate) struct LostCpuTime {
    steal: u64,
    throttled: u64,
}

impl LostCpuTime {
    pub(crate) fn so_far() -> Self {
        Self { steal: procfs::steal(), throttled: cgroup::throttled() }
    }

    /// The recording is complete: notes its end, and what was taken meanwhile.
    pub(crate) fn until(&self, ended: &Ended, meta: &mut Meta) {
        let after = Self::so_far();
        meta.end = Ns(ended.end - meta.zero);
        meta.steal = Ns(after.steal.saturating_sub(self.steal));
        meta.throttled = Ns(after.throttled.saturating_sub(self.throttled));
        meta.complete = true;
    }
}
