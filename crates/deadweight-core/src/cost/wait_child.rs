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
//! calls that start and reap them. Where this is most of the children's time, a library may save their own work, too, and
//! what the parent does until they are reaped. The ledger shows that time by what the children did.
//!
//! # What it is mistaken for
//! A shell, `make` or `cargo`: starting programs is their work. One child that does the actual
//! work: then weigh that child (`--of`). Children that work long after their main, in system calls,
//! page faults or waits for the disk: that is their own work. A driver that starts different
//! programs, one for each step, or one program with different arguments: such children differ in length.
//!
//! # What to do
//! Do the work inside the process, with a library. Or start one child and give it all items. The
//! children's real work remains. Where each fork takes a millisecond or more, a large process is copied: use posix_spawn.
//!
//! # Seen in
//! `popen("cksum FILE")` per file.
//! In `tests/programs`: `children.py`.

use super::{Claim, Class, Inspection};
use crate::account::{Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, is_runtime, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::inspect::births::slow_fork;
use crate::inspect::started::{Started, with_wrapped};
use crate::inspect::starting_time::{
    STARTING, StartingTime, around, is_call_for_children, meanwhile, of_wrappers, with_below,
};
use crate::timeline::WokenBy;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::How;
use deadweight_report::wording::{things, time as time_words};
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "wait-child",
    source: include_str!("wait_child.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Of programs that are started for items of the same kind, one of the longer ones takes at most so many times as long as one of the shorter ones.
const EQUAL: u64 = 3;

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    let What::Wait(block) = slice.what else { return false };
    let waits_for = facts.timeline.blocks[block as usize].waits_for;
    matches!(waits_for, WaitsFor::Child | WaitsFor::Vfork)
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let processes = &found.facts.processes;
    let is_program = |id: &ProcessId| processes.get(*id).own && !processes.get(*id).is_launcher();
    processes.ids().filter(is_program).filter_map(|parent| draft(found, parent)).collect()
}

/// None without a loop: different programs, a few times each, are the steps of a driver.
fn draft(found: &Inspection<'_, '_>, parent: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let started = Started::of(facts, parent);
    let mut loops = started.loops(facts);
    loops.retain(|programs| is_loop(found, programs));
    let mut programs = loops.concat();
    programs.sort_unstable();
    if programs.is_empty() {
        return None;
    }
    let meanwhile = meanwhile(found, parent, &started);
    let time = StartingTime::of(found, parent, (&started, &meanwhile), &programs);
    let wrappers = of_wrappers(found, &programs);
    let (saving, range) = time.saving(wrappers);
    let count = u64::try_from(programs.len()).unwrap_or(u64::MAX);
    let slow_fork = slow_fork(facts, parent);
    let name = facts.name(parent);
    let (around, all) = (time_words(time.around), time_words(time.all));
    let mut evidence = vec![match time.unseen {
        true => format!(
            "at least {around} of {all} is starting and ending them: when their own code began was not seen"
        ),
        false => format!(
            "{around} of {all} is starting, linking and ending them; the rest is their own work, and what {name} does meanwhile"
        ),
    }];
    evidence.extend(slow_fork.map(|typical| {
        format!(
            "each fork took {}: it copies the page tables of a large process",
            time_words(typical)
        )
    }));
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process: parent,
        title: format!("starts a program {}", things(count, "time")),
        text: format!(
            "{name} started {} and waited for them: {}. Each took {} on average.",
            things(count, "program"),
            listed(facts, &loops),
            time_words(Ns(time.all.0 / count.max(1))),
        ),
        amount: saving,
        saving,
        range,
        how: if range.0 < range.1 { How::Estimate } else { How::Exact },
        sites: sites(facts.symbols(), &waits(facts, parent, &with_wrapped(facts, &programs)), 0),
        evidence,
        remedy: match slow_fork {
            Some(_) => format!("{FOR_LARGE} {}", remedy(&facts.processes.get(parent).language)),
            None => remedy(&facts.processes.get(parent).language).into(),
        },
    })
}

/// The most frequent programs. One that was started by several paths is listed once.
fn listed(facts: &Facts<'_>, loops: &[Vec<ProcessId>]) -> String {
    let mut named: Vec<(String, usize)> = Vec::new();
    for ids in loops {
        let name = facts.name(ids[0]);
        match named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += ids.len(),
            None => named.push((name, ids.len())),
        }
    }
    named.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<_> =
        named.iter().take(4).map(|(name, count)| format!("{name} ×{count}")).collect();
    words.join(", ")
}

/// Whether these are runs of one program for items of the same kind: they spend much of their time starting and ending, or
/// take equally long. The steps of a driver may be one program with different arguments.
fn is_loop(found: &Inspection<'_, '_>, programs: &[ProcessId]) -> bool {
    let mut each: Vec<Ns> = programs.iter().map(|id| with_below(found, &[*id])).collect();
    each.sort_unstable();
    let quarter = each.len() / 4;
    let equal = each[each.len() - 1 - quarter].0 <= EQUAL * each[quarter].0;
    equal || around(found, programs).share_of(each.iter().copied().sum()) >= STARTING
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
    // Go's threads wait for children in its scheduler: that is no line of the program.
    let runtime = |site: &CallSite| is_runtime(facts.symbols(), *site);
    if !weights.keys().all(runtime) {
        weights.retain(|site, _| !runtime(site));
    }
    weights
}

