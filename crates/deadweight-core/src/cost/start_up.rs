//! Start-up.
//!
//! # What it is
//! The time before a program's own code begins: exec, dynamic linking, and the runtime's
//! initialisation. It matters most when a script starts a program for each line.
//!
//! # How deadweight knows
//! The trace records the exec, and a probe marks the arrival at main. Everything between the two is
//! start-up, with its page faults and system calls. The time is exact. A loop costs at least that, the exits, and the calls
//! that start and reap. Where this is most of the programs' time, it costs at most all of it, with the copies of the shell
//! between (`$(...)`, pipelines), and with what the launcher does until each program is reaped. The program's own
//! initialisers run before main too (Go's package variables, C++'s static objects): they are its own
//! work, and the samples of their stacks name them. Calls of `close` for all numbers of descriptors
//! between fork and exec, nearly all of which fail, are a finding of their own.
//!
//! # What it is mistaken for
//! A compiled program that starts a child for each item: this is *wait-child*, and the remedy is in
//! that program. Waiting until the disk has read a program's file is *wait-disk*. Different programs,
//! a few times each: no loop. What another launcher (`xargs`) starts in a loop counts there.
//!
//! # What to do
//! In a shell: what it does itself (`${x##*/}`, `$((a + b))`), or one process that reads all lines. With find: `-exec ... {} +`.
//! With xargs: more items per call. For one short program: initialise on first use, link fewer libraries, or link statically.
//!
//! # Seen in
//! A shell loop that calls a unit converter for each of 300 lines.
//! In `tests/programs`: `static_hello.c`.

