//! Start-up.
//!
//! # What it is
//! The time before a program's own code begins: exec, dynamic linking, and the runtime's
//! initialisation. It matters most when a script starts a program for each line.
//!
//! # How deadweight knows
//! The trace records the exec, and a probe marks the arrival at main. Everything between the two is
//! start-up, with its page faults and system calls. The time is exact.
//!
//! # What it is mistaken for
//! A compiled program that starts a child for each item: this is *wait-child*, and the remedy is in
//! that program. Waiting until the disk has read a program's file is *wait-disk*.
//!
//! # What to do
//! Start the program once for many items (`xargs`, many arguments per call, one process that reads
//! lines). For one short program: link statically, link fewer libraries, or initialise later.
//!
//! # Seen in
//! A shell loop that calls a unit converter for each of 300 lines.
//! In `tests/programs`: `static_hello.c`.

use super::wait_child::{children, entries_of, is_call_for_children};
use super::{AccountId, Claim, Class, EXIT, Inspection};
use crate::account::{Detail, Slice, What};
use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Sum};
use deadweight_report::report::{How, Site};
use deadweight_report::wording::{things, time};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

pub(super) const CLASS: Class = Class {
    id: "start-up",
    source: include_str!("start_up.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// From this many programs on it is a loop.
const LOOP: usize = 10;
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
        .filter_map(|parent| {
            let children = children(facts, parent);
            (children.len() >= LOOP).then(|| of_many(found, parent, &children))
        })
        .collect();
    if drafts.is_empty() {
        drafts.extend(of_one(found));
    }
    drafts
}

/// A script that starts a program per line.
fn of_many(found: &Inspection<'_, '_>, parent: ProcessId, children: &[ProcessId]) -> Draft {
    let facts = found.facts;
    let start_up = AccountId::of_class(CLASS.id);
    let below = facts.processes.below(children);
    let amount: Ns = entries_of(found, parent, &below)
        .filter(|e| {
            e.account == start_up
                || e.account == EXIT
                || e.process == parent
                || matches!(e.detail, Detail::Calls(f)
                    if is_call_for_children(facts.call_groups.get(f).name))
        })
        .map(|e| e.ns)
        .sum();
    let count = u64::try_from(children.len()).unwrap_or(u64::MAX);
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    for child in children {
        *names.entry(facts.name(*child)).or_default() += 1;
    }
    let name = names.into_iter().max_by_key(|(_, n)| *n).map_or(String::new(), |(name, _)| name);
    let saving = Ns(amount.0 - amount.0 / count.max(1));
    let script = facts.name(parent);
    Draft {
        class: CLASS.id,
        moves: false,
        process: parent,
        title: format!("starts {name} {}", things(count, "time")),
        text: format!(
            "{script} started {name} {}; each start and exit took {}, without the program's own work.",
            things(count, "time"),
            time(Ns(amount.0 / count.max(1))),
        ),
        amount,
        saving,
        range: (Ns::ZERO, saving),
        how: How::Exact,
        sites: vec![Site {
            function: "(script)".into(),
            image: facts.processes.get(parent).path.clone(),
            share: 1.0,
            count,
            ..Site::default()
        }],
        evidence: vec![format!("{} in all, from fork to main and in the exit", time(amount))],
        remedy: format!(
            "Give {name} many items at once: `xargs {name} < list`, several arguments per call, \
             or let it read lines from its standard input."
        ),
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
        remedy: "Link statically or against fewer libraries, initialise on first use, or start \
                 once for many items."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, rows};
    use expect_test::expect;
    use std::fmt::Write;

    fn script(count: u32) -> String {
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
            writeln!(
                children,
                "task {tid} convert
                 {} on\n{} exec ./convert\n{} main\n{} exit\n{} off dead",
                at + 120,
                at + 200,
                at + 700,
                at + 800,
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
            start-up 74 % (0..74) @ (script): sh started convert 20 times; each start and exit took 780 ns, without the program's own work.
        "#]].assert_eq(&found(&script(20)));
        expect![[r#"
            start-up 13710 exec, linking and initialising
            net-work 4090
            exit 2000 freeing memory
        "#]]
        .assert_eq(&rows(&script(20), 3));
    }

    #[test]
    fn a_few_programs_of_a_script_are_refused() {
        assert_eq!(found(&script(4)), "");
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
            start-up 15 % (0..30) @ nowhere: tool took 10.0 ms before its own code began.
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
}
