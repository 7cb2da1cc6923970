//! Waiting for a lock.
//!
//! # What it is
//! One task waits for a lock while another task works for long under that lock. Work that could run
//! in parallel runs one part after the other.
//!
//! # How deadweight knows
//! A task waits on a futex word, the holder ends the wait through the same word, and the waiter's
//! stack shows a lock function (for Go: probes on the runtime's semaphores). The waiter is not on
//! the critical path, because the holder's work fills that time. So this cost is a finding about
//! waits between tasks. It is never a row of the ledger, except for locks that something outside
//! the command holds.
//!
//! # What it is mistaken for
//! A condition variable used as a work queue, an idle pool, a join, Go's idle threads: they sleep
//! on futexes too, but they wait for work and not for a lock.
//!
//! # What to do
//! Do the long part outside the lock, and take the lock again to store the result. Or split the
//! lock, or give each thread its own part of the data.
//!
//! # Seen in
//! A cache that renders a missing tile while it holds its mutex.
//! In `tests/programs`: `contended.c`.

use super::{Claim, Class, Inspection};
use crate::account::{Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, sites};
use crate::facts::locks::LockWait;
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use crate::timeline::{Run, WokenBy};
use deadweight_report::report::{How, Site};
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::ids::StackId;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

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
    matches!(block.waits_for, WaitsFor::Futex | WaitsFor::KernelLock) && !by_clock
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let mut locks: BTreeMap<(ProcessId, u64), Vec<LockWait>> = BTreeMap::new();
    for wait in &found.facts.locks.waits {
        locks.entry((wait.process, wait.word)).or_default().push(*wait);
    }
    let mut drafts: Vec<Draft> =
        locks.into_iter().map(|((process, _), waits)| draft(found, process, &waits)).collect();
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

/// A change at an instant while tasks wait for locks.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// So many more or fewer tasks of the subject are on a CPU.
    Running(i32),
    /// So many more or fewer wait for the lock.
    Waiting(i32),
    /// The critical path enters (1) or leaves (-1) the lock's process.
    OnPath(i32),
}

