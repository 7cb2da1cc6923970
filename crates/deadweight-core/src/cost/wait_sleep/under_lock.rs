//! Sleeps of a task that holds a lock: what others wait for is the lock, and the sleep may be the work under it.

use super::is_sleep;
use crate::facts::Facts;
use crate::facts::locks::LockWait;
use crate::facts::processes::ProcessId;
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// So many waits are looked at for one sleep: as many tasks may wait at once.
const NEAR: usize = 64;

/// Which part of a process's sleeping time others waited for a lock that the sleeping task held.
pub(super) fn share(facts: &Facts<'_>, process: ProcessId) -> f64 {
    let mut of_holder: BTreeMap<TaskId, Vec<&LockWait>> = BTreeMap::new();
    for wait in facts.locks.waits.iter().filter(|wait| wait.process == process) {
        of_holder.entry(wait.holder).or_default().push(wait);
    }
    if of_holder.is_empty() {
        return 0.0;
    }
    let (mut held, mut all) = (Ns::ZERO, Ns::ZERO);
    for block in &facts.timeline.blocks {
        if facts.processes.of(block.task) != process || !is_sleep(block) {
            continue;
        }
        let waits = of_holder.get(&block.task).map_or(&[][..], Vec::as_slice);
        // In order of their ends: the first ones that end after the sleep began.
        let first = waits.partition_point(|wait| wait.end <= block.start);
        let near = waits.iter().skip(first).take(NEAR);
        let overlaps = near.map(|wait| wait.end.min(block.end) - wait.start.max(block.start));
        held += overlaps.max().unwrap_or(Ns::ZERO);
        all += block.end - block.start;
    }
    held.share_of(all)
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, weighed};
    use crate::cost::wait_lock::tests::workers;

    /// Two workers, of which one sleeps with the lock of `function` held while the other waits.
    fn sleeping(function: &str) -> String {
        let sleep = |line: &str| {
            let Some((at, _)) = line.trim().split_once(" sample render") else {
                return format!("{line}\n");
            };
            let at: u64 = at.parse().unwrap();
            let clock = "interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt";
            format!(
                "{} off blocked clock_nanosleep 1 from fetch (tile.c:36) <- get (tile.c:37) <- handler\n\
                 {} on woken-by {clock}\n",
                at - 300,
                at + 400
            )
        };
        workers(function, 2).lines().map(sleep).collect()
    }

    #[test]
    fn a_sleep_under_a_lock_is_a_candidate_below_the_lock() {
        let text = found(&sleeping("pthread_mutex_lock"));
        let classes: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(classes, ["wait-lock", "wait-sleep"], "{text}");
        // A wait for an event is no lock.
        let event = weighed(&sleeping("sem_wait").replace("4096 128 2 0", "4096 128 0 0"));
        assert!(event.findings.iter().all(|f| !f.title.contains("lock")), "{:?}", event.findings);
    }
}
