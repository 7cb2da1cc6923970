//! Sleeps of a task that has something for another one after each: a source (a camera, a feed, a load that is simulated)
//! keeps a pace with them, and a loop that looks for work may answer so, too. Nothing shows which of the two it is.

use super::{NEARLY_ALL, is_sleep};
use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::timeline::WokenBy;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// Fewer sleeps show no habit.
const FEW: usize = 8;

/// Whether a task of the process wakes another one, which waits for it and for no lock, between nearly any two of its
/// sleeps. The task is the one that sleeps most often.
pub(super) fn another(facts: &Facts<'_>, process: ProcessId) -> bool {
    let of_process = |task: TaskId| facts.processes.of(task) == process;
    let blocks = &facts.timeline.blocks;
    let mut sleeps: BTreeMap<TaskId, Vec<(Ns, Ns)>> = BTreeMap::new();
    for block in blocks.iter().filter(|block| of_process(block.task) && is_sleep(block)) {
        sleeps.entry(block.task).or_default().push((block.start, block.end));
    }
    let Some((sleeper, sleeps)) = sleeps.into_iter().max_by_key(|(_, sleeps)| sleeps.len()) else {
        return false;
    };
    let waits = facts.locks.waits.iter().map(|wait| (wait.waiter, wait.end));
    let for_locks: BTreeSet<(TaskId, Ns)> = waits.collect();
    let woken = blocks.iter().filter(|block| {
        block.woken_by == WokenBy::Task(sleeper)
            && block.waits_for == WaitsFor::Futex
            && of_process(block.task)
            && !for_locks.contains(&(block.task, block.end))
    });
    let mut woken: Vec<Ns> = woken.map(|block| block.end).collect();
    woken.sort_unstable();
    let until = |at: Ns| woken.partition_point(|end| *end < at);
    let between = sleeps.windows(2).filter(|pair| until(pair[1].0) > until(pair[0].1)).count();
    sleeps.len() >= FEW && between as f64 >= (sleeps.len() - 1) as f64 * NEARLY_ALL
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, weighed};
    use std::fmt::Write;

    const MS: u64 = 1_000_000;

    /// A task sleeps 20 times for 4 ms, and after each `every`-th sleep wakes another one that waits for it.
    fn source(every: u64) -> String {
        let [mut sleeps, mut waits] = [String::new(), String::new()];
        for turn in 0..20 {
            let at = MS + turn * 4_630_000;
            let woken = at + 4 * MS;
            writeln!(
                sleeps,
                "{at} off blocked clock_nanosleep 1 from sleep <- camera (poll.rs:7) <- main
                 {woken} cpu0 on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
                 {} back 0",
                woken + 10
            )
            .unwrap();
            if turn % every == 0 {
                writeln!(
                    sleeps,
                    "{} syscall futex 4096 129 1\n{} back 1",
                    woken + 100,
                    woken + 200
                )
                .unwrap();
                writeln!(
                    waits,
                    "{} off blocked futex 4096 128 9 0 : futex_do_wait from recv <- analyse (poll.rs:20)
                     {} cpu1 on woken-by 1\n{} back 0",
                    at + 3 * MS,
                    woken + 150,
                    woken + 300
                )
                .unwrap();
            }
        }
        let end = 95 * MS;
        format!(
            "cpus 2\ntask 1 poll\n0 cpu0 on\n0 main\n100 fork 2 thread\n{sleeps}{end} exit\n{end} off dead
             task 2 poll\n200 cpu1 on\n{waits}{} exit\n{} off dead",
            end - 200,
            end - 100
        )
    }

    #[test]
    fn pauses_of_a_source_that_wakes_another_task_after_each_are_no_polling() {
        let said = weighed(&source(1)).findings;
        let finding = said.iter().find(|f| f.class == "wait-sleep").expect("a finding");
        assert!(finding.text.ends_with("and woke another task after each."), "{}", finding.text);
        assert!(finding.title.starts_with("pauses of 4.00 ms"), "{}", finding.title);
        assert!(found(&source(1)).contains(" (0.."), "{}", found(&source(1)));
    }

    #[test]
    fn a_loop_that_wakes_another_task_now_and_then_is_found_as_polling() {
        let said = found(&source(3));
        assert!(said.contains("and then checked again"), "{said}");
        assert!(!said.contains(" (0.."), "{said}");
    }
}