/// The time on the critical path during which tasks waited for the lock, and the saving if the
/// waiters had run in parallel with the holder, on the CPUs of this machine.
fn serialised(facts: &Facts<'_>, process: ProcessId, waits: &[LockWait]) -> (Ns, Ns) {
    let (Some(first), Some(last)) =
        (waits.iter().map(|w| w.start).min(), waits.iter().map(|w| w.end).max())
    else {
        return (Ns::ZERO, Ns::ZERO);
    };
    let mut changes = running(facts, first, last);
    for wait in waits {
        changes.push((wait.start, Change::Waiting(1)));
        changes.push((wait.end, Change::Waiting(-1)));
    }
    for piece in &facts.path.pieces {
        if facts.processes.of(piece.task) == process && piece.end > first && piece.start < last {
            changes.push((piece.start, Change::OnPath(1)));
            changes.push((piece.end, Change::OnPath(-1)));
        }
    }
    changes.sort_unstable();
    let cpus = i32::from(facts.trace.meta.cpus.clamp(1, 512));
    let (mut running, mut waiting, mut on_path) = (0_i32, 0_i32, 0_i32);
    let mut at = first;
    let (mut amount, mut saving) = (Ns::ZERO, 0.0_f64);
    for (when, change) in changes {
        if waiting > 0 && on_path > 0 && when > at {
            let length = when - at;
            amount += length;
            // If no task of the subject runs, other programs have the CPU that the holder needs.
            let now = running.clamp(1, cpus);
            let could = (now + waiting).clamp(1, cpus);
            let kept = f64::from(now) / f64::from(could);
            saving += length.0 as f64 * (1.0 - kept.min(1.0));
        }
        at = at.max(when);
        match change {
            Change::Running(by) => running += by,
            Change::Waiting(by) => waiting += by,
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
    // This time includes disturbances by other programs and the tracing overhead.
    let undisturbed = found.wall.net().share_of(found.wall.total);
    let (amount, saving) = serialised(facts, process, waits);
    let [amount, saving] = [amount, saving].map(|ns| part(ns, undisturbed));
    let mut waiters = Weights::new();
    let mut holders = Weights::new();
    for wait in waits {
        for (weights, site) in [(&mut waiters, wait.waiter_site), (&mut holders, wait.holder_site)]
        {
            if site != StackId(0) {
                let weight = weights.entry(CallSite::Stack(site)).or_default();
                weight.count += 1;
                weight.amount += (wait.end - wait.start).0;
            }
        }
    }
    let count = u64::try_from(waits.len()).unwrap_or(u64::MAX);
    let total: Ns = waits.iter().map(|w| w.end - w.start).sum();
    let symbols = facts.symbols();
    let mut places = sites(symbols, &holders, count);
    let under = sites(symbols, &work_under(facts, waits), 0);
    let work = under.first().map_or(String::new(), |s| format!(", mostly in {}", s.function));
    for place in sites(symbols, &waiters, count) {
        if !places.iter().any(|p| same_place(p, &place)) {
            places.push(place);
        }
    }
    let name = facts.name(process);
    Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "work under a lock that others wait for".into(),
        text: format!(
            "Tasks of {name} waited {} for one lock, {} on average, while its holder worked{work}.",
            things(count, "time"),
            time(Ns(total.0 / count.max(1))),
        ),
        amount,
        saving,
        range: (Ns(saving.0 / 2), amount),
        how: How::Estimate,
        sites: places,
        evidence: vec![format!(
            "tasks waited for this lock during {} of the wall time; all waits together take {}",
            percent(amount, facts.path.subject.end - facts.path.subject.start),
            time(total)
        )],
        remedy: remedy(&facts.processes.get(process).language),
    }
}

fn same_place(a: &Site, b: &Site) -> bool {
    a.function == b.function && a.line == b.line && a.file == b.file
}

/// What the holders ran while other tasks waited, by samples.
fn work_under(facts: &Facts<'_>, waits: &[LockWait]) -> Weights {
    let mut weights = Weights::new();
    for wait in waits {
        let task = &facts.timeline.tasks[wait.holder.index()];
        let from = task.samples.partition_point(|s| s.at < wait.start);
        let during = task.samples[from..].iter().take_while(|s| s.at < wait.end);
        for sample in during.filter(|s| s.stack != StackId(0)) {
            let on_cpu = task.span_at(sample.at).map(|i| task.spans[i].run);
            if matches!(on_cpu, Some(Run::OnCpu(_))) {
                weights.entry(CallSite::Stack(sample.stack)).or_default().amount += 1;
            }
        }
    }
    weights
}

fn remedy(language: &str) -> String {
    let lock = match language {
        "Rust" => "drop the guard before it and lock again to store the result",
        "Go" => "call Unlock before it and Lock again to store the result",
        "C++" => "end the lock_guard's scope before it and lock again to store the result",
        _ => "unlock before it and lock again to store the result",
    };
    format!(
        "Do the long part outside the lock: {lock} (two tasks may then do the same work twice, \
         which a per-key lock avoids). Or split the lock so that unrelated work uses different locks."
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use expect_test::expect;
    use std::fmt::Write;

    /// Two workers alternate: one works 900 ns with the lock of `function` held, the other waits.
    fn workers(function: &str, value: u64) -> String {
        let [mut one, mut two] = [String::new(), String::new()];
        for i in 0..40 {
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
            wait-lock 35 % (18..70) @ get:38: Tasks of tiles waited 40 times for one lock, 895 ns on average, while its holder worked, mostly in render.
        "#]].assert_eq(&found(&workers("pthread_mutex_lock", 2)));
    }

    #[test]
    fn condition_variables_and_futexes_that_are_no_lock_are_refused() {
        assert!(!found(&workers("pthread_cond_wait", 2)).contains("wait-lock"));
        assert!(!found(&workers("run_queue", 7)).contains("wait-lock"));
    }
}
