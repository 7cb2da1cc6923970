//! Threads for small tasks.
//!
//! # What it is
//! A thread is started for each small piece of work, and waited for. Its start and its end take some
//! 20 to 40 µs in the kernel, on both sides: a new task, its stack, waking it on another CPU, and
//! waking the task that waits for its end. The work itself takes less. A copy of a large process takes
//! milliseconds: its page tables are copied and taken down, and each page that is written then costs a fault.
//!
//! # How deadweight knows
//! The trace has the birth and the end of each thread, and its time on a CPU. If most threads of a
//! process (or most copies that it makes of itself by fork) end after less than 0.3 ms of it, or of what each
//! fork takes, the finding adds up, along the critical path, the calls that start and wait for threads, the waits for
//! them and for a CPU, and their ends. What the threads compute is their own work, and stays. The
//! ledger shows that time by what it consists of.
//!
//! # What it is mistaken for
//! Threads that live for the whole run, or that work for long. A pool whose workers wait for tasks.
//! A shell's copies of itself for `$(...)`. A server that starts a thread for each connection is not
//! judged: its clients decide how long it waits.
//!
//! # What to do
//! Start the threads once and give each many tasks (a pool, a queue, a parallel loop), give a thread
//! a larger piece, or do small pieces where they arise.
//!
//! # Seen in
//! A journal that seals the back side of each sheet by `std::async`.
//! In `tests/programs`: `thread_per_task.c`.

use super::{Claim, Class, EXIT, Inspection};
use crate::account::{Detail, Entry};
use crate::facts::Facts;
use crate::facts::call_site::sites;
use crate::facts::processes::ProcessId;
use crate::inspect::births::{self, slow_fork, starts_threads};
use crate::inspect::started::LOOP;
use crate::inspect::{Draft, processes_in};
use crate::path::cpu_holder::CpuHolder;
use crate::timeline::Task;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::account::{KERNEL_OTHER, PAGE_FAULTS};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "thread-churn",
    source: include_str!("thread_churn.rs"),
    // Its time has rows already, by what it consists of.
    claim: Claim::Slices(|_, _| false),
    inspect,
};

/// Fewer threads are no thread per task.
const MANY: usize = 50;
/// A thread with more time on a CPU has work of its own. Recording may add some tens of µs.
const SMALL: Ns = Ns(300_000);
/// What to do where each fork copies a large process.
const FOR_LARGE: &str = "Do small pieces where they arise, or give them to a helper process that is forked once, before the memory is \
    filled: each fork copies the page tables, its child takes them down, and the parent then faults on each page \
    that it writes.";
/// The part of the remaining time that goes away with them, in proportion to their share: caches are warmer. A pair of
/// programs with 71 % in such calls and waits saved 87 %.
const AROUND: f64 = 0.3;
/// Below this share of the wall time threads are cheap enough.
const LARGE: f64 = 0.05;

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let processes = processes_in(found.wall.entries.iter());
    processes.into_iter().filter_map(|process| draft(found, process)).collect()
}

/// The threads of a process and the copies that it made of itself, without those that executed a program.
fn started(facts: &Facts<'_>, process: ProcessId) -> (Vec<TaskId>, Vec<ProcessId>) {
    let of_process = facts.processes.get(process);
    let copy = |id: &&ProcessId| {
        let child = facts.processes.get(**id);
        child.own && !child.executed() && !of_process.is_launcher()
    };
    let copies: Vec<ProcessId> = of_process.children.iter().filter(copy).copied().collect();
    let first = copies.iter().filter_map(|id| facts.processes.get(*id).tasks.first());
    (of_process.tasks.iter().skip(1).chain(first).copied().collect(), copies)
}

/// Those of these tasks that ended after little work, if most did; with the median of that work. Where each fork copies a
/// large process, work that takes no longer is little, and fewer are many.
fn small(
    facts: &Facts<'_>,
    started: &[TaskId],
    slow_fork: Option<Ns>,
) -> Option<(Vec<TaskId>, Ns)> {
    let count = started.len();
    let little = slow_fork.map_or(SMALL, |fork| fork.max(SMALL));
    let many = if slow_fork.is_some() { LOOP } else { MANY };
    if count < many {
        return None;
    }
    let tasks = started.iter().map(|id| (*id, facts.timeline.task(*id)));
    let ended = tasks.filter(|(_, task)| task.died);
    let mut worked: Vec<(Ns, TaskId)> =
        ended.map(|(id, thread)| (work(thread), id)).filter(|(ns, _)| *ns < little).collect();
    if worked.len() < many || worked.len() * 2 < count {
        return None;
    }
    worked.sort_unstable();
    let median = worked[worked.len() / 2].0;
    Some((worked.into_iter().map(|(_, id)| id).collect(), median))
}

