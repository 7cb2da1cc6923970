//! Sleeps of a task, or of a goroutine, that holds a lock: what others wait for is the lock, and the sleep may be the work under it.

use super::{is_scheduler, is_sleep};
use crate::facts::Facts;
use crate::facts::locks::LockWait;
use crate::facts::processes::ProcessId;
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// So many waits are looked at for one sleep: as many tasks may wait at once.
const NEAR: usize = 64;

/// Who holds a lock, and sleeps: a task, or a goroutine.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Task(TaskId),
    Goroutine(u64),
}

impl Holder {
    fn of(task: TaskId, goroutine: u64) -> Self {
        if goroutine == 0 { Self::Task(task) } else { Self::Goroutine(goroutine) }
    }
}

/// Which part of a process's sleeping time others waited for a lock that the sleeping task held.
pub(super) fn share(facts: &Facts<'_>, process: ProcessId) -> f64 {
    let mut of_holder: BTreeMap<Holder, Vec<&LockWait>> = BTreeMap::new();
    for wait in facts.locks.waits.iter().filter(|wait| wait.process == process) {
        let holder = Holder::of(wait.holder, wait.holding_goroutine);
        of_holder.entry(holder).or_default().push(wait);
    }
    if of_holder.is_empty() {
        return 0.0;
    }
    let (mut held, mut all) = (Ns::ZERO, Ns::ZERO);
    let timeline = facts.timeline;
    for (at, block) in timeline.blocks.iter().enumerate() {
        if facts.processes.of(block.task) != process || !is_sleep(block) {
            continue;
        }
        let sleep = timeline.sleeps.get(&at);
        // Go's scheduler sleeps for its own purposes, all the time.
        if sleep.is_none() && is_scheduler(facts, block) {
            continue;
        }
        let goroutine = sleep.map_or(0, |sleep| sleep.goroutine);
        let holder = Holder::of(block.task, goroutine);
        let waits = of_holder.get(&holder).map_or(&[][..], Vec::as_slice);
        // In order of their ends: the first ones that end after the sleep began.
        let first = waits.partition_point(|wait| wait.end <= block.start);
        let near = waits.iter().skip(first).take(NEAR);
        let overlaps = near.map(|wait| wait.end.min(block.end) - wait.start.max(block.start));
        held += overlaps.max().unwrap_or(Ns::ZERO);
        all += block.end - block.start;
    }
    held.share_of(all)
}

/// What is left of sleeps under a lock if all who hold it in turn slept at once; nothing of others.
pub(super) fn at_once(facts: &Facts<'_>, process: ProcessId, under_lock: bool, slept: Ns) -> Ns {
    if !under_lock {
        return Ns::ZERO;
    }
    let own = facts.locks.waits.iter().filter(|wait| wait.process == process);
    let waiters: BTreeSet<Holder> = own.map(|w| Holder::of(w.waiter, w.goroutine)).collect();
    slept.part(1.0 / waiters.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat, weighed};
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

    /// Goroutine 5 sleeps 20 times for 9 ms while goroutine 2 waits for a lock that this goroutine releases.
    fn goroutines(holder: u64) -> String {
        let turn = |at: u64| {
            format!(
                "{} probe go.sleep 9000000 5 from time.Sleep <- main.load (c.go:9) <- main.main
                 {} probe go.lock.wait 0x10 2 from sync.(*Mutex).lockSlow <- main.get (c.go:20)
                 {at} off blocked epoll_wait 4 from runtime.netpoll <- runtime.findRunnable
                 {} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
                 {} back 0
                 {} probe go.lock.release 0x10 {holder} from sync.(*Mutex).unlockSlow <- main.get (c.go:25)\n",
                at - 20,
                at - 10,
                at + 9_000_000,
                at + 9_000_010,
                at + 9_000_020
            )
        };
        let turns = repeat(20, 1_000_000, 10_370_000, turn);
        format!(
            "image app path /bin/app language Go\ntask 1 app\n0 on\n0 exec /bin/app\n0 main\n{turns}
             210000000 exit\n210000000 off dead"
        )
    }

    #[test]
    fn a_goroutine_that_sleeps_under_a_lock_is_found_and_beside_anothers_it_is_a_pause() {
        let of = |holder: u64| {
            let mut found = weighed(&goroutines(holder)).findings;
            let at = found.iter().position(|f| f.class == "wait-sleep").unwrap();
            found.remove(at)
        };
        let holds = of(5);
        assert_eq!(holds.title, "asleep under a lock that others wait for");
        assert!(holds.remedy.starts_with("Release the lock before"), "{}", holds.remedy);
        assert!(of(7).title.starts_with("pauses of"), "{}", of(7).title);
    }
}
