//! First touch.
//!
//! # What it is
//! Every page of fresh memory costs a page fault when it is touched first: the kernel finds a page,
//! zeroes it and maps it. A program that always moves on to fresh memory pays this all the time.
//!
//! # How deadweight knows
//! The number and the time of the faults are exact, with the address and the line that touched it.
//! A finding needs more: the faults take a large part of the time, in one place, page after page,
//! during most of the program's work. Or they come in no order, and reach at most three quarters of the pages
//! of a large mapping: then each page that costs a fault holds one or two places that are used.
//!
//! # What it is mistaken for
//! Memory that the program needs and uses many times: then the faults are a small part of the time,
//! or they come at the beginning and the work after them. Pages that were given back before are
//! *memory-churn*. Pages of start-up are *start-up*. Memory that is only cleared and never used is
//! *zeroing*. Pages of a mapped file are in memory already: they are in the row *page faults*. A table that is filled
//! at random, but filled: soon all its pages are touched.
//!
//! # What to do
//! Touch less memory: a ring buffer or one reused buffer instead of a log of everything, and
//! records without padding. Or use larger pages: with `madvise(MADV_HUGEPAGE)` one fault replaces
//! 512. A table that is hardly used: a smaller one that grows with what it holds, or small entries that say
//! where in a dense array the rest is.
//!
//! # Seen in
//! An event recorder that keeps every event, though only the last 512 are ever read.
//! A table of 512 MiB for 80 000 slots.
//! In `tests/programs`: `touch_pages.c`, `slots_at_random.c`.

mod sparse;

