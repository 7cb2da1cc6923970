//! First touch.
//!
//! # What it is
//! Every page of fresh memory costs a page fault when it is touched first: the kernel finds a page,
//! zeroes it and maps it. A program that always moves on to fresh memory pays this all the time.
//!
//! # How deadweight knows
//! The number and the time of the faults are exact, with the address and the line that touched it.
//! A finding needs more: the faults take a large part of the time, in one place, page after page,
//! during most of the program's work.
//!
//! # What it is mistaken for
//! Memory that the program needs and uses many times: then the faults are a small part of the time,
//! or they come at the beginning and the work after them. Pages that were given back before are
//! *memory-churn*. Pages of start-up are *start-up*. Memory that is only cleared and never used is
//! *zeroing*.
//!
//! # What to do
//! Touch less memory: a ring buffer or one reused buffer instead of a log of everything, and
//! records without padding. Or use larger pages: with `madvise(MADV_HUGEPAGE)` one fault replaces
//! 512.
//!
//! # Seen in
//! An event recorder that keeps every event, though only the last 512 are ever read.
//! In `tests/programs`: `touch_pages.c`.

use super::{AccountId, Claim, Class, Inspection, zeroing};
use crate::account::{Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::{is_interpreted, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::page_faults::{ENTRY_AND_EXIT, faults_of, taken_down};
use crate::inspect::{Draft, Sum, with_user_side};
use deadweight_report::report::How;
use deadweight_report::wording::{bytes, percent, things, time};
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "first-touch",
    source: include_str!("first_touch.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Fewer faults are the normal cost of running a program.
const MANY: u64 = 128;
/// Below this part of the wall time the memory is presumably worth its cost.
const LARGE: f64 = 0.12;
/// Faults must be spread over this part of the program's life after main.
const SPREAD: f64 = 0.5;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// A fault at most this far behind the previous one continues through the same memory.
const STEP: u64 = 16 * PAGE;

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    let What::Fault(fault) = slice.what else { return false };
    !slice.starting
        && !facts.timeline.faults[fault as usize].major
        && !zeroing::is_in_vain(facts, slice)
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

/// The faults of a process' last program in time and memory.
#[derive(Debug, Default)]
struct Walk {
    /// When the faults happened, in order.
    at: Vec<Ns>,
    /// How many faults continued just behind the previous one.
    onward: u64,
}

fn walk(facts: &Facts<'_>, process: ProcessId) -> Walk {
    let mut walk = Walk::default();
    let in_process = facts.processes.get(process);
    for id in &in_process.tasks {
        let mut before: Option<u64> = None;
        for (at, fault) in faults_of(facts, *id) {
            if at < in_process.began() || facts.churn.again(fault) {
                continue;
            }
            let addr = facts.timeline.faults[fault as usize].addr.0;
            walk.onward += u64::from(before.is_some_and(|b| addr > b && addr - b <= STEP));
            before = Some(addr);
            walk.at.push(at);
        }
    }
    walk.at.sort_unstable();
    walk
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let sum = Sum::of(found.wall.of_process(account, process));
    if sum.count < MANY || sum.ns.share_of(found.wall.net()) < LARGE {
        return None;
    }
    let walk = walk(facts, process);
    let count = walk.at.len();
    let (early, late) = (*walk.at.get(count / 10)?, *walk.at.get(count * 9 / 10)?);
    let in_process = facts.processes.get(process);
    let life = life_after_main(facts, process);
    let spread = (late - early).share_of(life);
    let onward = walk.onward * 2 > u64::try_from(count).unwrap_or(u64::MAX);
    if spread < SPREAD || !onward {
        return None;
    }
    let down = taken_down(found, process, sum.count);
    let saving = with_user_side(found, process, sum.ns, sum.count, ENTRY_AND_EXIT) + down;
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "fresh memory, page after page".into(),
        text: format!(
            "{} touched {} of fresh memory: {}, spread over {} of its run time after main began.",
            facts.name(process),
            bytes(sum.count * PAGE),
            things(sum.count, "page fault"),
            percent(late - early, life),
        ),
        amount: sum.ns,
        saving,
        range: (Ns::ZERO, saving),
        how: How::Estimate,
        sites: sites(facts.symbols(), &sum.places, sum.count),
        evidence: vec![
            "in each page fault the kernel zeroes and maps the page".into(),
            format!("{} more to unmap and free the pages", time(down)),
        ],
        remedy: remedy(&in_process.language).into(),
    })
}

/// From a process' main until its exit began. The kernel decides how long the exit takes.
fn life_after_main(facts: &Facts<'_>, process: ProcessId) -> Ns {
    let process = facts.processes.get(process);
    let exits = process.tasks.iter().filter_map(|task| facts.timeline.task(*task).exit);
    exits.max().unwrap_or(process.end).min(process.end) - process.began()
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Go" => {
            "If old data is never read again, reuse a ring buffer or a slice (buf = buf[:0]). \
             Otherwise use fewer bytes per record."
        }
        language if is_interpreted(language) || language == "Haskell" => {
            "Keep less alive at once: take the data piece by piece, drop what is never read again, \
             or use fewer bytes per record."
        }
        "Rust" | "Zig" | "Crystal" => {
            "If old data is never read again, reuse one buffer or a ring buffer. Otherwise use fewer \
             bytes per record, or larger pages (madvise MADV_HUGEPAGE)."
        }
        _ => {
            "If old data is never read again, use a ring buffer or one reused buffer. Otherwise use \
             fewer bytes per record, or larger pages: madvise(p, n, MADV_HUGEPAGE), or \
             GLIBC_TUNABLES=glibc.malloc.hugetlb=1."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat};
    use expect_test::expect;

    /// `pages` faults of 500 ns, one every `every` ns, `stride` pages apart, then `rest` ns of work.
    fn recorder(pages: u64, every: u64, stride: u64, rest: u64) -> String {
        let faults = repeat(pages, 100, every, |t| {
            let page = 0x7f00_0000_0000 + (t - 100) / every * stride * 4096;
            format!("{t} fault {page:#x} from record (lift.c:68) <- main\n{} fault-end\n", t + 500)
        });
        let end = pages * every + 200 + rest;
        format!("task 1 lift\n0 on\n0 main\n{faults}{end} exit\n{end} off dead")
    }

    #[test]
    fn walking_through_fresh_memory_is_found() {
        expect![[r#"
            first-touch 43 % (0..43) @ record:68: lift touched 2.3 MiB of fresh memory: 600 page faults, spread over 80 % of its run time after main began.
        "#]].assert_eq(&found(&recorder(600, 1500, 1, 0)));
    }

    #[test]
    fn memory_that_is_used_after_its_first_touch_is_refused() {
        // Filled first, used afterwards.
        assert_eq!(found(&recorder(600, 800, 1, 900_000)), "");
        // Much work per page.
        assert_eq!(found(&recorder(600, 20_000, 1, 0)), "");
        // Few pages.
        assert_eq!(found(&recorder(50, 1500, 1, 0)), "");
    }

    /// A shell that execs the program had a run time of its own before.
    #[test]
    fn faults_before_the_last_exec_do_not_count() {
        let started = |work: u64| {
            let shell = repeat(100, 100, 10_000, |t| {
                let page = 0x5500_0000_0000 + (t - 100) / 10_000 * 4096;
                format!("{t} fault {page:#x} from read (sh.c:1) <- main\n{} fault-end\n", t + 500)
            });
            let (exec, at) = (1_100_000, 1_150_000);
            let own =
                recorder(600, 1500, 1, work).lines().skip(3).fold(String::new(), |text, line| {
                    let (time, rest) = line.split_once(' ').unwrap();
                    text + &format!("{} {rest}\n", time.parse::<u64>().unwrap() + at)
                });
            format!("task 1 lift\n0 on\n0 main\n{shell}{exec} exec /bin/lift\n{at} main\n{own}")
        };
        expect![[r#"
            first-touch 22 % (0..22) @ record:68: lift touched 2.7 MiB of fresh memory: 700 page faults, spread over 80 % of its run time after main began.
        "#]].assert_eq(&found(&started(0)));
        // Filled first, used afterwards.
        assert_eq!(found(&started(900_000)), "");
    }

    #[test]
    fn a_slow_exit_is_no_part_of_the_programs_work() {
        let dies_slowly = recorder(600, 1500, 1, 0).replace("off dead", "off preempted")
            + "\n2500000 on\n2500000 off dead";
        expect![[r#"
            first-touch 16 % (0..16) @ record:68: lift touched 2.3 MiB of fresh memory: 600 page faults, spread over 80 % of its run time after main began.
        "#]].assert_eq(&found(&dies_slowly));
    }
}
