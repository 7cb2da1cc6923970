//! CPU time that a hypervisor or a CPU quota took during a recording. Other programs' CPU time is not counted here.

use super::Ended;
use crate::procfs;
use crate::procfs::cgroup;
use deadweight_trace::Meta;
use deadweight_trace::units::Ns;

/// The kernel's totals at the start of a recording.
pub(crate) struct LostCpuTime {
    steal: u64,
    throttled: u64,
}

impl LostCpuTime {
    pub(crate) fn so_far() -> Self {
        Self { steal: procfs::steal(), throttled: cgroup::throttled() }
    }

    /// Notes the end of the complete recording, and the CPU time lost during it.
    pub(crate) fn until(&self, ended: &Ended, meta: &mut Meta) {
        let after = Self::so_far();
        meta.end = Ns(ended.end - meta.zero);
        meta.steal = Ns(after.steal.saturating_sub(self.steal));
        meta.throttled = Ns(after.throttled.saturating_sub(self.throttled));
        meta.complete = true;
    }
}