use super::{AccountId, Claim, Class, Inspection, zeroing};
use crate::account::{Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::{is_interpreted, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::page_faults::{ENTRY_AND_EXIT, faults_of, taken_down};
use crate::inspect::{Draft, Sum, with_user_side};
use deadweight_report::report::How;
use deadweight_report::wording::{bytes, count, percent, things, time};
use deadweight_trace::units::Ns;
use sparse::Sparse;

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
        && !facts.churn.in_file(fault)
        && !zeroing::is_in_vain(facts, slice)
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

/// The first touches of memory by each task of a process' last program, in order of time: when, and at which address. Not
/// of pages that had been given back, nor of mapped files, whose pages are in memory. They are not collected: there may be
/// millions.
fn touches(
    facts: &Facts<'_>,
    process: ProcessId,
) -> impl Iterator<Item = impl Iterator<Item = (Ns, u64)>> {
    let (of, churn) = (facts.processes.get(process), &facts.churn);
    let counts =
        move |at: Ns, fault| at >= of.began() && !churn.again(fault) && !churn.in_file(fault);
    of.tasks.iter().map(move |task| {
        let touches = faults_of(facts, *task).filter(move |(at, fault)| counts(*at, *fault));
        touches.map(|(at, fault)| (at, facts.timeline.faults[fault as usize].addr.0))
    })
}

/// First touches in time and memory.
#[derive(Debug, Default)]
struct Walk {
    /// When they happened, in order.
    at: Vec<Ns>,
    /// How many continued just behind the previous one.
    onward: usize,
}

fn walk(facts: &Facts<'_>, process: ProcessId) -> Walk {
    let mut walk = Walk::default();
    for of_task in touches(facts, process) {
        let mut before = None;
        for (at, address) in of_task {
            let onward = |before| address > before && address - before <= STEP;
            walk.onward += usize::from(before.replace(address).is_some_and(onward));
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
    if let Some(sparse) = sparse::largest(facts, process) {
        return Some(of_sparse(found, process, &sum, &sparse));
    }
    let walk = walk(facts, process);
    let touched = walk.at.len();
    let (early, late) = (*walk.at.get(touched / 10)?, *walk.at.get(touched * 9 / 10)?);
    let in_process = facts.processes.get(process);
    let life = life_after_main(facts, process);
    let spread = (late - early).share_of(life);
    if spread < SPREAD || walk.onward * 2 <= touched {
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

/// The finding about a table that is hardly used.
fn of_sparse(found: &Inspection<'_, '_>, process: ProcessId, sum: &Sum, sparse: &Sparse) -> Draft {
    let facts = found.facts;
    let part = (sparse.faults as f64 / sum.count.max(1) as f64).min(1.0);
    let faults = sparse.faults.min(sum.count);
    let ns = sum.ns.part(part);
    let down = taken_down(found, process, faults);
    let saving = with_user_side(found, process, ns, faults, ENTRY_AND_EXIT) + down;
    let mut evidence = vec![format!(
        "page faults in no order reached {} of the {} pages between the first and the last: that is what touches \
         at random do if each of these pages has {:.1} places in use",
        count(sparse.pages),
        count(sparse.bytes / PAGE),
        sparse.used,
    )];
    if sparse.faults > sparse.pages + sparse.pages / 2 {
        evidence.push(
            "most pages cost two faults: one when they are read, one when they are written".into(),
        );
    }
    evidence.push(format!("{} more to unmap and free the pages", time(down)));
    Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "fresh memory at random, hardly used".into(),
        text: format!(
            "{} touched {} of {} of fresh memory, at random and little of each page: {}.",
            facts.name(process),
            bytes(sparse.pages * PAGE),
            bytes(sparse.bytes),
            things(faults, "page fault"),
        ),
        amount: ns,
        saving,
        range: (saving.part(0.5), saving),
        how: How::Estimate,
        sites: sites(facts.symbols(), &sum.places, sum.count),
        evidence,
        remedy: "Use a table of the size of what it holds, which grows when it fills, or small entries that say \
                 where in a dense array the rest is. Touch no slot to learn that it is empty."
            .into(),
    }
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
    use super::super::tests::{found, repeat, scattered};
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
            first-touch 43 % (0..52) @ record:68: lift touched 2.3 MiB of fresh memory: 600 page faults, spread over 80 % of its run time after main began.
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

    /// Slots of a table of this many pages are touched in no order, then `rest` ns of work.
    fn table(faults: u64, pages: u64, rest: u64) -> String {
        let text = recorder(faults, 1500, 1, rest);
        let place = |i: u64| 0x7f00_0000_0000 + scattered(i, pages * 64) * 64;
        let lines = text.lines().map(|line| match line.split_once(" fault 0x") {
            Some((at, after)) => {
                let i = (at.parse::<u64>().unwrap() - 100) / 1500;
                let (_, from) = after.split_once(' ').unwrap();
                format!("{at} fault {:#x} {from}\n", place(i))
            }
            None => format!("{line}\n"),
        });
        let mapped =
            format!("5 syscall mmap {} 3 34 -1\n10 back {}", pages * 4096, 0x7f00_0000_0000_u64);
        lines.collect::<String>().replace("0 main\n", &format!("0 main\n{mapped}\n"))
    }

    #[test]
    fn a_table_that_is_hardly_used_is_found_also_when_its_memory_is_used_afterwards() {
        expect![[r#"
            first-touch 26 % (12..32) @ record:68: lift touched 12 MiB of 32 MiB of fresh memory, at random and little of each page: 4 000 page faults.
        "#]].assert_eq(&found(&table(4_000, 8_192, 4_000_000)));
    }

    #[test]
    fn a_table_that_is_filled_or_small_is_refused() {
        assert_eq!(found(&table(12_000, 4_400, 9_000_000)), "");
        assert_eq!(found(&table(1_500, 8_192, 1_500_000)), "");
    }

    #[test]
    fn pages_of_a_mapped_file_are_refused() {
        let mapped = |flags: u32| {
            let call =
                format!("5 syscall mmap 16777216 1 {flags} 3\n10 back {}", 0x7f00_0000_0000_u64);
            found(&recorder(600, 1500, 1, 0).replace("0 main\n", &format!("0 main\n{call}\n")))
        };
        assert_eq!(mapped(2), "");
        assert!(mapped(0x22).starts_with("first-touch"), "{}", mapped(0x22));
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
            first-touch 22 % (0..28) @ record:68: lift touched 2.7 MiB of fresh memory: 700 page faults, spread over 80 % of its run time after main began.
        "#]].assert_eq(&found(&started(0)));
        // Filled first, used afterwards.
        assert_eq!(found(&started(900_000)), "");
    }

    #[test]
    fn a_slow_exit_is_no_part_of_the_programs_work() {
        let dies_slowly = recorder(600, 1500, 1, 0).replace("off dead", "off preempted")
            + "\n2500000 on\n2500000 off dead";
        expect![[r#"
            first-touch 16 % (0..20) @ record:68: lift touched 2.3 MiB of fresh memory: 600 page faults, spread over 80 % of its run time after main began.
        "#]].assert_eq(&found(&dies_slowly));
    }
}
