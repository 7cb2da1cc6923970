//! Other places to run at: one CPU for all threads, or a cgroup without a quota.

use super::{About, Sides};
use crate::running::series::{RunChanges, RunOptions};
use deadweight_record::{Placement, group_without_quota};
use deadweight_report::report::Means;

pub(super) const ONE_CPU: About = About {
    means: Means::OneCpu,
    classes: &["false-sharing", "wait-lock"],
    how: "the command may use one CPU only: its threads pass no cache line and no lock from CPU to CPU",
    besides: "nothing runs at the same time: only a cost larger than what several CPUs gain shows, and it is the least",
    noticed: "output, exit status, CPU time; a run that is not faster withdraws nothing",
};

pub(super) const NO_QUOTA: About = About {
    means: Means::NoQuota,
    classes: &["throttled"],
    how: "the command runs in the topmost visible cgroup, which has no CPU quota; this needs root, and a quota that the container \
          sees",
    besides: "other limits of its own cgroup, such as that of memory, do not hold there",
    noticed: "output, exit status",
};

/// The sides: all CPUs, or one.
pub(super) fn one_cpu(options: &RunOptions) -> Sides {
    sides(options, Placement { one_cpu: true, group: None })
}

/// The sides: with and without the quota.
pub(super) fn no_quota(options: &RunOptions) -> Result<Sides, String> {
    let group = group_without_quota().ok_or("no cgroup without a quota is visible from here")?;
    Ok(sides(options, Placement { one_cpu: false, group: Some(group) }))
}

fn sides(options: &RunOptions, placement: Placement) -> Sides {
    let changes = RunChanges { placement, ..options.changes.clone() };
    let without = RunOptions { changes, ..options.clone() };
    Sides::new(options.clone(), without)
}