/// What to do about it.
const FOR_LARGE: &str = "Start programs with posix_spawn, or vfork and exec, or from a small helper process: only fork copies \
    the page tables, and the parent then faults on each page that it writes.";

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
            wait-child 80 % (70..84) @ item_sum:55: manifest started 20 programs and waited for them: cksum ×20. Each took 810 ns on average.
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
            wait-child 19 % (19..19) @ item_sum:55: manifest started 20 programs and waited for them: dd ×20. Each took 810 ns on average.
        "#]]
        .assert_eq(&found(&readers(1000)));
        assert_eq!(found(&readers(100_000)), "");
    }

    #[test]
    fn where_main_is_not_seen_all_of_a_short_program_may_be_linking_and_is_found() {
        let child = |_, at| {
            format!("exec /bin/true\n{} syscall mmap 0 4096\n{} back 0", at + 300, at + 700)
        };
        let without = parent_of("manifest", 20, 1000, child);
        let stops = weighed(&format!("rung stops\n{without}"));
        let finding = stops.findings.iter().find(|f| f.class == "wait-child").unwrap();
        assert!(finding.high > 0.75, "{finding:?}");
        assert!(
            finding.evidence[0].ends_with("when their own code began was not seen"),
            "{finding:?}"
        );
        // Near: it was seen, and what is left is the programs' own work.
        let seen = weighed(&format!("rung stops\n{}", readers(1000)));
        let finding = seen.findings.iter().find(|f| f.class == "wait-child").unwrap();
        assert!(finding.high < 0.3, "{finding:?}");
    }

    #[test]
    fn different_steps_of_a_driver_are_refused() {
        let step = |i: u32, at: u64| format!("exec /bin/step{}\n{} main", i / 2, at + 700);
        assert_eq!(found(&parent_of("driver", 8, 1000, step)), "");
        assert_eq!(found(&parent("driver", 6)), "", "a handful is no loop");
    }

    /// A driver that starts one program for twelve steps; each of the last ones takes so much longer.
    fn driver(longer: u64) -> String {
        let mut text = String::from("task 1 git\n0 exec /bin/git\n0 on\n0 main\n");
        let (mut children, mut at) = (String::new(), 0);
        for i in 0..12_u64 {
            let (tid, end) = (10 + i, at + if i < 6 { 100_000 } else { 100_000 * longer });
            writeln!(
                text,
                "{at} fork {tid}\n{} off blocked wait4 {tid} : do_wait\n{end} on woken-by {tid}",
                at + 10
            )
            .unwrap();
            writeln!(
                children,
                "task {tid} git\n{} on\n{} exec /bin/git\n{} fault 0x1000\n{} fault-end\n{} main\n{} exit\n{} off dead",
                at + 20,
                at + 100,
                at + 7000,
                at + 7900,
                at + 8000,
                end - 100,
                end + 5
            )
            .unwrap();
            at = end + 50;
        }
        format!("{text}{at} exit\n{at} off dead\n{children}")
    }

    #[test]
    fn equal_children_that_work_are_found_and_steps_with_one_program_are_refused() {
        expect![[r#"
            wait-child 8 % (8..8) @ nowhere: git started 12 programs and waited for them: git ×12. Each took 100 µs on average.
        "#]].assert_eq(&found(&driver(1)));
        assert_eq!(found(&driver(10)), "");
    }

    /// On one CPU, each child has it for 700 ns before its parent goes on, and this task for another 700.
    fn held(other: u64) -> String {
        let mut main = String::from("cpus 1\ntask 1 jobs\n0 exec /bin/jobs\n0 cpu0 on\n0 main\n");
        let (mut children, mut others) = (String::new(), format!("task {other} other\n"));
        for i in 0..20 {
            let (tid, at) = (10 + i, i * 2000);
            let [waits, runs, ends, again] = [150, 850, 1550, 1600].map(|more| at + more);
            main += &format!("{} fork {tid}\n{waits} off preempted\n{ends} cpu0 on\n", at + 100);
            main += &format!("{} syscall wait4 {tid}\n{again} back {tid}\n", ends + 10);
            children += &format!("task {tid} true\n{waits} cpu0 on\n{} exec /bin/true\n", at + 200);
            children += &format!("{} main\n{} exit\n{runs} off dead\n", at + 750, at + 760);
            others += &format!("{runs} cpu0 on\n{ends} off preempted\n");
        }
        format!("{main}40000 exit\n40000 off dead\n{children}{others}")
    }

    #[test]
    fn waits_for_the_cpu_of_children_are_found_and_for_that_of_others_are_refused() {
        expect![[r#"
            wait-child 57 % (57..58) @ nowhere: jobs started 20 programs and waited for them: true ×20. Each took 750 ns on average.
        "#]].assert_eq(&found(&held(900)));
    }

    #[test]
    fn a_program_that_is_started_by_two_paths_is_listed_once() {
        let child = |i: u32, at| {
            let folder = if i % 5 < 3 { "/bin" } else { "/usr/bin" };
            format!("exec {folder}/cksum\n{} main", at + 700)
        };
        let text = found(&parent_of("manifest", 40, 1000, child));
        assert!(text.contains("started 40 programs and waited for them: cksum ×40."), "{text}");
    }

    #[test]
    fn the_numbers_of_a_finding_agree() {
        let report = weighed(&parent("manifest", 20));
        let finding = report.findings.iter().find(|f| f.class == "wait-child").unwrap();
        expect![[r#"
            manifest started 20 programs and waited for them: cksum ×20. Each took 810 ns on average.
            15.6 µs of 16.2 µs is starting, linking and ending them; the rest is their own work, and what manifest does meanwhile"#]].assert_eq(&format!("{}\n{}", finding.text, finding.evidence[0]));
    }
}
