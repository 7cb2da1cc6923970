//! Whether many sleeps are those of a loop: a task sleeps again and again. Many threads that pause now and then also
//! sleep often, one after the other along the path, and none of them polls.

use super::{LOOP, is_sleep};
use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// Whether one task with some of these sleeps has slept often, on the path or beside it. The threads of a runtime take turns at
/// the sleeps of a goroutine.
pub(super) fn is_one(facts: &Facts<'_>, process: ProcessId, sleeps: &[(Ns, Ns)]) -> bool {
    if facts.processes.get(process).language == "Go" {
        return true;
    }
    let own = |task: TaskId| facts.processes.of(task) == process;
    let mut tasks = BTreeSet::new();
    let mut times: BTreeMap<TaskId, usize> = BTreeMap::new();
    for (at, block) in facts.timeline.blocks.iter().enumerate() {
        if !is_sleep(block) || !own(block.task) {
            continue;
        }
        *times.entry(block.task).or_default() += 1;
        let sleep = facts.timeline.sleeps.get(&at).map(|sleep| (sleep.start, sleep.due));
        if sleeps.binary_search(&sleep.unwrap_or((block.start, block.end))).is_ok() {
            tasks.insert(block.task);
        }
    }
    tasks.iter().any(|task| times.get(task).is_some_and(|times| *times >= LOOP))
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::found;
    use std::fmt::Write as _;

    const MS: u64 = 1_000_000;

    /// A program that starts threads one after the other and waits for each, which works and sleeps `each` times for 1 ms.
    fn one_after_the_other(threads: u64, each: u64) -> String {
        let mut text = "cpus 2\ntask 1 app\n0 cpu0 on\n".to_owned();
        let mut all = String::new();
        let mut at = 0;
        for thread in 2..2 + threads {
            let _ = writeln!(text, "{} fork {thread} thread", at + 10);
            let _ = writeln!(text, "{} off blocked futex 8 0 0 : futex_do_wait", at + 20);
            let _ = writeln!(all, "task {thread} app\n{} cpu1 on", at + 30);
            for _ in 0..each {
                let _ = writeln!(
                    all,
                    "{} off blocked clock_nanosleep 1 from nap (app.c:5) <- step (app.c:9)
                     {} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt",
                    at + MS,
                    at + 2 * MS
                );
                at += 2 * MS;
            }
            let _ = writeln!(all, "{} syscall futex 8 1 1\n{} back 1", at + 10, at + 30);
            let _ = writeln!(all, "{} exit\n{} off dead", at + 40, at + 50);
            let _ = writeln!(text, "{} cpu0 on woken-by {thread}", at + 20);
            at += 100;
        }
        format!("{text}{at} exit\n{at} off dead\n{all}")
    }

    #[test]
    fn a_thread_that_sleeps_again_and_again_is_found_as_a_loop() {
        let said = found(&one_after_the_other(2, 8));
        assert!(said.contains("typically for 1.00 ms, and then checked again"), "{said}");
    }

    #[test]
    fn pauses_of_many_threads_are_refused_as_a_loop_and_found_as_pauses() {
        let said = found(&one_after_the_other(8, 2));
        assert!(said.contains("app slept 16 times in all."), "{said}");
    }
}
