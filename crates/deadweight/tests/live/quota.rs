//! A CPU quota, as in containers: the report does not blame other programs for it.

use crate::group::Group;
use crate::truth::Truth;

#[test]
fn a_quota_is_the_wait_for_a_cpu() {
    // 30 ms of CPU time in every 100.
    let first = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "30000")];
    let quota = Group::new("cpu", &first, &[("cpu.max", "30000 100000")]);
    let group = quota.as_ref().map(Group::processes).map_err(Clone::clone);
    Truth::of("@word_count 200000")
        .in_group(group)
        .rows(&["throttled"], 0.3..=0.95)
        .note("throttled", "quota")
        .first_finding(&["throttled"])
        .hazard("throttled")
        .check();
}
