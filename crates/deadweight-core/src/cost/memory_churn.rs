//! Memory churn.
//!
//! # What it is
//! In each iteration the program gives memory back to the kernel and takes it again. Each time the
//! kernel unmaps the memory, maps it again, and zeroes every page that the program touches.
//! `malloc` does this for large blocks, above its mmap and trim thresholds, although no line of the
//! program asks for it.
//!
//! # How deadweight knows
//! `munmap`, `madvise` and a shrinking `brk` or `mremap` name the ranges that are given back. A page fault in
//! such a range is the price of taking the memory again, as is the second fault of a page that is
//! read before it is written. Only these calls count, and those that map such a range again. Calls
//! and faults are exact, and the low end of the saving. Fresh pages are in no cache: a part of the program's own work
//! on them is saved as well, by the measure of four pairs of programs.
//!
//! # What it is mistaken for
//! The first touch of a page, which every program pays once; mappings that are made and dropped
//! during start-up; a reserve of addresses that is trimmed before anybody touched it.
//!
//! # What to do
//! Allocate once before the loop and reuse the memory. Or let the allocator keep it: glibc's
//! `mallopt` with `M_MMAP_THRESHOLD` and `M_TRIM_THRESHOLD`. The process then keeps that memory.
//!
//! # Seen in
//! Scratch planes of 600 KiB allocated and freed for every video frame.
//! In `tests/programs`: `churn.c`.

mod advice;

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, is_runtime, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::allocating::joins_texts;
use crate::inspect::{Draft, Sum, processes_in, with_user_side};
use deadweight_report::report::{How, Site};
use deadweight_report::wording::{bytes, things, time};
use deadweight_trace::ids::CallId;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

pub(crate) use advice::{helps_by_environment, maps_itself};

