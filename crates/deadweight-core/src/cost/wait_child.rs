//! Waiting for child processes.
//!
//! # What it is
//! The program starts another program for each item of its work and waits for it. Each start costs
//! a fork, an exec, dynamic linking, page faults and a teardown: usually far more than the work for
//! which the program was started.
//!
//! # How deadweight knows
//! The trace has every fork, exec and exit. While the parent waits, the critical path goes through
//! the children. So the finding adds up their time from fork to main and in their exit, and the
//! calls that start and reap them. The ledger shows that time by what the children did.
//!
//! # What it is mistaken for
//! A shell, `make` or `cargo`: starting programs is their work. One child that does the actual
//! work: then weigh that child (`--of`). Children that work long after their main, in system calls,
//! page faults or waits for the disk: that is their own work. A driver that starts different
//! programs, one for each step.
//!
//! # What to do
//! Do the work inside the process, with a library. Or start one child and give it all items. The
//! children's real work remains. Where each fork takes a millisecond or more, a large process is copied: use posix_spawn.
//!
//! # Seen in
//! `popen("cksum FILE")` per file.
//! In `tests/programs`: `children.py`.

use super::{AccountId, Claim, Class, EXIT, Inspection, OBSERVER};
use crate::account::{Detail, Entry, Slice, What};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::{CallSite, Weights, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::inspect::closed_before_exec::Closing;
use crate::timeline::WokenBy;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::How;
use deadweight_report::wording::{things, time};
use deadweight_trace::units::Ns;
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub(super) const CLASS: Class = Class {
    id: "wait-child",
    source: include_str!("wait_child.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Fewer children than this are not a loop over items.
const ITEMS: usize = 5;
/// A copy of a process, and copies of that: a shell makes one for `$(...)`, and one for each part of a
/// pipeline in it.
const COPIES: u32 = 3;

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    let What::Wait(block) = slice.what else { return false };
    let waits_for = facts.timeline.blocks[block as usize].waits_for;
    matches!(waits_for, WaitsFor::Child | WaitsFor::Vfork)
}

/// Calls that start or reap a child.
pub(super) fn is_call_for_children(name: &str) -> bool {
    matches!(
        name,
        "clone"
            | "clone3"
            | "fork"
            | "vfork"
            | "wait4"
            | "waitid"
            | "pipe"
            | "pipe2"
            | "execve"
            | "pidfd_open"
    )
}

/// The programs that a process started.
#[derive(Debug, Default)]
pub(super) struct Started {
    /// In order of birth.
    pub(super) programs: Vec<ProcessId>,
    /// Copies of the process that started some of them: a shell makes one for `$(...)` and for a pipeline.
    pub(super) copies: Vec<ProcessId>,
}

/// The programs that a process started, itself or through copies of itself. A copy that starts `many` has a
/// loop of its own: they count there.
pub(super) fn started(facts: &Facts<'_>, parent: ProcessId, many: usize) -> Started {
    through_copies(facts, parent, many, COPIES)
}

fn through_copies(facts: &Facts<'_>, parent: ProcessId, many: usize, depth: u32) -> Started {
    let mut found = Started::default();
    for id in &facts.processes.get(parent).children {
        let child = facts.processes.get(*id);
        if child.own && child.executed() {
            found.programs.push(*id);
        } else if child.own && depth > 0 {
            let of_copy = through_copies(facts, *id, many, depth - 1);
            if !of_copy.programs.is_empty() && of_copy.programs.len() < many {
                found.programs.extend(of_copy.programs);
                found.copies.push(*id);
                found.copies.extend(of_copy.copies);
            }
        }
    }
    found
}

impl Started {
    /// The programs by their path, the most frequent first.
    pub(super) fn by_path<'f>(&self, facts: &'f Facts<'_>) -> Vec<(&'f str, Vec<ProcessId>)> {
        let mut found: BTreeMap<&str, Vec<ProcessId>> = BTreeMap::new();
        for id in &self.programs {
            found.entry(&facts.processes.get(*id).path).or_default().push(*id);
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(_, ids)| Reverse(ids.len()));
        found
    }
}

/// These programs and what they stand for: the one program that `sh -c`, `env` or `nice` was started for.
/// What a program starts otherwise is that program's affair. In order, each once.
pub(super) fn with_wrapped(facts: &Facts<'_>, programs: &[ProcessId]) -> Vec<ProcessId> {
    let mut found = programs.to_vec();
    let mut next = 0;
    while let Some(id) = found.get(next).copied() {
        next += 1;
        if facts.processes.get(id).is_launcher()
            && let [wrapped] = started(facts, id, ITEMS).programs[..]
        {
            found.push(wrapped);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Entries of the wall time in the calls by which these processes start and reap others, and in waits for them.
pub(super) fn starting<'a>(
    found: &Inspection<'a, '_>,
    processes: impl Iterator<Item = ProcessId>,
) -> impl Iterator<Item = &'a Entry> {
    let (facts, wall) = (found.facts, found.wall);
    processes.flat_map(move |id| wall.in_process(id)).filter(move |e| is_starting(facts, e))
}

fn is_starting(facts: &Facts<'_>, e: &Entry) -> bool {
    let of_children = match e.detail {
        Detail::Calls(group) => is_call_for_children(facts.call_groups.get(group).name),
        _ => e.account == AccountId::of_class(CLASS.id),
    };
    of_children && is_own(e)
}

pub(super) fn is_own(e: &Entry) -> bool {
    e.account != OBSERVER && !e.is_disturbance()
}

/// Time of these programs that is not their own work: before main, in the exit, and for what they wrap.
pub(super) fn around_work(found: &Inspection<'_, '_>, programs: &[ProcessId]) -> Ns {
    let start_up = AccountId::of_class("start-up");
    programs
        .iter()
        .flat_map(|id| found.wall.in_process(*id))
        .filter(|e| [start_up, EXIT].contains(&e.account) || is_starting(found.facts, e))
        .filter(|e| is_own(e))
        .map(|e| e.ns)
        .sum()
}

/// From this part on, programs do next to nothing beside starting and ending.
const MOSTLY: f64 = 0.5;

/// The programs' own work, where it is less than what is around it: a function, or a line of the script, may do the same in
/// no time.
pub(super) fn own_work(around: Ns, all: Ns) -> Option<Ns> {
    (around.share_of(all) >= MOSTLY).then(|| all - around)
}

/// What the shells among these do themselves, for the one program each was started for: where the program is
/// no longer started, that may go, too.
fn of_wrappers(found: &Inspection<'_, '_>, programs: &[ProcessId]) -> Ns {
    let facts = found.facts;
    let wraps = |id: &&ProcessId| {
        let wrapped = |child: &ProcessId| programs.binary_search(child).is_ok();
        facts.processes.get(**id).children.iter().any(wrapped)
    };
    let wrappers: Vec<ProcessId> = programs.iter().filter(wraps).copied().collect();
    let entries = wrappers.iter().flat_map(|id| found.wall.in_process(*id));
    let all: Ns = entries.filter(|e| is_own(e)).map(|e| e.ns).sum();
    all - around_work(found, &wrappers)
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let facts = found.facts;
    facts
        .processes
        .ids()
        .filter(|id| facts.processes.get(*id).own && !facts.processes.get(*id).is_launcher())
        .filter_map(|parent| {
            let started = started(facts, parent, ITEMS);
            (started.programs.len() >= ITEMS).then(|| draft(found, parent, &started)).flatten()
        })
        .collect()
}

/// None without a loop: different programs, a few times each, are the steps of a driver.
fn draft(found: &Inspection<'_, '_>, parent: ProcessId, started: &Started) -> Option<Draft> {
    let facts = found.facts;
    let by_path = started.by_path(facts);
    by_path.first().filter(|(_, ids)| ids.len() >= ITEMS)?;
    let below = with_wrapped(facts, &started.programs);
    let starters = || [parent].into_iter().chain(started.copies.iter().copied());
    let outside: Ns = starting(found, starters()).map(|e| e.ns).sum();
    let inside = below.iter().flat_map(|id| found.wall.in_process(*id)).filter(|e| is_own(e));
    let inside: Ns = inside.map(|e| e.ns).sum();
    let closing = Closing::of(found, &started.programs);
    let around = outside + around_work(found, &below) - (closing.ns + closing.around);
    let all = outside + inside;
    let more = own_work(around, all).unwrap_or_else(|| of_wrappers(found, &below));
    let listed: Vec<String> = by_path
        .iter()
        .take(4)
        .map(|(_, ids)| format!("{} ×{}", facts.name(ids[0]), ids.len()))
        .collect();
    let count = u64::try_from(started.programs.len()).unwrap_or(u64::MAX);
    let life = |id: &ProcessId| facts.processes.get(*id).end - facts.processes.get(*id).birth;
    let lives: Ns = started.programs.iter().map(life).sum();
    let slow_fork = slow_fork(facts, parent);
    let mut evidence = vec![format!(
        "{} of {} is starting, linking and ending them; the rest is their own work",
        time(around),
        time(all)
    )];
    evidence.extend(slow_fork.map(|typical| {
        format!("each fork took {}: it copies the page tables of a large process", time(typical))
    }));
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process: parent,
        title: format!("starts a program {}", things(count, "time")),
        text: format!(
            "{} started {} and waited for them: {}. Each ran for {} on average.",
            facts.name(parent),
            things(count, "program"),
            listed.join(", "),
            time(Ns(lives.0 / count.max(1))),
        ),
        amount: around,
        saving: around,
        range: (around, around + more),
        how: if more > Ns::ZERO { How::Estimate } else { How::Exact },
        sites: sites(facts.symbols(), &waits(facts, parent, &below), 0),
        evidence,
        remedy: match slow_fork {
            Some(_) => format!("{FOR_LARGE} {}", remedy(&facts.processes.get(parent).language)),
            None => remedy(&facts.processes.get(parent).language).into(),
        },
    })
}

