//! Waiting for a lock.
//!
//! # What it is
//! One thread waits for a lock while another holds it for long. Work that could run
//! in parallel runs one part after the other.
//!
//! # How deadweight knows
//! A task waits on a futex word, the holder ends the wait through the same word, and the waiter's
//! stack shows a lock function (for Go: probes on the runtime's semaphores). Where threads fight for
//! a lock, futex calls fail because its word has changed meanwhile. Threads of an interpreter that runs one at a time
//! wait with a timeout while another one of them runs. A waiter is not on
//! the critical path, because the holder's work fills that time. So this cost is a finding about
//! waits between tasks. The row *waiting: lock* holds other time: waits that no task of the command
//! ended, as those of an idle server are.
//!
//! # What it is mistaken for
//! A condition variable used as a work queue, an idle pool, a join, Go's idle threads: they sleep
//! on futexes too, but they wait for work and not for a lock. A holder that was put aside without a
//! CPU: the others wait for the scheduler, and the work under the lock may be short. That time is
//! left out. What is made once, while the others that need it wait.
//!
//! # What to do
//! Do the long part outside the lock, and take the lock again to store the result. Or split the
//! lock, or give each thread its own part of the data.
//!
//! # Seen in
//! A cache that renders a missing tile while it holds its mutex.
//! In `tests/programs`: `contended.c`, `ask_locked.c`, `shared_rand.c`.

mod advice;
mod calls;
mod holder_runnable;
mod interpreter;
mod on_path;
mod storm;
mod work_under;

use super::{Claim, Class, Inspection};
use crate::account::{Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, sites};
use crate::facts::locks::LockWait;
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::timeline::WokenBy;
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use deadweight_report::report::{How, Site};
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::units::Ns;
use holder_runnable::{HolderRunnable, resumed};
use std::collections::{BTreeMap, BTreeSet};
pub(super) use storm::threads_fight;

pub(super) const CLASS: Class = Class {
    id: "wait-lock",
    source: include_str!("wait_lock.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    let What::Wait(block) = slice.what else { return false };
    let block = &facts.timeline.blocks[block as usize];
    let by_clock = block.woken_by == WokenBy::Interrupt(Interrupt::Timer);
    match block.waits_for {
        WaitsFor::Futex if by_clock => interpreter::is_turn(facts, block),
        WaitsFor::Futex | WaitsFor::KernelLock => !by_clock,
        WaitsFor::Turn => true,
        _ => false,
    }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let mut locks: BTreeMap<(ProcessId, u64), Vec<LockWait>> = BTreeMap::new();
    for wait in &found.facts.locks.waits {
        locks.entry((wait.process, wait.word)).or_default().push(*wait);
    }
    locks.retain(|_, waits| is_possible(waits) && was_held_again(waits));
    let mut drafts: Vec<Draft> =
        locks.into_iter().map(|((process, _), waits)| draft(found, process, &waits)).collect();
    drafts.extend(storm::drafts(found));
    drafts.extend(interpreter::drafts(found));
    // Striped locks are many lock words at one line: only the worst word of each line is reported.
    drafts.sort_by_key(|d| std::cmp::Reverse(d.saving));
    let line = |d: &Draft| d.sites.first().map(|s| (s.function.clone(), s.line));
    let mut seen = Vec::new();
    drafts.retain(|d| {
        let new = !seen.contains(&line(d));
        seen.push(line(d));
        new
    });
    drafts
}

/// Whether tasks waited for the lock at several times: what is made once is waited for once, by all that need it, and
/// making it without the lock would save nothing.
fn was_held_again(waits: &[LockWait]) -> bool {
    let first = waits.iter().map(|wait| wait.end).min().unwrap_or_default();
    waits.iter().any(|wait| wait.start > first)
}

/// Whether no task or goroutine waited twice at a time: a larger sum is a wrong match of waits and releases.
fn is_possible(waits: &[LockWait]) -> bool {
    let waiters: BTreeSet<(TaskId, u64)> = waits
        .iter()
        .map(|w| if w.goroutine == 0 { (w.waiter, 0) } else { (TaskId(0), w.goroutine) })
        .collect();
    let from = waits.iter().map(|w| w.start).min().unwrap_or_default();
    let to = waits.iter().map(|w| w.end).max().unwrap_or_default();
    let most = (to - from).0.saturating_mul(waiters.len() as u64);
    waits.iter().map(|w| w.end - w.start).sum::<Ns>() <= Ns(most)
}

/// A change at an instant while tasks wait for locks.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// So many more or fewer tasks of the subject are on a CPU.
    Running(i32),
    /// So many more or fewer wait for the lock.
    Waiting(i32),
    /// The holder loses (1) or gets back (-1) its CPU.
    Aside(i32),
    /// The critical path enters (1) or leaves (-1) the lock's process.
    OnPath(i32),
}