pub(super) const CLASS: Class = Class {
    id: "memory-churn",
    source: include_str!("memory_churn.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Fewer releases are an occasional clean-up, not churn.
const RELEASES: u64 = 8;
/// Fewer faults on released pages are not worth reporting.
const FAULTS: u64 = 64;
/// Memory of which less than one part in so many was taken again was given back for good: its owner was taken down.
const TAKEN: u64 = 16;
/// Bytes of a page, at the least.
const PAGE: u64 = 4096;
/// The part of a fault's kernel entry and exit that shows as the program's own time, in ns.
const ENTRY_AND_EXIT: u64 = 150;

/// Which part of the remaining time, per share of the churn, goes away with it, typically and at most: what works on fresh
/// pages waits for memory. Four pairs of programs: 0.15, 0.33, 0.65, 0.7.
const IN_NO_CACHE: (f64, f64) = (0.35, 0.75);

fn churns(facts: &Facts<'_>, process: ProcessId) -> bool {
    let churn = facts.churn.of(process);
    let taken = churn.faults.saturating_mul(PAGE);
    churn.releases >= RELEASES && churn.faults >= FAULTS && taken >= churn.bytes / TAKEN
}

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    if slice.starting {
        return false;
    }
    match slice.what {
        What::Fault(fault) => facts.churn.again(fault) && churns(facts, slice.process),
        What::Call(group, _) => facts.call_groups.get(group).churns && churns(facts, slice.process),
        _ => false,
    }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    processes_in(found.wall.in_account(account))
        .into_iter()
        .map(|process| draft(found, account, process))
        .collect()
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Draft {
    let facts = found.facts;
    let entries = || found.wall.of_process(account, process);
    let calls = Sum::of(entries().filter(|e| matches!(e.detail, Detail::Calls(_))));
    let faults = Sum::of(entries().filter(|e| e.detail == Detail::Faults));
    let churn = facts.churn.of(process);
    let amount = calls.ns + faults.ns;
    let saving = with_user_side(found, process, amount, faults.count, ENTRY_AND_EXIT);
    let places = places(facts, process, &calls, &faults, amount);
    let net = found.wall.net();
    let with_caches =
        |part: f64| saving + (net - saving).part((saving.share_of(net) * part).min(1.0));
    Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "memory given back and taken again".into(),
        text: format!(
            "{} gave memory back to the kernel {}, {} each on average, and faulted it in again: {}.",
            facts.name(process),
            things(churn.releases, "time"),
            bytes(churn.bytes / churn.releases.max(1)),
            things(churn.faults, "page fault"),
        ),
        amount,
        saving: with_caches(IN_NO_CACHE.0),
        range: (amount, with_caches(IN_NO_CACHE.1)),
        how: How::Estimate,
        sites: places,
        evidence: vec![
            format!("{} per page fault in the kernel", time(Ns(faults.ns.0 / faults.count.max(1)))),
            format!("{} in the system calls that release and map the memory", time(calls.ns)),
            "fresh pages are in no cache, so the program's own work on them is slower, too: the saving \
             includes an estimate of that"
                .into(),
        ],
        remedy: joins_texts(found, process)
            .map_or_else(|| advice::remedy(facts, process), Into::into),
    }
}

/// The line that allocates first, as it is the one to change; then the heaviest of those that give back and touch. First
/// the line that trims the heap, where one does: without it, nothing is given back.
fn places(
    facts: &Facts<'_>,
    process: ProcessId,
    calls: &Sum,
    faults: &Sum,
    amount: Ns,
) -> Vec<Site> {
    let timeline = facts.timeline;
    let stack = |call: &CallId| CallSite::Stack(timeline.calls[call.index()].site);
    let taking: BTreeSet<CallSite> = facts.churn.taking().iter().map(stack).collect();
    // A release by the language's runtime belongs to no line of the program.
    let runtime = |site: &CallSite| is_runtime(facts.symbols(), *site);
    let mut own = calls.places.clone();
    own.retain(|site, _| !runtime(site) || faults.places.keys().all(runtime));
    let (takes, gives): (Weights, Weights) =
        own.into_iter().partition(|(site, _)| taking.contains(site));
    let count = |places: &Weights| places.values().map(|w| w.count).sum::<u64>();
    let ns = |places: &Weights| Ns(places.values().map(|w| w.amount).sum());
    let all = |sum: &Sum| (count(&sum.places).max(1), ns(&sum.places));
    let mut found: Vec<Site> = Vec::new();
    let mut order = [(calls, &takes), (calls, &gives), (faults, &faults.places)];
    if advice::trims(facts, process) {
        order.swap(0, 1);
    }
    for (sum, places) in order {
        let (counted, in_places) = all(sum);
        let part = ns(places).share_of(in_places) * sum.ns.share_of(amount);
        for mut site in sites(facts.symbols(), places, sum.count * count(places) / counted) {
            site.share *= part;
            if found.iter().all(|p| p.function != site.function || p.line != site.line) {
                found.push(site);
            }
        }
    }
    if let [_, rest @ ..] = &mut found[..] {
        rest.sort_by(|a, b| b.share.total_cmp(&a.share));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, weighed};
    use expect_test::expect;

    /// Per frame: a mapping at `place`, ten pages touched, the mapping dropped.
    fn filter(frames: u64, place: impl Fn(u64) -> u64) -> String {
        let frame = |at: u64| {
            let base = place(at);
            let faults = repeat(10, at + 200, 50, |t| {
                let page = base + (t - at - 200) / 50 * 4096;
                format!(
                    "{t} fault {page:#x} from blur (u.c:40) <- sharpen <- main\n{} fault-end\n",
                    t + 30
                )
            });
            format!(
                "{at} syscall mmap 40960 3 34 0 from malloc <- scratch_get (u.c:66) <- main
                 {} back {base:#x}\n{faults}{} syscall munmap {base:#x} 40960\n{} back 0\n",
                at + 20,
                at + 800,
                at + 900
            )
        };
        let end = frames * 1000;
        let frames = repeat(frames, 0, 1000, frame);
        format!("task 1 unsharp\n0 on\n0 main\n{frames}{end} exit\n{end} off dead")
    }

    #[test]
    fn planes_mapped_per_frame_are_found() {
        expect![[r#"
            memory-churn 76 % (36..87) @ scratch_get:66: unsharp gave memory back to the kernel 19 times, 40 KiB each on average, and faulted it in again: 190 page faults.
        "#]].assert_eq(&found(&filter(20, |_| 0x7f00_0000_0000)));
    }

    #[test]
    fn no_setting_of_malloc_is_named_for_what_the_program_maps_itself() {
        let images = "image app path /bin/app language C\nimage libc.so.6 path /lib/libc.so.6\n";
        let advice = |from: &str| {
            let text = filter(20, |_| 0x7f00_0000_0000)
                .replace("from malloc", &format!("from {from}"))
                .replace(" 40960\n", &format!(" 40960 from {from} <- put (u.c:70)\n"))
                .replace("0 main\n", "0 exec /bin/app\n0 main\n");
            weighed(&format!("{images}{text}")).findings[0].remedy.clone()
        };
        let own = advice("mmap @libc.so.6");
        assert!(own.starts_with("Keep the mapping"), "{own}");
        let by_malloc = advice("mmap @libc.so.6 <- sysmalloc @libc.so.6");
        assert!(by_malloc.contains("mallopt"), "{by_malloc}");
    }

    /// A program of a package; its heap grows by `brk`, ten pages are touched, and it shrinks.
    fn heap(library: &str) -> String {
        let frame = |at: u64| {
            let faults = repeat(10, at + 200, 50, |t| {
                let page = 0x1040_0000 + (t - at - 200) / 50 * 4096;
                format!("{t} fault {page:#x} from add @tool <- main @tool\n{} fault-end\n", t + 30)
            });
            format!(
                "{at} syscall brk 0x1040a000 from malloc @libc.so.6 <- add @tool <- main @tool
                 {} back 0x1040a000\n{faults}{} syscall brk 0x10400000 from free @libc.so.6 <- add @tool
                 {} back 0x10400000\n",
                at + 20,
                at + 800,
                at + 900
            )
        };
        format!(
            "image tool path /usr/bin/tool language C no-lines\nimage libc.so.6 path {library} no-lines\ntask 1 tool\n0 on\n\
             0 exec /usr/bin/tool\n0 main\n{}20000 exit\n20000 off dead",
            repeat(20, 0, 1000, frame)
        )
    }

    #[test]
    fn the_heap_of_a_package_is_found_where_the_environment_helps() {
        let first = |text: &str| weighed(text).findings.into_iter().next();
        let finding = first(&heap("/lib/x86_64-linux-gnu/libc.so.6"));
        assert!(finding.is_some_and(|f| f.remedy.starts_with("Start it with MALLOC_TOP_PAD_")));
        assert!(first(&heap("/lib/ld-musl-x86_64.so.1")).is_none());
    }

    /// An interpreter without a line of the author in its stacks: what it maps, read, shrink and give back.
    fn reads_into_new_blocks(below: &str) -> String {
        let frame = |at: u64| {
            format!(
                "{at} syscall mmap 266240 3 34 0 from mmap @libc.so.6{below}\n{} back 0x7f0000000000\n\
                 {} fault 0x7f0000000000 from sock_recv @python3 <- main @python3\n{} fault-end\n\
                 {} syscall mremap 0x7f0000000000 266240 4096 1 from mremap @libc.so.6{below}\n\
                 {} back 0x7f0000000000\n{} syscall munmap 0x7f0000000000 4096 from munmap @libc.so.6{below}\n\
                 {} back 0\n",
                at + 60,
                at + 100,
                at + 140,
                at + 200,
                at + 260,
                at + 300,
                at + 360
            )
        };
        format!(
            "image python3 path /usr/bin/python3 language Python no-lines\nimage libc.so.6 path /lib/libc.so.6 no-lines\n\
             task 1 python3\n0 on\n0 exec /usr/bin/python3\n0 main\n{}80000 exit\n80000 off dead",
            repeat(80, 0, 1000, frame)
        )
    }

    #[test]
    fn single_blocks_of_an_interpreter_are_found_where_malloc_maps_them() {
        let below = " <- realloc @libc.so.6 <- bytes_new @python3 <- main @python3";
        let report = weighed(&reads_into_new_blocks(below));
        let finding = report.findings.first().expect("a finding");
        assert!(finding.remedy.starts_with("Start it with MALLOC_TOP_PAD_"), "{finding:?}");
        // All but the first block: its page, and the three calls around it.
        assert_eq!(finding.amount_ns, 79 * (60 + 40 + 60 + 60), "{finding:?}");
        // Arenas of its own objects: nobody changes that.
        let below = " <- arena_map @python3 <- main @python3";
        assert!(weighed(&reads_into_new_blocks(below)).findings.is_empty());
    }

    #[test]
    fn other_calls_beside_real_releases_are_not_charged() {
        // Advice that gives nothing back, and reserves that are trimmed before they are touched.
        let advice = |t: u64| {
            let call = if t.is_multiple_of(20) {
                "munmap 0x600000000000 40960"
            } else {
                "madvise 0x7f0000000000 40960 0"
            };
            format!("{t} syscall {call} from tune (u.c:9) <- main\n{} back 0\n", t + 8)
        };
        let (churn, rest) = (filter(20, |_| 0x7f00_0000_0000), repeat(2000, 20_000, 10, advice));
        let text = churn.replace("20000 exit\n20000 off", &format!("{rest}40000 exit\n40000 off"));
        expect![[r#"
            memory-churn 48 % (18..64) @ scratch_get:66: unsharp gave memory back to the kernel 19 times, 40 KiB each on average, and faulted it in again: 190 page faults.
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn memory_that_is_fresh_each_time_and_a_few_releases_are_refused() {
        let fresh = filter(20, |at| 0x7f00_0000_0000 + at * 1_000_000);
        assert!(!found(&fresh).contains("memory-churn"));
        assert!(!found(&filter(4, |_| 0x7f00_0000_0000)).contains("memory-churn"));
    }

    #[test]
    fn memory_of_which_little_is_taken_again_is_refused() {
        // A store of which each part is given back once, at the end; a little of it is used for what is left to do.
        let parts = |again: u64| {
            let part = |at: u64| {
                let base = 0x7f00_0000_0000 + at / 1000 * 409_600;
                let faults = repeat(16, at + 100, 40, |t| {
                    let page = base + (t - at - 100) / 40 * 4096;
                    format!("{t} fault {page:#x} from fill <- main\n{} fault-end\n", t + 30)
                });
                format!(
                    "{faults}{} syscall madvise {base:#x} 409600 4\n{} back 0\n",
                    at + 900,
                    at + 950
                )
            };
            let back = repeat(again, 200_000, 50, |t| {
                let i = (t - 200_000) / 50;
                let page = 0x7f00_0000_0000 + i / 16 * 409_600 + i % 16 * 4096;
                format!("{t} fault {page:#x} from store <- main\n{} fault-end\n", t + 40)
            });
            let all = repeat(150, 0, 1000, part);
            found(&format!("task 1 app\n0 on\n0 main\n{all}{back}400000 exit\n400000 off dead"))
        };
        assert!(!parts(100).contains("memory-churn"), "{}", parts(100));
        assert!(parts(1200).contains("memory-churn"), "{}", parts(1200));
    }

    #[test]
    fn a_reserve_that_is_trimmed_before_it_is_touched_is_refused() {
        // Each mapping reserves twice its size and gives the second half back; the next one is touched there.
        let frame = |at: u64| {
            let (base, size) = (0x7f10_0000_0000 - at / 1000 * 40960, 40960);
            let upper = base + size;
            let faults = repeat(10, at + 200, 50, |t| {
                let page = base + (t - at - 200) / 50 * 4096;
                format!("{t} fault {page:#x} from fill <- main\n{} fault-end\n", t + 30)
            });
            format!(
                "{at} syscall mmap 81920 3 34 0 from reserve <- main\n{} back {base:#x}
                 {} syscall munmap {upper:#x} 40960\n{} back 0\n{faults}",
                at + 20,
                at + 40,
                at + 60
            )
        };
        let frames = repeat(30, 0, 1000, frame);
        let text = format!("task 1 app\n0 on\n0 main\n{frames}30000 exit\n30000 off dead");
        assert!(!found(&text).contains("memory-churn"), "{}", found(&text));
    }

    #[test]
    fn the_heap_of_a_program_is_not_that_of_the_shell_before_it() {
        // The new program's heap ends far below the shell's; it has no `main` that was seen.
        let round = |at: u64| {
            let faults = repeat(10, at + 200, 50, |t| {
                let page = 0x10_0000 + at * 40 + (t - at - 200) / 50 * 4096;
                format!("{t} fault {page:#x} from fill <- work\n{} fault-end\n", t + 30)
            });
            let end = 0x20_0000 + at * 40;
            format!("{at} syscall brk {end:#x}\n{} back {end:#x}\n{faults}", at + 20)
        };
        let rounds = repeat(20, 10_000, 1000, round);
        let text = format!(
            "task 1 sh\n0 on\n10 syscall brk 0\n20 back 0x7fff_0000_0000\n100 syscall execve
             200 exec /bin/static\n210 back 0\n{rounds}40000 exit\n40000 off dead"
        );
        let text = text.replace("0x7fff_0000_0000", "0x7fff00000000");
        assert!(!found(&text).contains("memory-churn"), "{}", found(&text));
    }

    #[test]
    fn files_mapped_one_after_another_are_refused() {
        let files = filter(20, |_| 0x7f00_0000_0000).replace("40960 3 34 0", "40960 1 2 3");
        assert!(!found(&files).contains("memory-churn"));
    }

    #[test]
    fn faults_without_a_stack_are_shown_where_those_with_one_were() {
        let round = |at: u64| {
            let stack = if at == 1000 { " from" } else { " by" };
            let chain = if at == 1000 { " <- fill (a.c:7) <- main" } else { "" };
            let faults = repeat(10, at + 200, 50, |t| {
                let page = 0x7000 + (t - at - 200) / 50 * 4096;
                format!(
                    "{t} fault {page:#x}{stack} memset @libc.so.6{chain}\n{} fault-end\n",
                    t + 30
                )
            });
            format!(
                "{at} syscall mmap 40960 3 34 0\n{} back 0x7000\n{faults}{} syscall munmap 0x7000 40960\n{} back 0\n",
                at + 20,
                at + 800,
                at + 900
            )
        };
        let rounds = repeat(20, 0, 1000, round);
        let text = format!(
            "image app path /bin/app\nimage libc.so.6 path /lib/libc.so.6\ntask 1 app\n0 on\n0 main\n{rounds}20000 exit\n20000 off dead"
        );
        expect![[r#"
            memory-churn 76 % (36..87) @ fill:7: app gave memory back to the kernel 19 times, 40 KiB each on average, and faulted it in again: 190 page faults.
        "#]].assert_eq(&found(&text));
    }

    /// Per page of a text: the heap grows, ten pages are read and then written, the heap is cut off. Between the read and
    /// the write of each page this may be called.
    fn packer(between: &str) -> String {
        let round = |at: u64| {
            let faults = repeat(10, at + 100, 70, |t| {
                let page = 0x50_0000 + (t - at - 100) / 70 * 4096;
                let between = match between {
                    "" => String::new(),
                    call => format!("{} syscall {call}\n{} back 7\n", t + 22, t + 24),
                };
                format!(
                    "{t} fault {page:#x} from pack (codec.rs:50) <- main\n{} fault-end\n{between}\
                     {} fault {page:#x} from pack (codec.rs:51) <- main\n{} fault-end\n",
                    t + 20,
                    t + 30,
                    t + 60
                )
            });
            format!(
                "{at} syscall brk 0x50a000 from malloc <- new (codec.rs:19) <- main\n{} back 0x50a000\n{faults}\
                 {} syscall brk 0x500000 from free <- main (main.rs:48)\n{} back 0x500000\n",
                at + 10,
                at + 850,
                at + 950
            )
        };
        let rounds = repeat(20, 1000, 1000, round);
        format!(
            "task 1 lz\n0 on\n0 main\n10 syscall brk 0\n20 back 0x500000\n{rounds}21000 exit\n21000 off dead"
        )
    }

    #[test]
    fn both_faults_of_a_page_that_is_read_before_it_is_written_are_found_at_the_line_that_allocates()
     {
        let said = found(&packer(""));
        assert!(said.contains("@ new:19") && said.contains("380 page faults"), "{said}");
        assert!(!said.contains("first-touch"), "{said}");
    }

    #[test]
    fn a_second_fault_after_the_memory_was_copied_is_refused() {
        let said = found(&packer("clone 17"));
        assert!(said.contains("190 page faults"), "{said}");
    }
}