/// Where the parent waited for its children or started them.
fn waits(facts: &Facts<'_>, parent: ProcessId, below: &[ProcessId]) -> Weights {
    let mut weights = Weights::new();
    for block in facts.waits_of(parent) {
        let WokenBy::Task(waker) = block.woken_by else { continue };
        if below.binary_search(&facts.processes.of(waker)).is_ok() {
            let weight = weights.entry(CallSite::Stack(facts.site_of(block))).or_default();
            weight.count += 1;
            weight.amount += (block.end - block.start).0;
        }
    }
    for (_, group) in facts.call_groups.of_process(parent) {
        if is_call_for_children(group.name) {
            for (site, calls) in &group.sites {
                weights.entry(CallSite::Stack(*site)).or_default().amount += calls;
            }
        }
    }
    weights.remove(&CallSite::default());
    weights
}

/// A fork that takes longer copies many page tables: 1 GiB has 2 MiB of them, which takes some milliseconds.
const SLOW_FORK: Ns = Ns(1_000_000);
/// What to do about it.
const FOR_LARGE: &str = "Start programs with posix_spawn, or vfork and exec, or from a small helper process: only fork copies \
    the page tables, and the parent then faults on each page that it writes.";

/// How long the forks of a process took on average, if long. `vfork`, threads and `posix_spawn` share its memory.
fn slow_fork(facts: &Facts<'_>, parent: ProcessId) -> Option<Ns> {
    const SHARES_MEMORY: u64 = 0x100;
    let copies = |group: &CallGroup| match group.name {
        "fork" => true,
        "clone" => group.questions.iter().all(|args| args[0] & SHARES_MEMORY == 0),
        _ => false,
    };
    let groups = facts.call_groups.of_process(parent).map(|(_, group)| group);
    let (calls, busy) = groups
        .filter(|group| copies(group))
        .fold((0, Ns::ZERO), |(calls, busy), group| (calls + group.calls, busy + group.busy));
    let typical = Ns(busy.0 / calls.max(1));
    (calls >= ITEMS as u64 && typical >= SLOW_FORK).then_some(typical)
}

