//! A lock that its threads fight for without sleeping: each asks the kernel to wait, and finds the lock's word
//! changed by then.

use super::CLASS;
use crate::account::Detail;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::{CallSite, Weights, add, entered, heaviest};
use crate::facts::locks::waits_for_lock;
use crate::facts::processes::ProcessId;
use crate::inspect::shares::{Own, sampled_sites};
use crate::inspect::{Draft, Inspection, Sum, processes_in};
use deadweight_report::report::How;
use deadweight_report::wording::{count, percent, things, time};
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// Fewer calls are no storm.
const CALLS: u64 = 5_000;
/// At least one in this many calls finds the word changed. Where locks are free, none does.
const CHANGED: u64 = 10;
/// Below this part of the wall time, the calls and what is around them are left alone.
const LARGE: f64 = 0.05;

/// A finding for each process whose threads fight for locks.
pub(super) fn drafts(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let calls = found.wall.entries.iter().filter(|entry| group(found, &entry.detail).is_some());
    processes_in(calls).into_iter().filter_map(|process| draft(found, process)).collect()
}

/// Whether threads fight for a lock: recording slows each between its calls, so that they fight less.
pub(in crate::cost) fn threads_fight(found: &Inspection<'_, '_>) -> bool {
    !drafts(found).is_empty()
}

/// The group of futex calls that many threads' calls of a lock make.
fn group<'f>(found: &Inspection<'f, '_>, detail: &Detail) -> Option<&'f CallGroup> {
    let Detail::Calls(group) = detail else { return None };
    let group = found.facts.call_groups.get(*group);
    let tasks = found.facts.processes.get(group.process).tasks.len();
    let many = group.calls >= CALLS && changed(group) * CHANGED >= group.calls;
    let storm = group.name == "futex" && tasks > 1 && many && is_of_locks(found, group);
    storm.then_some(group)
}

/// How many of these calls found that the word had changed. A wait that ends by its time-out fails too, but it has
/// blocked before.
fn changed(group: &CallGroup) -> u64 {
    group.failed.saturating_sub(group.blocked)
}

/// Whether most of the stacks taken at these calls are in a lock.
fn is_of_locks(found: &Inspection<'_, '_>, group: &CallGroup) -> bool {
    let symbols = found.facts.symbols();
    let all: u64 = group.sites.values().sum();
    let sites = group.sites.iter().filter(|(site, _)| waits_for_lock(symbols, **site));
    let locking: u64 = sites.map(|(_, calls)| *calls).sum();
    locking * 2 > all
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let symbols = facts.symbols();
    let mut groups = BTreeMap::new();
    let entries = found.wall.in_process(process).filter(|entry| {
        let group = group(found, &entry.detail);
        groups.extend(group.map(|group| (entry.detail, group)));
        group.is_some()
    });
    let calls = Sum::of(entries);
    let changed: u64 = groups.values().map(|group| changed(group)).sum();
    let all: u64 = groups.values().map(|group| group.calls).sum();
    let mut places = Weights::new();
    groups.values().for_each(|group| add(&mut places, &group.all_places()));
    // What the threads do in the library function that takes the lock, from the same lines, is mostly the fight for
    // the lock's cache line.
    let through: BTreeSet<_> = places.keys().filter_map(|site| entered(symbols, *site)).collect();
    let there = |site: &CallSite| entered(symbols, *site).is_some_and(|e| through.contains(&e));
    let own = Own::of(found.wall, process);
    let samples = found.wall.user_time_of(process).flat_map(|entry| &entry.samples);
    let samples: u64 =
        samples.filter(|(site, _)| there(site)).map(|(_, weight)| weight.amount).sum();
    let around = own.part(samples as f64);
    let most = calls.ns + around;
    if most.share_of(found.wall.net()) < LARGE {
        return None;
    }
    let name = facts.name(process);
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "threads fight for a lock".into(),
        text: format!(
            "Threads of {name} asked the kernel {} to wait for a lock or to pass it on; {} of these calls ({}) \
             found that the lock had changed meanwhile.",
            things(all, "time"),
            count(changed),
            percent(Ns(changed), Ns(all)),
        ),
        amount: most,
        saving: most,
        range: (calls.ns, most),
        how: How::Estimate,
        sites: sampled_sites(symbols, &places),
        evidence: vec![format!(
            "{} in these calls, and {} more in the library function that takes the lock",
            time(calls.ns),
            time(around)
        )],
        remedy: remedy(found, heaviest(&places)).into(),
    })
}

/// What to do, by what takes the lock.
fn remedy(found: &Inspection<'_, '_>, site: CallSite) -> &'static str {
    let symbols = found.facts.symbols();
    let names: Vec<&str> =
        site.frames(symbols).map(|(_, frame)| symbols.name(frame.function)).collect();
    let calls = |of: &[&str]| names.iter().any(|name| of.contains(name));
    if calls(&["random", "rand", "srand", "lrand48", "drand48"]) {
        "Give each thread a generator of its own (rand_r or random_r with its own state): rand() and random() \
         take one lock for all threads."
    } else if calls(&["malloc", "free", "calloc", "realloc", "_int_malloc", "_int_free"]) {
        "Give each thread memory of its own: an allocator with a cache per thread (mimalloc, jemalloc), or \
         buffers that the thread keeps."
    } else if calls(&[
        "fwrite", "fputs", "fputc", "putc", "puts", "printf", "vfprintf", "fgetc", "getc",
    ]) {
        "Each call of stdio takes the stream's lock: format into a buffer of the thread and write that, or take \
         the lock once (flockfile, then putc_unlocked and the like)."
    } else {
        "Take the lock less often: let each thread collect its part and merge it once, or split the lock."
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat};
    use expect_test::expect;

    /// Two threads: 6 000 futex calls each from `site`; one in `changed` returns EAGAIN.
    fn threads(site: &str, changed: u64) -> String {
        let calls = |first: u64| {
            repeat(6000, first, 1000, move |at| {
                let back = if (at / 1000).is_multiple_of(changed) { -11 } else { 0 };
                format!(
                    "{at} syscall futex 4096 128 2 0 from {site}\n{} back {back}\n{} sample random @libc.so.6 <- \
                     rand @libc.so.6 <- dart (a.c:14) <- work\n",
                    at + 300,
                    at + 600
                )
            })
        };
        format!(
            "cpus 2\nimage app path /bin/app language C\nimage libc.so.6 path /lib/libc.so.6\nsample-period 1000\n\
             task 1 app\n0 cpu0 on\n100 fork 2 thread\n{}6100000 exit\n6100000 off dead\n\
             task 2 app\n120 cpu1 on\n{}6050000 exit\n6050000 off dead",
            calls(1000),
            calls(1500),
        )
    }

    const RAND: &str = "__lll_lock_wait_private @libc.so.6 <- random @libc.so.6 <- rand @libc.so.6 <- dart (a.c:14) <- work";

    #[test]
    fn a_lock_that_changes_while_threads_ask_is_found() {
        expect![[r#"
            wait-lock 100 % (27..100) @ dart:14: Threads of app asked the kernel 12 000 times to wait for a lock or to pass it on; 4 000 of these calls (33 %) found that the lock had changed meanwhile.
        "#]].assert_eq(&found(&threads(RAND, 3)));
    }

    #[test]
    fn free_locks_and_condition_variables_are_refused() {
        assert!(!found(&threads(RAND, 100)).contains("wait-lock"));
        let condition = RAND.replace("__lll_lock_wait_private", "pthread_cond_wait");
        assert!(!found(&threads(&condition, 3)).contains("wait-lock"));
    }
}