/// Its time on a CPU before its end: a copy of a large process takes long to end, and at an end the kernel may also take
/// down what recording it needed.
fn work(task: &Task) -> Ns {
    task.on_cpu_between(Ns::ZERO, task.exit.unwrap_or(Ns::MAX))
}

/// What an entry of such a process is, if it comes with its threads.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Part {
    /// A call that starts one or waits for it, its end.
    Surely,
    /// A wait for one, or for a CPU, and the kernel's work around it.
    Likely,
    /// Page faults: some are of its stack.
    Perhaps,
}

fn part(facts: &Facts<'_>, entry: &Entry, of_large: bool) -> Option<Part> {
    let around = |name: &str| {
        starts_threads(name)
            || matches!(
                name,
                "futex"
                    | "set_robust_list"
                    | "rseq"
                    | "exit"
                    | "madvise"
                    | "mprotect"
                    | "munmap"
                    | "rt_sigprocmask"
            )
    };
    match entry.detail {
        Detail::Calls(id) => around(facts.call_groups.get(id).name).then_some(Part::Surely),
        Detail::Waits(WaitsFor::Futex | WaitsFor::Child, _) => Some(Part::Likely),
        Detail::Held(CpuHolder::Own(_) | CpuHolder::Nobody) => Some(Part::Likely),
        _ if entry.account == EXIT => Some(Part::Surely),
        _ if entry.account == KERNEL_OTHER => Some(Part::Likely),
        Detail::Faults if entry.account == PAGE_FAULTS => Some(Part::Perhaps),
        // Pages that are written after a fork are copied: these faults are among the first touches.
        Detail::Faults if of_large => Some(Part::Perhaps),
        _ => None,
    }
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    if facts.path.subject.service.is_some() {
        return None;
    }
    let (tasks, copies) = started(facts, process);
    let are_copies = copies.len() * 2 > tasks.len();
    let slow_fork = slow_fork(facts, process).filter(|_| are_copies);
    let (threads, work) = small(facts, &tasks, slow_fork)?;
    let word = if are_copies { "process" } else { "thread" };
    let sum = |wanted: &[Part]| -> Ns {
        let processes = std::iter::once(&process).chain(&copies);
        let entries = processes.flat_map(|process| found.wall.in_process(*process));
        let of_large = slow_fork.is_some();
        let wanted =
            entries.filter(|e| part(facts, e, of_large).is_some_and(|part| wanted.contains(&part)));
        wanted.map(|entry| entry.ns).sum()
    };
    let least = sum(&[Part::Surely]);
    let likely = least + sum(&[Part::Likely]);
    let most = likely + sum(&[Part::Perhaps]);
    if likely.share_of(net) < LARGE {
        return None;
    }
    let with_the_rest = |part| likely + (net - likely).part(likely.share_of(net) * part);
    let each = Ns(likely.0 / threads.len() as u64);
    let mut evidence = vec![format!("{} for each {word}, beside its work", time(each))];
    evidence.extend(slow_fork.map(|typical| {
        format!("each fork took {}: it copies the page tables of a large process", time(typical))
    }));
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: format!("a {word} started for each small task"),
        text: format!(
            "{} started {} that ended after {} on a CPU (median). Starting, waking and ending them took {} of \
             its {} ({}).",
            facts.name(process),
            things(threads.len() as u64, word),
            time(work),
            time(likely),
            time(net),
            percent(likely, net),
        ),
        amount: likely,
        saving: with_the_rest(AROUND),
        range: (least.min(likely.part(0.5)), with_the_rest(2.0 * AROUND).max(most)),
        how: How::Estimate,
        sites: sites(facts.symbols(), &births::sites_of(facts, &threads), threads.len() as u64),
        evidence,
        remedy: match slow_fork {
            Some(_) => FOR_LARGE.into(),
            None => remedy(&facts.processes.get(process).language).into(),
        },
    })
}