/// The time on the path during which tasks waited for the lock, and the saving if they had run beside its holder.
fn serialised(
    facts: &Facts<'_>,
    process: ProcessId,
    waits: &[LockWait],
    aside: &HolderRunnable,
) -> (Ns, Ns) {
    let (Some(first), Some(last)) =
        (waits.iter().map(|w| w.start).min(), waits.iter().map(|w| w.resumed).max())
    else {
        return (Ns::ZERO, Ns::ZERO);
    };
    let mut changes = running(facts, first, last);
    for wait in waits {
        changes.push((wait.start, Change::Waiting(1)));
        changes.push((resumed(wait), Change::Waiting(-1)));
    }
    for (start, end) in aside.intervals() {
        changes.push((start, Change::Aside(1)));
        changes.push((end, Change::Aside(-1)));
    }
    for (start, end) in on_path::of(facts, process, waits) {
        if end > first && start < last {
            changes.push((start, Change::OnPath(1)));
            changes.push((end, Change::OnPath(-1)));
        }
    }
    changes.sort_unstable();
    let cpus = i32::from(facts.trace.meta.cpus.clamp(1, 512));
    let (mut running, mut waiting, mut put_aside, mut on_path) = (0_i32, 0_i32, 0_i32, 0_i32);
    let mut at = first;
    let (mut amount, mut saving) = (Ns::ZERO, 0.0_f64);
    for (when, change) in changes {
        if waiting > 0 && put_aside == 0 && on_path > 0 && when > at {
            let length = when - at;
            amount += length;
            // If no task of the subject runs, the holder waits for something else under the lock: that needs no CPU.
            let could = if running == 0 { 1 + waiting } else { (running + waiting).clamp(1, cpus) };
            let kept = f64::from(running.max(1)) / f64::from(could);
            saving += length.0 as f64 * (1.0 - kept.min(1.0));
        }
        at = at.max(when);
        match change {
            Change::Running(by) => running += by,
            Change::Waiting(by) => waiting += by,
            Change::Aside(by) => put_aside += by,
            Change::OnPath(by) => on_path += by,
        }
    }
    let saved = saving / (amount.0.max(1) as f64);
    (amount, part(amount, saved))
}

/// `share` of `ns`.
fn part(ns: Ns, share: f64) -> Ns {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of ns")]
    let part = (ns.0 as f64 * share.clamp(0.0, 1.0)) as u64;
    Ns(part)
}

/// When own tasks begin and cease to be on a CPU.
fn running(facts: &Facts<'_>, from: Ns, to: Ns) -> Vec<(Ns, Change)> {
    let mut changes = Vec::new();
    for held in &facts.timeline.held {
        for (i, h) in held.iter().enumerate() {
            let end = held.get(i + 1).map_or(to, |next| next.start);
            let is_own = h.task.is_some_and(|t| facts.path.subject.owns(t));
            if is_own && end > from && h.start < to {
                changes.push((h.start, Change::Running(1)));
                changes.push((end, Change::Running(-1)));
            }
        }
    }
    changes
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId, waits: &[LockWait]) -> Draft {
    let facts = found.facts;
    // With the tracing overhead, without other programs: a holder without a CPU is put aside.
    let undisturbed = found.wall.net().share_of(found.wall.total - found.wall.disturbed());
    let aside = HolderRunnable::of(facts, waits);
    let (amount, saving) = serialised(facts, process, waits, &aside);
    let [amount, saving] = [amount, saving].map(|ns| part(ns, undisturbed));
    let mut waiters = Weights::new();
    let mut holders = Weights::new();
    for wait in waits {
        for (weights, site) in [(&mut waiters, wait.waiter_site), (&mut holders, wait.holder_site)]
        {
            if site != StackId(0) {
                let weight = weights.entry(CallSite::Stack(site)).or_default();
                weight.count += 1;
                weight.amount += aside.worked(wait).0;
            }
        }
    }
    let count = u64::try_from(waits.len()).unwrap_or(u64::MAX);
    let total: Ns = waits.iter().map(|w| aside.worked(w)).sum();
    let symbols = facts.symbols();
    let mut places = sites(symbols, &holders, count);
    let meanwhile = work_under::said(facts, waits, amount);
    for place in sites(symbols, &waiters, count) {
        let same =
            |p: &Site| (&p.function, p.line, &p.file) == (&place.function, place.line, &place.file);
        if !places.iter().any(same) {
            places.push(place);
        }
    }
    let name = facts.name(process);
    let of_interpreter = advice::is_of_interpreter(facts, waits);
    let handed = part(calls::handing_over(found, process, count), undisturbed);
    let mut evidence = evidence(facts, waits, amount, total);
    if handed > Ns::ZERO {
        let calls = time(handed);
        evidence.push(format!(
            "{calls} more in the calls that wait and wake, which the upper end includes"
        ));
    }
    Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: if of_interpreter {
            advice::ONE_AT_A_TIME
        } else {
            "work under a lock that others wait for"
        }
        .into(),
        text: format!(
            "Tasks of {name} waited {} for one lock, while its holder {meanwhile}.",
            things(count, "time"),
        ),
        amount,
        saving,
        range: (Ns(saving.0 / 2), amount + handed),
        how: How::Estimate,
        sites: places,
        evidence,
        remedy: advice::of(facts, process, of_interpreter, Ns(total.0 / count.max(1))),
    }
}

