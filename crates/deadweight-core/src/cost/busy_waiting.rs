//! Busy waiting.
//!
//! # What it is
//! A thread waits for another one by asking again and again: a loop that reads a flag, a channel or a
//! lock that is tried without ever sleeping. It has a CPU all the time. Where the CPUs are all in
//! use, it takes this one from the threads that it waits for.
//!
//! # How deadweight knows
//! Samples in a small loop that reads memory and changes nothing: no memory, and no register that the
//! next turn reads. Only another thread can end such a loop. Or samples under functions that try
//! without waiting (`try_recv`, spin locks), or system calls that ask in vain (`poll` without
//! time, `read` that returns EAGAIN). The row is this time on the critical path. The
//! saving is the time that the thread with much work that ends last was ready to run while such a thread held its
//! CPU: 0 where a CPU was free. Then the cost is CPU time, and is no finding. A finding of its own is a
//! thread whose `epoll_wait` or `poll` finds an event each time, without any other call between: the
//! time of these calls.
//!
//! # What it is mistaken for
//! A loop that computes: it changes a register. A short spin before a sleep, as locks do it: it is a
//! small part of its thread's time. Polls whose events are read, or that another
//! thread's writes wake. `waitpid` in a loop is shown as a wait for the child.
//!
//! # What to do
//! Block: `recv` instead of `try_recv`, a join, a condition variable, a futex (`std::atomic::wait`), an
//! eventfd in the same poll. Close what reports EPOLLHUP, and read what has come. If the wait is short, spin a few turns, then block.
//!
//! # Seen in
//! A renderer whose collector and main thread spin while two workers need both CPUs.
//! In `tests/programs`: `spins.c`.

