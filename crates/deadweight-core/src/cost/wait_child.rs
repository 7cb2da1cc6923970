//! Waiting for child processes.
//!
//! # What it is
//! The program starts another program for each item of its work and waits for it. Each start costs
//! a fork, an exec, dynamic linking, page faults and a teardown: usually far more than the work for
//! which the program was started.
//!
//! # How deadweight knows
//! The trace has every fork, exec and exit. While the parent waits, the critical path goes through
//! the children. So the finding adds up the time in the children and in the calls that start and
//! reap them. The ledger shows that time by what the children did.
//!
//! # What it is mistaken for
//! A shell, `make` or `cargo`: starting programs is their work. One child that does the actual
//! work: then weigh that child (`--of`).
//!
//! # What to do
//! Do the work inside the process, with a library. Or start one child and give it all items. The
//! children's real work remains.
//!
//! # Seen in
//! `popen("cksum FILE")` per file.
//! In `tests/programs`: `children.py`.

use super::{AccountId, Claim, Class, Inspection, OBSERVER};
use crate::account::{Detail, Entry, Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::timeline::WokenBy;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::How;
use deadweight_report::wording::{things, time};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

pub(super) const CLASS: Class = Class {
    id: "wait-child",
    source: include_str!("wait_child.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Fewer children than this are not a loop over items.
const ITEMS: usize = 5;

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

/// The children of a process that executed a program themselves or started one that did.
pub(super) fn children(facts: &Facts<'_>, parent: ProcessId) -> Vec<ProcessId> {
    let executed = |id: &&ProcessId| {
        let child = facts.processes.get(**id);
        child.own && child.executed
    };
    facts.processes.get(parent).children.iter().filter(executed).copied().collect()
}

/// Entries of the wall time in processes `below` a parent, or in the calls by which it starts and
/// reaps its children.
pub(super) fn entries_of<'a>(
    found: &Inspection<'a, '_>,
    parent: ProcessId,
    below: &'a [ProcessId],
) -> impl Iterator<Item = &'a Entry> {
    let (facts, wall) = (found.facts, found.wall);
    let wait_child = AccountId::of_class(CLASS.id);
    let started = wall.in_process(parent).filter(move |e| match e.detail {
        Detail::Calls(group) => is_call_for_children(facts.call_groups.get(group).name),
        _ => e.account == wait_child,
    });
    let below = below.iter().flat_map(move |id| wall.in_process(*id));
    started.chain(below).filter(|e| e.account != OBSERVER && !e.is_disturbance())
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let facts = found.facts;
    facts
        .processes
        .ids()
        .filter(|id| facts.processes.get(*id).own && !facts.processes.get(*id).is_launcher())
        .filter_map(|parent| {
            let children = children(facts, parent);
            (children.len() >= ITEMS).then(|| draft(found, parent, &children))
        })
        .collect()
}

fn draft(found: &Inspection<'_, '_>, parent: ProcessId, children: &[ProcessId]) -> Draft {
    let facts = found.facts;
    let below = facts.processes.below(children);
    let all: Ns = entries_of(found, parent, &below).map(|e| e.ns).sum();
    let work: Ns = entries_of(found, parent, &below)
        .filter(|e| e.is_sampled() && !facts.processes.get(e.process).is_launcher())
        .map(|e| e.ns)
        .sum();
    let mut names: BTreeMap<String, u64> = BTreeMap::new();
    for id in children.iter().filter(|id| facts.processes.get(**id).executed) {
        *names.entry(facts.name(*id)).or_default() += 1;
    }
    let mut names: Vec<(u64, String)> = names.into_iter().map(|(n, c)| (c, n)).collect();
    names.sort_by(|a, b| b.cmp(a));
    let listed: Vec<String> =
        names.iter().take(4).map(|(n, name)| format!("{name} ×{n}")).collect();
    let count = u64::try_from(children.len()).unwrap_or(u64::MAX);
    let lives: Ns =
        children.iter().map(|c| facts.processes.get(*c).end - facts.processes.get(*c).birth).sum();
    Draft {
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
        amount: all,
        saving: all - work,
        range: (all - work, all),
        how: How::Exact,
        sites: sites(facts.symbols(), &waits(facts, parent, &below), 0),
        evidence: vec![format!(
            "{} of {} is the children's own work; the rest is starting, linking and ending them",
            time(work),
            time(all)
        )],
        remedy: remedy(&facts.processes.get(parent).language).into(),
    }
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
    use super::super::tests::found;
    use expect_test::expect;
    use std::fmt::Write;

    /// A parent that starts `count` programs one after the other and waits for each.
    fn parent(name: &str, count: u32) -> String {
        let mut main = format!("task 1 {name}\n0 exec /bin/{name}\n0 on\n0 main\n");
        let mut children = String::new();
        for i in 0..count {
            let (tid, at) = (10 + i, u64::from(i) * 1000);
            writeln!(
                main,
                "{} fork {tid}
                 {} off blocked wait4 {tid} : do_wait from pclose <- item_sum (manifest.c:55) <- main
                 {} on woken-by {tid}",
                at + 100, at + 110, at + 900
            )
            .unwrap();
            writeln!(
                children,
                "task {tid} cksum
                 {} on\n{} exec /bin/cksum\n{} main\n{} exit\n{} off dead",
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
    fn a_program_per_item_is_found_in_its_parent() {
        expect![[r#"
            wait-child 79 % (79..79) @ item_sum:55: manifest started 20 programs and waited for them: cksum ×20. Each ran for 810 ns on average.
        "#]].assert_eq(&found(&parent("manifest", 20)));
    }

    #[test]
    fn a_shell_and_a_single_child_are_refused() {
        assert!(!found(&parent("sh", 20)).contains("wait-child"));
        assert_eq!(found(&parent("manifest", 1)), "");
    }
}