fn evidence(facts: &Facts<'_>, waits: &[LockWait], amount: Ns, total: Ns) -> Vec<String> {
    let wall = facts.path.subject.end - facts.path.subject.start;
    let whole: Ns = waits.iter().map(|w| w.end - w.start).sum();
    let during = percent(amount, wall);
    let mut evidence = vec![format!(
        "tasks waited for this lock during {during} of the wall time; all waits together take {}",
        time(total)
    )];
    let put_aside = whole - total;
    if put_aside.share_of(whole) >= 0.01 {
        evidence.push(format!(
            "not counted: {} of these waits, in which the holder had no CPU",
            time(put_aside)
        ));
    }
    evidence
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::tests::{found, rows};
    use expect_test::expect;
    use std::fmt::Write;

    /// Two workers alternate: one works 900 ns with the lock of `function` held, the other waits.
    pub(crate) fn workers(function: &str, value: u64) -> String {
        taking(function, value, 40)
    }

    /// The same so many times.
    fn taking(function: &str, value: u64, times: u64) -> String {
        let [mut one, mut two] = [String::new(), String::new()];
        for i in 0..times {
            let at = 1000 + i * 1000;
            let (waits, holds) =
                if i % 2 == 0 { (&mut one, &mut two) } else { (&mut two, &mut one) };
            writeln!(
                waits,
                "{} syscall futex 4096 128 {value} 0
                 {} off blocked : futex_do_wait from {function} <- get (tile.c:33) <- handler",
                at + 5,
                at + 10
            )
            .unwrap();
            writeln!(
                holds,
                "{} sample render <- get (tile.c:36) <- handler
                 {} syscall futex 4096 129 1 from __lll_lock_wake <- get (tile.c:38) <- handler
                 {} back 1",
                at + 400,
                at + 900,
                at + 910
            )
            .unwrap();
            let (tid, cpu) = if i % 2 == 0 { (2, 1) } else { (1, 0) };
            writeln!(waits, "{} cpu{cpu} on woken-by {tid}\n{} back 0", at + 905, at + 907)
                .unwrap();
        }
        format!(
            "cpus 2
             task 1 tiles\n0 cpu0 on\n100 fork 2 thread\n{one}
             50000 off blocked futex 9 0 7 : futex_do_wait\n50500 cpu0 on woken-by 2
             51000 syscall exit_group\n51000 exit\n51010 off dead
             task 2 tiles\n120 cpu1 on\n{two}50490 exit\n50600 off dead"
        )
    }

    #[test]
    fn work_under_a_mutex_is_found_with_the_holders_line() {
        expect![[r#"
            wait-lock 35 % (16..75) @ get:38: Tasks of tiles waited 40 times for one lock, while its holder worked, mostly in render.
        "#]].assert_eq(&found(&workers("pthread_mutex_lock", 2)));
    }

    #[test]
    fn what_is_made_once_under_a_lock_is_refused() {
        assert_eq!(found(&taking("pthread_mutex_lock", 2, 1)), "");
        assert!(found(&taking("pthread_mutex_lock", 2, 12)).contains("wait-lock"));
    }

    #[test]
    fn a_holder_without_a_cpu_is_refused() {
        let text = workers("pthread_mutex_lock", 2);
        // Of 895 ns under the lock, the holder is on a CPU for 15.
        let mut aside = String::new();
        for line in text.lines() {
            let line = line.trim();
            match line.split_once(" sample render") {
                Some((at, _)) => {
                    let at: u64 = at.parse().unwrap();
                    let cpu = if (at / 1000) % 2 == 1 { 1 } else { 0 };
                    let [off, on] = [at - 385, at + 499];
                    writeln!(aside, "{off} off preempted\n{on} cpu{cpu} on").unwrap();
                }
                None => writeln!(aside, "{line}").unwrap(),
            }
        }
        let found = found(&aside);
        assert!(!found.contains("wait-lock"), "{found}");
    }

    /// Goroutine 2 enters a wait `early` times in vain, each returns at once; then it waits 40 times for
    /// `held` ns until goroutine 1 releases the lock.
    fn goroutines(early: u64, held: u64) -> String {
        let wait = "probe go.lock.wait 0x10 2 from sync.(*Mutex).lockSlow <- main.get (tile.go:33)";
        let mut vain = String::new();
        for i in 0..early {
            writeln!(vain, "{} {wait}", 1000 + i * 10).unwrap();
        }
        let [mut one, mut two] = [String::new(), String::new()];
        for i in 0..40 {
            let at = 10_000 + i * 1000;
            writeln!(
                two,
                "{at} {wait}\n{0} syscall futex 4096 128 0 0\n{0} off blocked\n{1} cpu1 on woken-by 1\n{1} back 0",
                at + 1,
                at + held + 5
            )
            .unwrap();
            writeln!(
                one,
                "{} sample main.render <- main.get (tile.go:36)\n\
                 {} probe go.lock.release 0x10 1 from main.get (tile.go:38)\n\
                 {1} syscall futex 4096 129 1 0\n{2} back 1",
                at + held / 2,
                at + held,
                at + held + 8
            )
            .unwrap();
        }
        format!(
            "cpus 2\nimage app path /bin/app language Go\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n100 fork 2 thread\n{one}60000 exit\n60010 off dead\n\
             task 2 app\n200 cpu1 on\n{vain}{two}59000 exit\n59010 off dead"
        )
    }

    #[test]
    fn goroutines_that_wait_are_found_for_as_long_as_they_waited() {
        for early in [0, 50] {
            let found = found(&goroutines(early, 900));
            assert!(found.starts_with("wait-lock 30 % (14..67)"), "{found}");
            assert!(found.contains("waited 40 times for one lock"), "{found}");
        }
    }

    #[test]
    fn semaphores_that_are_no_locks_are_refused() {
        let text = goroutines(0, 900);
        assert!(found(&text.replace("sync.(*Mutex)", "sync.(*RWMutex)")).contains("wait-lock"));
        for other in [
            "sync.runtime_SemacquireWaitGroup",
            "internal/poll.runtime_Semacquire",
            "runtime.semacquire",
        ] {
            let text = text.replace("sync.(*Mutex).lockSlow", other);
            assert!(!found(&text).contains("wait-lock"), "{other}");
        }
    }

    #[test]
    fn waits_of_goroutines_that_returned_at_once_are_refused() {
        let found = found(&goroutines(50, 10));
        assert!(!found.contains("wait-lock"), "{found}");
    }

    #[test]
    fn condition_variables_and_futexes_that_are_no_lock_are_refused() {
        assert!(!found(&workers("pthread_cond_wait", 2)).contains("wait-lock"));
        assert!(!found(&workers("run_queue", 7)).contains("wait-lock"));
    }

    #[test]
    fn the_sender_of_a_signal_holds_no_lock() {
        let waiter = |stack: &str| {
            format!(
                "task 1 app
                 0 on
                 100 off blocked futex 9 0 7 0 : futex_do_wait
                 900 on woken-by 9 : {stack} < do_syscall_64
                 1000 exit
                 1000 off dead
                 task 9 bash outside
                 0 on"
            )
        };
        expect![[r#"
            wait-lock 800 a lock or condition
        "#]]
        .assert_eq(&rows(&waiter("complete_signal < __x64_sys_kill"), 1));
        expect![[r#"
            wait-lock 800 a lock or condition, until bash woke it
        "#]]
        .assert_eq(&rows(&waiter("futex_wake < __x64_sys_futex"), 1));
    }

    #[test]
    fn a_token_of_a_pipe_is_a_turn_and_refused() {
        let worker = "task 1 job
             0 on
           100 off blocked read 3 1 : anon_pipe_read
           800 on woken-by 9 : pipe_write
           810 back 1
           850 syscall write 3 1
           860 back 1
          1000 exit
          1000 off dead
        task 9 make outside
             0 on";
        let worker =
            worker.replace("0 on\n           100", "0 on\n10 syscall pipe2 0 0\n20 back 0\n100");
        assert_eq!(found(&worker), "");
        assert!(rows(&worker, 1).contains("its turn, with a token of a pipe"));
        let reader = worker.replace("write 3 1", "write 1 1");
        assert!(found(&reader).contains("until make delivered"), "{}", found(&reader));
    }
}