fn remedy(language: &str) -> &'static str {
    match language {
        "C++" => {
            "Start the threads once and give them tasks by a queue; or divide the whole work by the \
             number of CPUs (std::execution::par, OpenMP). std::async starts a thread per call."
        }
        "Rust" => {
            "rayon's par_iter or a scope with one thread per CPU, which takes tasks from a channel."
        }
        "Python" => "concurrent.futures.ThreadPoolExecutor, made once.",
        _ => {
            "Start the threads once and give them tasks by a queue; or give each thread a larger part."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use std::fmt::Write;

    /// A program that starts `count` threads, one after the other; each works for `work` ns.
    fn threads(count: u64, work: u64) -> String {
        let (mut main, mut others) = (String::new(), String::new());
        let each = 60_000 + work;
        for i in 0..count {
            let (at, tid) = (1_000 + i * each, 100 + i);
            writeln!(
                main,
                "{at} syscall clone3 from seal (s.c:85) <- main (s.c:99)\n{} fork {tid} thread\n{} back {tid}\n\
                 {} off blocked futex 1 0 9 0 : futex_wait_queue\n{} on woken-by {tid}\n{} back 0",
                at + 10_000,
                at + 20_000,
                at + 21_000,
                at + 40_000 + work,
                at + 41_000 + work,
            )
            .unwrap();
            writeln!(
                others,
                "task {tid} app\n{} cpu1 on\n{} exit\n{} off dead",
                at + 25_000,
                at + 25_000 + work,
                at + 39_000 + work
            )
            .unwrap();
        }
        let end = 2_000 + count * each;
        format!(
            "cpus 2\ntask 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n{main}{end} exit\n{} off dead\n{others}",
            end + 100
        )
    }

    #[test]
    fn a_thread_per_task_is_found_where_it_is_started() {
        let said = found(&threads(100, 5_000));
        assert!(said.starts_with("thread-churn"), "{said}");
        assert!(said.contains("@ seal:85: app started 100 threads"), "{said}");
    }

    /// A program that makes 20 copies of itself, each of which works for this long; each fork takes `fork` ns.
    fn copies(fork: u64, work: u64) -> String {
        let (mut main, mut others) = (String::new(), String::new());
        for i in 0..20 {
            let (at, tid) = (1_000 + i * (fork + work + 600_000), 100 + i);
            let [forked, ended] = [at + fork, at + fork + work + 500_000];
            writeln!(
                main,
                "{at} syscall clone 0x1200011 from isolated (s.cpp:20) <- main (s.cpp:31)\n{} fork {tid}\n{forked} back {tid}\n\
                 {} off blocked wait4 {tid} : do_wait from isolated (s.cpp:23) <- main (s.cpp:31)\n{ended} cpu0 on woken-by {tid}",
                forked - 100,
                forked + 100
            )
            .unwrap();
            writeln!(
                others,
                "task {tid} app\n{} cpu1 on\n{} exit\n{} timer\n{} timer-end\n{} off dead",
                forked + 50,
                forked + 50 + work,
                ended - 80,
                ended - 70,
                ended - 50
            )
            .unwrap();
        }
        let end = 2_000 + 20 * (fork + work + 600_000);
        format!(
            "cpus 2\ntask 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n{main}{end} exit\n{} off dead\n{others}",
            end + 100
        )
    }

    #[test]
    fn copies_of_a_large_process_for_small_work_are_found_and_for_much_work_are_refused() {
        let said = found(&copies(3_000_000, 800_000));
        assert!(said.starts_with("thread-churn"), "{said}");
        let ended = "@ isolated:20: app started 20 processes that ended after 800 µs on a CPU";
        assert!(said.contains(ended), "{said}");
        assert!(!found(&copies(3_000_000, 8_000_000)).contains("thread-churn"));
        assert!(!found(&copies(100_000, 50_000)).contains("thread-churn"));
    }

    #[test]
    fn few_threads_and_threads_with_much_work_are_refused() {
        assert!(!found(&threads(20, 5_000)).contains("thread-churn"));
        assert!(!found(&threads(100, 5_000_000)).contains("thread-churn"));
    }
}