fn remedy(language: &str) -> &'static str {
    match language {
        "C" | "C++" => {
            "Call a library function instead of popen or system; or start one child for all items \
             and write them to its standard input."
        }
        "Rust" => {
            "Use a crate that does the work instead of std::process::Command per item; or spawn \
             one child and write all items to its stdin."
        }
        "Go" => {
            "Use a package instead of exec.Command per item; or start one command and write all \
             items to its StdinPipe."
        }
        "Python" => {
            "Use a module instead of a subprocess per item, or one subprocess that takes all items."
        }
        _ => "Do the work in the process, or start one child and give it all items.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, weighed};
    use expect_test::expect;
    use std::fmt::Write;

    /// A parent that starts `count` programs one after the other and waits for each.
    fn parent(name: &str, count: u32) -> String {
        parent_of(name, count, 1000, |_, at| format!("exec /bin/cksum\n{} main", at + 700))
    }

    /// As [`parent`], one child `every` so many ns: its lines from its exec at 200 to its exit.
    fn parent_of(name: &str, count: u32, every: u64, child: impl Fn(u32, u64) -> String) -> String {
        let mut main = format!("task 1 {name}\n0 exec /bin/{name}\n0 on\n0 main\n");
        let mut children = String::new();
        for i in 0..count {
            let (tid, at) = (10 + i, u64::from(i) * every);
            writeln!(
                main,
                "{} fork {tid}
                 {} off blocked wait4 {tid} : do_wait from pclose <- item_sum (manifest.c:55) <- main
                 {} on woken-by {tid}",
                at + 100, at + 110, at + every - 100
            )
            .unwrap();
            writeln!(
                children,
                "task {tid} cksum
                 {} on\n{} {}\n{} exit\n{} off dead",
                at + 120,
                at + 200,
                child(i, at),
                at + every - 200,
                at + every - 90
            )
            .unwrap();
        }
        let end = u64::from(count) * every;
        format!("{main}{end} exit\n{end} off dead\n{children}")
    }

    #[test]
    fn a_program_per_item_is_found_in_its_parent() {
        expect![[r#"
            wait-child 78 % (78..79) @ item_sum:55: manifest started 20 programs and waited for them: cksum ×20. Each ran for 810 ns on average.
        "#]].assert_eq(&found(&parent("manifest", 20)));
    }

    #[test]
    fn a_shell_and_a_single_child_are_refused() {
        assert!(!found(&parent("sh", 20)).contains("wait-child"));
        assert_eq!(found(&parent("manifest", 1)), "");
    }

    /// A parent whose forks take `ns` each, with these flags.
    fn forks(ns: u64, flags: u64) -> String {
        let mut main =
            String::from("cpus 2\ntask 1 broker\n0 exec /bin/broker\n0 cpu0 on\n0 main\n");
        let mut children = String::new();
        for i in 0..20 {
            let (tid, at) = (10 + i, i * 6_000_000);
            let [forked, ended] = [at + 1000 + ns, at + 5_000_000];
            writeln!(
                main,
                "{at} syscall clone {flags} from start (b.c:32) <- main\n{} fork {tid}\n{forked} back {tid}\n\
                 {} off blocked wait4 {tid} : do_wait from main (b.c:48)\n{ended} cpu0 on woken-by {tid}",
                at + 900,
                forked + 100
            )
            .unwrap();
            writeln!(
                children,
                "task {tid} test\n{} cpu1 on\n{} exec /bin/test\n{} main\n{} exit\n{} off dead",
                at + 950,
                at + 1000,
                at + 2_000_000,
                ended - 100,
                ended - 50
            )
            .unwrap();
        }
        format!("{main}120000000 exit\n120000000 off dead\n{children}")
    }

    #[test]
    fn slow_forks_are_found_and_quick_ones_and_those_that_share_memory_are_refused() {
        let says = |text: &str| {
            let report = weighed(text);
            let found = report.findings.iter().find(|f| f.class == "wait-child").unwrap();
            found.evidence.iter().any(|line| line.contains("page tables"))
                && found.remedy.contains("posix_spawn")
        };
        assert!(says(&forks(2_000_000, 0x0120_0011)));
        assert!(!says(&forks(100_000, 0x0120_0011)));
        assert!(!says(&forks(2_000_000, 0x4111)), "CLONE_VM and CLONE_VFORK");
    }

    /// Children that read for all of their life after main.
    fn readers(every: u64) -> String {
        parent_of("manifest", 20, every, |_, at| {
            format!(
                "comm dd\n{} exec /bin/dd\n{} main\n{} syscall read 0 1 4096\n{} back 4096",
                at + 200,
                at + 205,
                at + 210,
                at + every - 205
            )
        })
    }

    #[test]
    fn the_starts_of_children_that_work_in_system_calls_are_found_and_their_work_is_refused() {
        expect![[r#"
            wait-child 19 % (19..19) @ item_sum:55: manifest started 20 programs and waited for them: dd ×20. Each ran for 810 ns on average.
        "#]]
        .assert_eq(&found(&readers(1000)));
        assert_eq!(found(&readers(100_000)), "");
    }

    #[test]
    fn different_steps_of_a_driver_are_refused() {
        let step = |i: u32, at: u64| format!("exec /bin/step{}\n{} main", i / 2, at + 700);
        assert_eq!(found(&parent_of("driver", 8, 1000, step)), "");
    }
}
