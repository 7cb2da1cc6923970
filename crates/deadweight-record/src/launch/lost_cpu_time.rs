//! The machine's part in a recording: CPU time that a hypervisor or a CPU quota took during it, how long a cycle takes, and
//! what a cache line costs that two CPUs write to. Other programs' CPU time is not counted here.

use super::{Ended, shared_line};
use crate::procfs;
use crate::procfs::cgroup;
use crate::timing::cycle;
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
        meta.cycle = cycle::measured();
        if meta.attached || ran_on_several_cpus(ended) {
            meta.shared_line = shared_line::measured();
        }
    }
}

/// Whether a program used more CPU time than one CPU has.
fn ran_on_several_cpus(ended: &Ended) -> bool {
    const MORE: f64 = 1.05;
    let used = ended.usage.user + ended.usage.system;
    used.0 as f64 > MORE * ended.end.saturating_sub(ended.start) as f64
}