mod closing;
mod initialisers;
mod launchers;

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Slice, What};
use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::inspect::started::Started;
use crate::inspect::starting_time::{StartingTime, meanwhile, of_wrappers};
use crate::inspect::{Draft, Sum};
use deadweight_report::report::How;
use deadweight_report::wording::{things, time};
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "start-up",
    source: include_str!("start_up.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// The start-up of a single program is reported from this part of the wall time ...
const LARGE: f64 = 0.2;
/// ... and from this length. Every program takes less than that to start, and this matters only in
/// a loop.
const LONG: Ns = Ns(3_000_000);

fn claim(_: &Facts<'_>, slice: &Slice) -> bool {
    match slice.what {
        What::Starting => true,
        What::User | What::Call(..) | What::Fault(_) => slice.starting,
        _ => false,
    }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let facts = found.facts;
    let mut drafts: Vec<Draft> = facts
        .processes
        .ids()
        .filter(|id| facts.processes.get(*id).own && facts.processes.get(*id).is_launcher())
        .flat_map(|parent| of_loops(found, parent))
        .collect();
    if drafts.is_empty() {
        drafts.extend(initialisers::drafts(found));
    }
    if drafts.is_empty() {
        drafts.extend(of_one(found));
    }
    let own = facts.processes.ids().filter(|id| facts.processes.get(*id).own);
    drafts.extend(own.filter_map(|parent| closing::draft(found, parent)));
    drafts
}

/// The programs that a script starts again and again: one finding for each.
fn of_loops(found: &Inspection<'_, '_>, parent: ProcessId) -> Vec<Draft> {
    let started = Started::of(found.facts, parent);
    let loops = started.loops(found.facts);
    if loops.is_empty() {
        return Vec::new();
    }
    let meanwhile = meanwhile(found, parent, &started);
    let drafts = loops.into_iter().filter_map(|programs| {
        let time = StartingTime::of(found, parent, (&started, &meanwhile), &programs);
        (time.starts_mostly).then(|| of_many(found, parent, &programs, &time))
    });
    drafts.collect()
}

/// A script that starts a program per line.
fn of_many(
    found: &Inspection<'_, '_>,
    parent: ProcessId,
    programs: &[ProcessId],
    time: &StartingTime,
) -> Draft {
    let facts = found.facts;
    let count = u64::try_from(programs.len()).unwrap_or(u64::MAX);
    let name = programs.first().map_or(String::new(), |id| facts.name(*id));
    let (likely, (least, most)) = time.saving(of_wrappers(found, programs));
    let one = Ns(time.around.0 / count.max(1));
    let launcher = facts.name(parent);
    let counted = if time.unseen {
        format!(
            "When its own code began was not seen. This costs at least its starts up to exec, and its exits; at most also \
             its linking and its own work, and what {launcher} does meanwhile."
        )
    } else if time.mostly {
        format!(
            "This costs at least its starts, from fork to main, and its exits; at most also its own work, and what \
             {launcher} does meanwhile."
        )
    } else {
        "Its starts are counted, from fork to main, and its exits, not its own work.".into()
    };
    Draft {
        class: CLASS.id,
        moves: false,
        process: parent,
        title: format!("starts {name} {}", things(count, "time")),
        text: format!("{launcher} started {name} {}. {counted}", things(count, "time")),
        amount: likely,
        saving: likely - one,
        range: (least - one, most - one),
        how: if least < most { How::Estimate } else { How::Exact },
        sites: launchers::site(facts, parent, count).into_iter().collect(),
        evidence: Vec::new(),
        remedy: launchers::remedy(facts.processes.get(parent), &name),
    }
}

/// The subject's own start-up, where it is a large part of a short run.
fn of_one(found: &Inspection<'_, '_>) -> Option<Draft> {
    let facts = found.facts;
    let process = facts.subject();
    let account = AccountId::of_class(CLASS.id);
    let sum = Sum::of(found.wall.of_process(account, process));
    if sum.ns < LONG || sum.ns.share_of(found.wall.net()) < LARGE {
        return None;
    }
    // The kernel's exec remains; static linking saves about half of the rest.
    let linking = found
        .wall
        .of_process(account, process)
        .filter(|e| e.detail != Detail::Plain)
        .map(|e| e.ns)
        .sum::<Ns>();
    let name = facts.name(process);
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "starting takes much of a short run".into(),
        text: format!("{name} took {} before its own code began.", time(sum.ns)),
        amount: sum.ns,
        saving: Ns(linking.0 / 2),
        range: (Ns::ZERO, linking),
        how: How::Candidate,
        sites: Vec::new(),
        evidence: vec![format!(
            "{} of it in the system calls and page faults that load and link the program",
            time(linking)
        )],
        // Go and Zig link statically by default.
        remedy: match facts.processes.get(process).language.as_str() {
            "Go" | "Zig" => "Initialise on first use, or start once for many items.",
            _ => {
                "Link statically or against fewer libraries, initialise on first use, or start once \
                 for many items."
            }
        }
        .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, rows, weighed};
    use expect_test::expect;
    use std::fmt::Write;

    fn script(count: u32) -> String {
        script_of(count, "700 main", 800)
    }

    /// Each program does `begins`, and begins to exit so long after the script's turn to it.
    fn script_of(count: u32, begins: &str, exit_after: u64) -> String {
        let mut main = String::from("task 1 sh\n0 exec /bin/sh\n0 on\n0 main\n");
        let mut children = String::new();
        for i in 0..count {
            let (tid, at) = (10 + i, u64::from(i) * 1000);
            writeln!(
                main,
                "{} fork {tid}\n{} off blocked wait4 : do_wait\n{} on woken-by {tid}",
                at + 100,
                at + 110,
                at + 900
            )
            .unwrap();
            let at_begin = begins.lines().filter_map(|line| line.split_once(' '));
            let at_begin: Vec<String> = at_begin
                .map(|(after, what)| format!("{} {what}", at + after.parse::<u64>().unwrap()))
                .collect();
            let at_begin = at_begin.join("\n");
            writeln!(
                children,
                "task {tid} convert
                 {} on\n{} exec ./convert\n{at_begin}\n{} exit\n{} off dead",
                at + 120,
                at + 200,
                at + exit_after,
                at + 910
            )
            .unwrap();
        }
        let end = u64::from(count) * 1000;
        format!("{main}{end} exit\n{end} off dead\n{children}")
    }

    #[test]
    fn a_program_per_line_of_a_script_is_found() {
        expect![[r#"
            start-up 76 % (67..81) @ any line that sh runs: sh started convert 20 times. This costs at least its starts, from fork to main, and its exits; at most also its own work, and what sh does meanwhile.
        "#]].assert_eq(&found(&script(20)));
        expect![[r#"
            start-up 13710 exec, linking and initialising
            net-work 4090
            exit 2000 freeing memory
        "#]]
        .assert_eq(&rows(&script(20), 3));
    }

    /// A program that starts 20 others; each child calls `close` for so many numbers first.
    fn closing(numbers: u64, answer: i64) -> String {
        let (mut main, mut children) =
            (String::from("task 1 jobs\n0 exec ./jobs\n0 on\n0 main\n"), String::new());
        let each = numbers * 100 + 1000;
        for i in 0..20 {
            let (at, tid) = (i * each, 10 + i);
            let [born, waits, ends] = [100, 110, each - 100].map(|more| at + more);
            main += &format!(
                "{born} fork {tid}\n{waits} off blocked wait4 : do_wait\n{ends} on woken-by {tid}\n"
            );
            children += &format!("task {tid} jobs\n{} on\n", at + 120);
            for number in 0..numbers {
                let at = at + 200 + number * 100;
                children += &format!(
                    "{at} syscall close {number} from close <- shut (jobs.c:15) <- main\n{} back {answer}\n",
                    at + 70
                );
            }
            let at = at + numbers * 100 + 300;
            children += &format!(
                "{at} exec /bin/true\n{} main\n{} exit\n{ends} off dead\n",
                at + 400,
                at + 450
            );
        }
        let end = 20 * each;
        format!("{main}{end} exit\n{end} off dead\n{children}")
    }

    #[test]
    fn closing_all_numbers_before_a_program_is_found_and_closing_open_ones_is_refused() {
        expect![[r#"
            start-up 96 % (35..97) @ shut:15: 20 of the processes that jobs started called close 400 times each before they became another program: nearly all of these numbers were not open.
            wait-child 4 % (3..5) @ nowhere: jobs started 20 programs and waited for them: jobs ×20. Each took 1.62 µs on average.
        "#]].assert_eq(&found(&closing(400, -9)));
        assert!(!found(&closing(400, 0)).contains("close"), "{}", found(&closing(400, 0)));
        assert!(!found(&closing(20, -9)).contains("close"), "{}", found(&closing(20, -9)));
    }

    #[test]
    fn a_few_programs_and_programs_that_mostly_work_are_refused() {
        assert_eq!(found(&script(4)), "");
        // A compiler for each file: 115 of 810 ns are its start and end.
        assert_eq!(found(&script_of(20, "202 fault 0x1000\n204 fault-end\n205 main", 900)), "");
    }

    #[test]
    fn a_long_run_may_start_slowly() {
        let text = |work: u64| {
            let end = 10_000_000 + work;
            format!(
                "task 1 tool\n0 on\n10 exec /bin/tool\n100 syscall mmap 4096 1 2 3
                 6000000 back 0\n10000000 main\n{end} exit\n{end} off dead"
            )
        };
        expect![[r#"
            start-up 15 % (0..37) @ nowhere: tool took 10.0 ms before its own code began.
        "#]]
        .assert_eq(&found(&text(10_000_000)));
        assert_eq!(found(&text(1_000_000_000)), "");
    }

    #[test]
    fn a_program_that_does_nothing_is_no_cost() {
        let text = "task 1 true\n0 on\n10 exec /bin/true\n100 syscall mmap 4096 1 2 3
                    600000 back 0\n700000 main\n710000 exit\n710000 off dead";
        assert_eq!(found(text), "");
    }

    #[test]
    fn different_programs_of_a_script_are_refused() {
        let mut text = script(12);
        for i in 0..12 {
            text = text.replacen("exec ./convert", &format!("exec ./step{}", i / 3), 1);
        }
        assert_eq!(found(&text), "");
    }

    #[test]
    fn of_many_programs_the_one_in_the_loop_is_found() {
        let text = script(20).replacen("exec ./convert", "exec ./date", 8);
        expect![[r#"
            start-up 44 % (39..53) @ any line that sh runs: sh started convert 12 times. This costs at least its starts, from fork to main, and its exits; at most also its own work, and what sh does meanwhile.
        "#]]
        .assert_eq(&found(&text));
    }

    /// A script whose every line starts `convert` in a copy of the shell.
    fn substitutions(count: u32) -> String {
        let mut text = String::from("task 1 sh\n0 exec /bin/sh\n0 on\n0 main\n");
        let mut others = String::new();
        for i in 0..count {
            let (copy, tool, at) = (100 + i, 1000 + i, u64::from(i) * 1000);
            let wait = |from: u64, child: u32, until: u64| {
                format!(
                    "{} fork {child}\n{} off blocked wait4 : do_wait\n{} on woken-by {child}\n",
                    at + from,
                    at + from + 10,
                    at + until
                )
            };
            text += &wait(100, copy, 950);
            let dying = |from: u64| format!("{} exit\n{} off dead\n", at + from, at + from + 40);
            let copied = format!("task {copy} sh\n{} on\n", at + 120);
            others += &(copied + &wait(150, tool, 850) + &dying(910));
            let program = format!("exec ./convert\n{} main\n", at + 700);
            let started = format!("task {tool} convert\n{} on\n{} ", at + 170, at + 200);
            others += &(started + &program + &dying(810));
        }
        let end = count * 1000;
        format!("{text}{end} exit\n{end} off dead\n{others}")
    }

    #[test]
    fn a_program_per_substitution_of_a_script_is_found() {
        expect![[r#"
            start-up 77 % (62..84) @ any line that sh runs: sh started convert 20 times. This costs at least its starts, from fork to main, and its exits; at most also its own work, and what sh does meanwhile.
        "#]]
        .assert_eq(&found(&substitutions(20)));
        assert_eq!(found(&substitutions(8)), "");
    }

    /// A script of so many lines `$(echo "$x" | tr a b)` and as many `$(basename "$x")`. The copy that runs `echo` works
    /// for `echo` ns.
    fn two_programs(count: u64, echo: u64) -> String {
        let mut text = String::from("task 1 bash\n0 exec /bin/bash\n0 on\n0 main\n");
        let (mut others, mut at) = (String::new(), 0);
        for i in 0..count {
            let [copy, silent, tr, base] = [100, 1000, 2000, 3000].map(|first| first + i);
            let waits = |from: u64, child: u64, to: u64| {
                format!(
                    "{from} fork {child}\n{} off blocked wait4 : do_wait\n{to} on woken-by {child}\n",
                    from + 10
                )
            };
            let born = |from: u64, tid: u64, name: &str| format!("task {tid} {name}\n{from} on\n");
            let program = |from: u64, to: u64, name: &str| {
                format!(
                    "{from} exec /bin/{name}\n{} main\n{to} exit\n{} off dead\n",
                    to - 100,
                    to + 60
                )
            };
            let dies = |at: u64| format!("{at} exit\n{} off dead\n", at + 60);
            let (worked, end) = (at + 200 + echo, at + 1200 + echo);
            text += &waits(at + 100, copy, end);
            others += &(born(at + 120, copy, "bash") + &waits(at + 150, silent, worked));
            others += &(waits(worked + 10, tr, worked + 900) + &dies(worked + 950));
            others += &(born(at + 170, silent, "bash") + &dies(worked - 20));
            others += &(born(worked + 30, tr, "tr") + &program(worked + 100, worked + 850, "tr"));
            text += &waits(end + 50, base, end + 1000);
            others +=
                &(born(end + 70, base, "basename") + &program(end + 100, end + 950, "basename"));
            at = end + 1050;
        }
        format!("{text}{at} exit\n{at} off dead\n{others}")
    }

    #[test]
    fn two_programs_of_a_loop_share_what_is_between_them() {
        let report = weighed(&two_programs(20, 100));
        expect![[r#"
            start-up 46 % (34..57) @ any line that bash runs: bash started tr 20 times. This costs at least its starts, from fork to main, and its exits; at most also its own work, and what bash does meanwhile.
            start-up 40 % (34..49) @ any line that bash runs: bash started basename 20 times. This costs at least its starts, from fork to main, and its exits; at most also its own work, and what bash does meanwhile.
        "#]].assert_eq(&found(&two_programs(20, 100)));
        let likely: f64 = report.findings.iter().map(|finding| finding.saving_share).sum();
        assert!((0.8..=1.0).contains(&likely), "{likely}");
    }

    #[test]
    fn a_copy_of_the_shell_that_works_itself_is_refused() {
        expect![[r#"
            start-up 8 % (8..8) @ any line that bash runs: bash started basename 20 times. This costs at least its starts, from fork to main, and its exits; at most also its own work, and what bash does meanwhile.
            start-up 8 % (8..8) @ any line that bash runs: bash started tr 20 times. Its starts are counted, from fork to main, and its exits, not its own work.
        "#]].assert_eq(&found(&two_programs(20, 9000)));
    }

    /// A script of so many lines `echo "$x" | convert`: what `convert` reads comes from a copy of the shell for each line,
    /// or from one for all.
    fn pipelines(count: u64, one_writer: bool) -> String {
        let mut text = String::from("task 1 sh\n0 exec /bin/sh\n0 on\n0 main\n");
        let mut others = String::new();
        let end = count * 1000;
        for i in 0..count {
            let (at, tool) = (i * 1000, 1000 + i);
            let writer = if one_writer { 100 } else { 100 + i };
            if i == 0 || !one_writer {
                let dies = if one_writer { end - 20 } else { at + 500 };
                text += &format!("{} fork {writer}\n", at + 100);
                others += &format!("task {writer} sh\n{} on\n", at + 115);
                others += &format!("{dies} exit\n{} off dead\n", dies + 10);
            }
            text +=
                &format!("{} fork {tool}\n{} off blocked wait4 : do_wait\n", at + 110, at + 120);
            text += &format!("{} on woken-by {tool}\n", at + 900);
            others +=
                &format!("task {tool} convert\n{} on\n{} exec /bin/convert\n", at + 130, at + 150);
            others += &format!("{} main\n{} off blocked read : pipe_read\n", at + 400, at + 410);
            others += &format!("{} on woken-by {writer}\n", at + 480);
            others += &format!("{} exit\n{} off dead\n", at + 500, at + 910);
        }
        format!("cpus 4\n{text}{end} exit\n{end} off dead\n{others}")
    }

    #[test]
    fn the_other_part_of_a_pipeline_is_found_and_a_writer_for_all_lines_is_refused() {
        let with = |one_writer| found(&pipelines(20, one_writer));
        assert!(with(false).contains("% (58..80)"), "{}", with(false));
        assert!(with(true).contains("% (58..74)"), "{}", with(true));
    }

    #[test]
    fn each_launcher_has_its_own_advice() {
        let advice = |launcher: &str, image: &str| {
            let text = script(20).replacen("task 1 sh", &format!("task 1 {launcher}"), 1);
            let text = text.replacen("/bin/sh", &format!("/bin/{image}"), 1);
            let finding = weighed(&text).findings.into_iter().next().unwrap();
            assert_eq!(finding.class, "start-up", "{launcher}");
            let place = finding.sites.first().map_or("nowhere", |site| site.function.as_str());
            format!("{place}: {}\n", finding.remedy)
        };
        let launchers = [
            ("find", "find"),
            ("xargs", "busybox"),
            ("make", "make"),
            ("bash", "bash"),
            ("fish", "fish"),
            ("busybox", "busybox"),
            ("timeout", "timeout"),
        ];
        let all: String = launchers.into_iter().map(|(name, image)| advice(name, image)).collect();
        expect![[r#"
            nowhere: If convert takes several files per call, end the command with `+`, as in `-exec convert {} +`: find then starts it once for many files. Or use what find does itself, such as -delete or -printf, where it has it.
            nowhere: If convert takes several items per call, let xargs give it more: without -n 1, -L 1 and -I, or with -n 500. Or use a program that reads the whole list from its standard input.
            nowhere: Let one recipe do many files, if convert takes several per call. A variable that is set with = runs its $(shell ...) each time that it is used; set with := it runs once.
            any line that bash runs: Use what the shell does itself, such as ${x##*/}, ${x%.*}, $((a + b)), case and read, where it can do the same. Or start convert once for all items: behind the loop (`done | convert ...`) if it reads lines, or with many arguments if it takes several.
            any line that fish runs: Use what the shell does itself, such as string, math and read, where it can do the same. Or start convert once for all items: behind the loop (`end | convert ...`) if it reads lines, or with many arguments if it takes several.
            nowhere: Start convert once for many items, if it takes several per call or reads them from its standard input; or do its work without another program.
            nowhere: Start convert once for many items, if it takes several per call or reads them from its standard input; or do its work without another program.
        "#]].assert_eq(&all);
    }

    #[test]
    fn what_another_launcher_started_is_found_there_and_refused_in_the_outer_script() {
        let inner = substitutions(20)
            .replace("task 1 sh", "task 2 xargs")
            .replace("0 exec /bin/sh\n0 on\n0 main", "5 on\n5 exec /bin/xargs\n6 main");
        let outer =
            "task 1 sh\n0 exec /bin/sh\n0 on\n0 main\n2 fork 2\n3 off blocked wait4 : do_wait
                     19998 on woken-by 2\n20020 exit\n20020 off dead\n";
        let text = found(&format!("{outer}{inner}"));
        expect![[r#"
            start-up 77 % (61..84) @ nowhere: xargs started convert 20 times. This costs at least its starts, from fork to main, and its exits; at most also its own work, and what xargs does meanwhile.
        "#]].assert_eq(&text);
    }
}