mod asking;
mod polling;

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, add};
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::shares::sampled_sites;
use crate::path::cpu_holder::CpuHolders;
use crate::timeline::Run;
use asking::Asking;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CLASS: Class = Class {
    id: "busy-waiting",
    source: include_str!("busy_waiting.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time nobody lost a CPU by it.
const LARGE: f64 = 0.05;
/// A thread that waits busily does this for so much of its own time.
const MOST: f64 = 0.5;
/// Fewer samples do not tell.
const SAMPLES: usize = 8;
/// A wait for a CPU that other programs had for this part of it is theirs.
const OTHERS: f64 = 0.1;
/// A thread works much if it has this part of the longest time on a CPU.
const MUCH: f64 = 0.5;
/// The part of the time that the thread with most work was kept from a CPU that the run is shorter without: typical, and
/// least, because other threads may take that CPU instead.
const TYPICAL: f64 = 0.9;
const LEAST: f64 = 0.5;

fn claim(sample: &UserSample<'_>) -> bool {
    sample.stands_still()
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let mut drafts = found.drafts_of_all(draft);
    drafts.extend(found.drafts_of_all(polling::draft));
    drafts
}

/// Whether a thread waits busily for most of its time, in its own code.
pub(super) fn waits_busily(facts: &Facts<'_>, task: TaskId) -> bool {
    let (busy, all) = in_loops(facts, task);
    busy >= SAMPLES && busy as f64 >= all as f64 * MOST
}

/// The samples of a thread's own code: those in loops that only wait, and all.
fn in_loops(facts: &Facts<'_>, task: TaskId) -> (usize, usize) {
    let account = AccountId::of_class(CLASS.id);
    let samples = facts.timeline.task(task).samples.iter().filter(|sample| !sample.kernel);
    samples.fold((0, 0), |(busy, all), sample| {
        let is = facts.account_of_sample(CallSite::Stack(sample.stack)) == account;
        (busy + usize::from(is), all + 1)
    })
}

/// Whether a thread only waits: in loops, by calls that ask in vain, or by yields. A yield takes no CPU from who wants it; a
/// storm of them is `wait-cpu`'s.
pub(super) fn only_waits(facts: &Facts<'_>, task: TaskId) -> bool {
    is_busy(facts, task, true)
}

fn is_busy(facts: &Facts<'_>, task: TaskId, with_yields: bool) -> bool {
    let on_cpu = facts.timeline.task(task).on_cpu();
    let asked = Asking::of(facts, task, with_yields).ns;
    let (busy, all) = in_loops(facts, task);
    let looping = (on_cpu - asked.min(on_cpu)).part(busy as f64 / all.max(1) as f64);
    waits_busily(facts, task) || asked > Ns::ZERO && (asked + looping).share_of(on_cpu) >= MOST
}

/// Where these threads wait busily, by samples, and where they ask in vain.
fn places<'t>(facts: &Facts<'_>, tasks: impl Iterator<Item = &'t TaskId>) -> Weights {
    let account = AccountId::of_class(CLASS.id);
    let period = facts.trace.meta.sample_period;
    let mut places = Weights::new();
    for task in tasks {
        for sample in facts.timeline.task(*task).samples.iter().filter(|sample| !sample.kernel) {
            if facts.account_of_sample(CallSite::Stack(sample.stack)) == account {
                let site = facts.site_of_sample(sample.stack);
                places.entry(site).or_default().amount += period;
            }
        }
        add(&mut places, &Asking::of(facts, *task, false).places);
    }
    places
}

/// How long a thread was ready to run while one of these held a CPU; with how long each did. It need not be the thread's
/// own CPU: a free one would have taken it. Where another program had that, the machine is only not quiet.
fn kept_from(
    facts: &Facts<'_>,
    worker: TaskId,
    busy: &BTreeSet<TaskId>,
) -> (Ns, BTreeMap<TaskId, Ns>) {
    let (timeline, subject) = (facts.timeline, &facts.path.subject);
    let task = timeline.task(worker);
    let mut intervals: Vec<(Ns, Ns, TaskId)> = Vec::new();
    for held in &timeline.held {
        for (at, holder) in held.iter().enumerate() {
            let end = held.get(at + 1).map_or(subject.end, |next| next.start);
            intervals
                .extend(holder.task.filter(|t| busy.contains(t)).map(|t| (holder.start, end, t)));
        }
    }
    intervals.sort_unstable();
    let ready = task.spans.iter().enumerate().filter(|(_, span)| span.run() == Run::Runnable);
    let mut holders = CpuHolders::new(timeline, subject);
    let mut others = |at: usize, from: Ns, to: Ns| {
        let holders = holders.of((worker, at), from, to).iter();
        let foreign = holders.filter(|(_, who)| who.is_foreign());
        foreign.map(|(ns, _)| *ns).sum::<Ns>().share_of(to - from) >= OTHERS
    };
    let ready: Vec<(Ns, Ns)> = ready
        .map(|(at, span)| (at, span.start.max(subject.start), task.span_end(at).min(subject.end)))
        .filter(|(at, from, to)| from < to && !others(*at, *from, *to))
        .map(|(_, from, to)| (from, to))
        .collect();
    let mut held: BTreeMap<TaskId, Ns> = BTreeMap::new();
    let (mut all, mut reached) = (Ns::ZERO, Ns::ZERO);
    for (start, end, holder) in intervals {
        let first = ready.partition_point(|(_, to)| *to <= start);
        for (from, to) in ready[first..].iter().take_while(|(from, _)| *from < end) {
            let (from, to) = ((*from).max(start), (*to).min(end));
            *held.entry(holder).or_default() += to - from;
            // Where several hold CPUs at once, the time counts once.
            all += to - from.max(reached).min(to);
            reached = reached.max(to);
        }
    }
    (all, held)
}

/// The thread that the busy ones wait for in the end: of those that work much, the one that ends last.
fn last_worker(facts: &Facts<'_>, tasks: &[TaskId], busy: &BTreeSet<TaskId>) -> Option<TaskId> {
    let workers = || tasks.iter().copied().filter(|task| !busy.contains(task));
    let worked = |task: TaskId| facts.timeline.task(task).on_cpu();
    let most = workers().map(worked).max()?;
    workers()
        .filter(|task| worked(*task) >= most.part(MUCH))
        .max_by_key(|task| facts.timeline.task(*task).end)
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let tasks = &facts.processes.get(process).tasks;
    if tasks.len() < 2 || facts.path.subject.service.is_some() {
        return None;
    }
    let busy: BTreeSet<TaskId> =
        tasks.iter().copied().filter(|task| is_busy(facts, *task, false)).collect();
    let worker = last_worker(facts, tasks, &busy)?;
    let (ns, held) = kept_from(facts, worker, &busy);
    let ns = ns.min(net);
    if ns.share_of(net) < LARGE {
        return None;
    }
    let top = sampled_sites(facts.symbols(), &places(facts, held.keys()));
    let on_cpu: Ns = held.keys().map(|task| facts.timeline.task(*task).on_cpu()).sum();
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "threads that wait busily hold the CPU".into(),
        text: format!(
            "A thread of {} that works was ready to run for {} of {} while {} of its own, in loops that only \
             wait, held a CPU ({}).",
            facts.name(process),
            time(ns),
            time(net),
            things(held.len() as u64, "thread"),
            percent(ns, net),
        ),
        amount: ns,
        saving: ns.part(TYPICAL),
        range: (ns.part(LEAST), ns),
        how: How::Estimate,
        sites: top,
        evidence: vec![format!(
            "these threads had {} of CPU time; with a CPU free for each, no time would be saved",
            time(on_cpu)
        )],
        remedy: remedy(&facts.processes.get(process).language).into(),
    })
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Rust" => {
            "Block: recv() or `for item in receiver` instead of try_recv(), join(), thread::park, a Condvar."
        }
        "C++" => {
            "Block: std::condition_variable, std::atomic::wait, a semaphore, join(). If the wait is short, \
             spin a few turns first."
        }
        _ => {
            "Block: a condition variable, a futex, an eventfd, a join. If the wait is short, spin a few turns \
             first."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use std::fmt::Write;

    /// Two threads on one CPU that take turns of a millisecond; the second one's samples have this stack.
    fn turns(code: &str, stack: &str) -> String {
        let (mut one, mut two) = (String::new(), String::new());
        for i in 0..20_u64 {
            let at = 1_000_000 + i * 2_000_000;
            writeln!(
                one,
                "{at} sample work (s.c:9) <- run (s.c:20)\n{} off preempted\n{} on",
                at + 10_000,
                at + 1_000_000
            )
            .unwrap();
            writeln!(
                two,
                "{} on\n{} sample {stack}\n{} off preempted",
                at + 10_000,
                at + 500_000,
                at + 999_000
            )
            .unwrap();
        }
        format!(
            "cpus 1\nimage app path /bin/app language C\nsample-period 1000000\n{code}\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n100 fork 2 thread\n{one}42_000_000 exit\n42_000_000 off dead\n\
             task 2 app\n{two}41_990_000 exit\n41_990_000 off dead"
        )
    }

    #[test]
    fn a_thread_that_tries_to_receive_is_found() {
        let said = found(&turns(
            "",
            "std::sync::mpmc::Receiver<T>::try_recv (/rustc/1/library/std/src/sync/mpmc/mod.rs:9) in collect (s.c:30) <- run (s.c:40)",
        ));
        assert!(said.starts_with("busy-waiting 4") && said.contains("@ collect:30"), "{said}");
    }

    #[test]
    fn a_loop_that_reads_a_flag_is_found_and_one_that_counts_is_not() {
        // 0: mov eax, [rdi]; 2: test eax, eax; 4: je 0; 6: ret
        let waits = "code wait @0x1000 8b 07 85 c0 74 fa c3";
        // 0: add eax, [rdi]; 2: test eax, eax; 4: je 0; 6: ret
        let counts = waits.replace("8b 07", "03 07");
        let stack = "wait (s.c:30) @0x1002 <- run (s.c:40)";
        let said = found(&turns(waits, stack));
        assert!(said.starts_with("busy-waiting"), "{said}");
        assert!(!found(&turns(&counts, stack)).contains("busy-waiting"));
    }

    #[test]
    fn a_thread_that_reads_in_vain_is_found_and_one_that_sleeps_in_poll_is_refused() {
        // The first thread works; the second one is in the call for all of its turn, or sleeps in it.
        let turns = |enters: &str, back: &str, off: &str, on: &str| {
            let (mut one, mut two) = (String::new(), String::new());
            for i in 0..20_u64 {
                let at = 1_000_000 + i * 2_000_000;
                writeln!(
                    one,
                    "{at} sample work (s.c:9)\n{} off preempted\n{} on",
                    at + 10_000,
                    at + 1_000_000
                )
                .unwrap();
                writeln!(two, "{} on {on}", at + 10_000).unwrap();
                if i > 0 {
                    writeln!(two, "{} back {back}", at + 10_500).unwrap();
                }
                writeln!(two, "{} syscall {enters} from spin (s.c:30)", at + 11_000).unwrap();
                writeln!(two, "{} off {off}", at + 999_000).unwrap();
            }
            format!(
                "cpus 1\nimage app path /bin/app language C\nsample-period 1000000\n\
                 task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n100 fork 2 thread\n{one}42_000_000 exit\n42_000_000 off dead\n\
                 task 2 app\n{two}41_990_000 on {on}\n41_990_500 back {back}\n41_995_000 exit\n41_995_000 off dead"
            )
        };
        let reads = turns("read 3 1", "-11", "preempted", "");
        assert!(found(&reads).contains("busy-waiting"), "{}", found(&reads));
        let sleeps =
            turns("poll 1 1 5", "0", "blocked poll : do_sys_poll", "woken-by interrupt timer");
        assert!(!found(&sleeps).contains("busy-waiting"), "{}", found(&sleeps));
    }

    /// Two threads take turns on one CPU; a third one, with this stack, has the other CPU all the time.
    fn beside(stack: &str) -> String {
        let (mut one, mut two, mut three) = (String::new(), String::new(), String::new());
        for i in 0..20_u64 {
            let at = 1_000_000 + i * 2_000_000;
            let work = |at| format!("{at} sample work (s.c:9) <- run (s.c:20)\n");
            one += &work(at);
            writeln!(one, "{} off preempted\n{} cpu0 on", at + 10_000, at + 1_000_000).unwrap();
            writeln!(two, "{} cpu0 on", at + 10_000).unwrap();
            two += &work(at + 500_000);
            writeln!(two, "{} off preempted", at + 999_000).unwrap();
            writeln!(three, "{} sample {stack}", at + 500_000).unwrap();
        }
        format!(
            "cpus 2\nimage app path /bin/app language C\nsample-period 1000000\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n100 fork 2 thread\n110 fork 3 thread\n{one}42_000_000 exit\n\
             42_000_000 off dead\ntask 2 app\n{two}41_990_000 exit\n41_990_000 off dead\n\
             task 3 app\n120 cpu1 on\n{three}41_980_000 exit\n41_980_000 off dead"
        )
    }

    /// The workers share a CPU, and the scheduler would give one of them the other.
    #[test]
    fn a_thread_that_tries_to_receive_on_another_cpu_is_found_and_one_that_works_there_is_refused()
    {
        let said = found(&beside(
            "std::sync::mpmc::Receiver<T>::try_recv (/rustc/1/library/std/src/sync/mpmc/mod.rs:9) in collect (s.c:30) <- run (s.c:40)",
        ));
        assert!(said.contains("busy-waiting") && said.contains("@ collect:30"), "{said}");
        assert!(!found(&beside("collect (s.c:30) <- run (s.c:40)")).contains("busy-waiting"));
    }

    #[test]
    fn a_thread_that_works_is_refused() {
        let said = found(&turns("", "collect (s.c:30) <- run (s.c:40)"));
        assert!(!said.contains("busy-waiting"), "{said}");
    }
}
