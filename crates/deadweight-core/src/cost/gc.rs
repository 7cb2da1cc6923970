//! Garbage collection.
//!
//! # What it is
//! Garbage collection that delays the program: marking live objects, sweeping dead ones, the help
//! that allocating code must give (assists), and the write barriers of pointers. The cost grows
//! with the number of live pointers and with the rate of allocation.
//!
//! # How deadweight knows
//! Samples under the collector's functions: Go's mark workers, assists, sweeping and write
//! barriers; the Boehm collector's mark and reclaim (Crystal); the functions of the collectors of
//! CPython, V8 (Node.js), HotSpot, Ruby, GHC and OCaml in the binary or library that holds that runtime,
//! with all that they call. The saving is what the program itself spends there, and its waits for
//! the collector, also for a CPU that the collector held.
//! What background threads do at the same time, on a CPU that no other task wants, is reported but
//! not saved. The saving is reduced by the cost that would take the collector's place: memory that
//! is collected and handed out again would be fresh, with a page fault for each page. The number of
//! these faults follows from the time in the allocator, which takes about 30 ns for 16 bytes, and
//! less per byte for larger pieces. The saving is an estimate. Turning the collector off entirely
//! leaves the allocations, so the two findings belong together.
//!
//! # What it is mistaken for
//! A program that must build one big graph while the collector marks it in the background: this CPU
//! time is in `--cpu`, and no wall time can be saved. What a runtime collects when it ends is part of
//! its end. Handing memory out is *allocation*, which
//! also remains when collections are rare.
//!
//! # What to do
//! Use fewer pointers (values instead of pointers, indexes instead of strings) or fewer
//! allocations, or collect less often and use more memory (`GOGC`, `GOMEMLIMIT`, Python's
//! `gc.freeze`, Node's `--max-semi-space-size`, Java's `-Xmn`, GHC's `-A`, `OCAMLRUNPARAM`).
//!
//! # Seen in
//! A session window with a heap object per event: a million pointers marked again and again.
//! In `tests/programs`: `live_pointers.go`, `many_dicts.py`.

mod places;

use super::{AccountId, Claim, Class, Inspection, text_conversion};
use crate::account::Detail;
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::allocating::{Allocating, joins_texts, waited, waits_caused_by};
use crate::inspect::growth;
use crate::inspect::shares::Share;
use crate::inspect::{Draft, processes_in};
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, time};
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class =
    Class { id: "gc", source: include_str!("gc.rs"), claim: Claim::Samples(claim), inspect };

/// Below this share of the wall time a collector is not worth reporting.
const LARGE: f64 = 0.05;
/// From this part of the garbage on, conversions of text are named as its cause.
const NAMED: f64 = 0.1;

/// The part of the collector's time that is saved at least: memory that is not reused is cold and new. A collector that
/// never runs (`GOGC=off`) saved 9 % of a site generator that spent at least 12 % in it; larger heaps saved 2.5 and 7 %
/// of two programs in Crystal that spent at least 11 and 8 %.
const LEAST: f64 = 0.5;

/// CPython's collector walks over all that lives, and leaves the program cold caches. Without it, the rest became faster
/// too, in five programs by 6 to 56 % of the collector's time, and by 13 to 42 % of their own: likely and most, of each.
const COLD: [(f64, f64); 2] = [(0.3, 0.2), (0.6, 0.45)];
const COLDER: &str = "the saving may exceed this time: in test programs the rest became faster without the collector, too";

/// Bytes that the allocator hands out per nanosecond, at the least: 16 bytes in about 30 ns, as
/// measured with Go 1.26. With larger pieces it is more.
const HANDED_OUT: f64 = 0.5;
/// Fewer page faults do not show what one costs.
const FAULTS: u64 = 64;
/// Functions that end a runtime: what is collected there is freed because the program ends.
const ENDS: [&str; 4] = ["Py_FinalizeEx", "Py_Finalize", "rb_ec_cleanup", "hs_exit_"];
/// Bytes of a page.
const PAGE: u64 = 4096;

/// Whether the collector's finding covers the allocations too (true), or the reverse: fewer allocations leave less to
/// collect, so one of the two covers both. The finding about allocations names lines to change, so it does, unless the
/// collector takes more.
pub(super) fn reports_both(collecting: Ns, allocating: Ns) -> bool {
    collecting > allocating
}

fn claim(sample: &UserSample<'_>) -> bool {
    let mut callers = sample.symbols.functions(sample.stack);
    sample.under(SymbolRole::Collect) && !callers.any(|name| ENDS.contains(&name))
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    processes_in(found.cpu.in_account(account))
        .into_iter()
        .filter_map(|process| draft(found, account, process))
        .collect()
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    if growth::saved_with_growth(found, process).is_some() {
        return None;
    }
    let everywhere = Share::of(found.cpu, account, process)?;
    let on_path = Share::of(found.wall, account, process);
    let ns = on_path.as_ref().map_or(Ns::ZERO, |share| share.ns);
    let beside = everywhere.ns - ns;
    // A collector that works in parallel with the program, on a CPU that no other task wants, takes
    // little of the program's time: then its finding does not cover the allocations.
    let allocating = Allocating::of(found, process)
        .filter(|a| ns.share_of(net) >= LARGE && reports_both(ns, a.share.ns));
    let with_it = allocating.as_ref().map_or(Ns::ZERO, |a| a.share.ns + a.beside);
    let fresh = faults_instead(found, process);
    let (held, instead, saving) = match &allocating {
        Some(allocating) => {
            let waited = waited(found, process);
            (waited, Ns::ZERO, allocating.saving(ns + waited))
        }
        None => {
            let held = waits_caused_by(found, process, &[CLASS.id], &[SymbolRole::Collect]);
            (held, fresh, ns + held - fresh)
        }
    };
    // What conversions of text allocate goes away with them: that is their finding.
    let by_text = text_conversion::garbage(found, process);
    let saving = saving.part(1.0 - by_text);
    if saving.share_of(net) < LARGE {
        return None;
    }
    let (low, high) = on_path.as_ref().map_or((ns, ns), |share| share.interval(ns));
    let language = facts.processes.get(process).language.as_str();
    let cold = cold(language, ns, net);
    let low = low.part(if moves_what_lives(language) { 0.0 } else { LEAST }) - fresh;
    let all = percent(everywhere.ns, found.cpu.net());
    // Collected on another CPU, the program's time with it is mostly waiting.
    let named_apart = if held > ns { Ns::ZERO } else { held };
    let mut evidence = evidence(net, (beside, &all), named_apart, instead);
    evidence.extend((by_text >= NAMED).then(|| of_conversions(by_text)));
    evidence.extend((cold[0] > Ns::ZERO).then(|| COLDER.to_owned()));
    if with_it.share_of(net) >= 0.01 {
        evidence.push(format!(
            "{} more in the allocations that cause it: the saving includes both; the collector \
             alone takes {} of the time",
            time(with_it),
            percent(ns, net),
        ));
    }
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "time spent in garbage collection".into(),
        text: text(&facts.name(process), ns, held, net),
        amount: ns,
        saving: saving + cold[0],
        range: (low.min(saving), (high + held).max(saving) + cold[1]),
        how: How::Estimate,
        sites: places::sites(found, process),
        evidence,
        remedy: joins_texts(found, process).unwrap_or_else(|| remedy(language)).into(),
    })
}

/// What the rest of a program likely and at most saves without a collector that took `ns` of `net`.
fn cold(language: &str, ns: Ns, net: Ns) -> [Ns; 2] {
    COLD.map(|(of_collector, of_rest)| match language {
        "Python" => ns.part(of_collector).min((net - ns).part(of_rest)),
        _ => Ns::ZERO,
    })
}

fn of_conversions(part: f64) -> String {
    format!(
        "conversions of text make {:.0} % of the garbage: what goes away with them is not in the saving",
        part * 100.0
    )
}

/// What the collector took on the path, or what was waited for it, whichever is more.
fn text(name: &str, ns: Ns, held: Ns, net: Ns) -> String {
    let (all, spent) = (time(net), time(ns));
    if held > ns {
        let (waited, share) = (time(held), percent(held, net));
        return format!(
            "{name} waited {waited} of its {all} for the collector, or for a CPU that it held ({share}); the collector took {spent} of its time."
        );
    }
    format!("{name} spent {spent} of its {all} in the collector ({}).", percent(ns, net))
}

/// What belongs to the collector's own time in a wall time `net`: its work in parallel with the
/// program, with the collector's part of all CPU time; waits for it; and the cost that would take
/// its place.
fn evidence(net: Ns, (beside, of_all): (Ns, &str), held: Ns, instead: Ns) -> Vec<String> {
    let mut lines = Vec::new();
    if beside > Ns::ZERO {
        lines.push(format!(
            "{} more CPU time on other threads (the collector takes {of_all} of all CPU time): not in the \
             saving, unless another task waits for that CPU",
            time(beside),
        ));
    }
    if held.share_of(net) >= 0.01 {
        lines.push(format!(
            "{} more in waits for the collector or for a CPU that it held, and in its system calls",
            time(held)
        ));
    }
    if instead.share_of(net) >= 0.01 {
        lines.push(format!(
            "{} is subtracted: fresh memory instead of reused memory would cost this in page faults",
            time(instead)
        ));
    }
    lines
}

/// The cost of the page faults that the collector saves by reusing memory: without it, the memory
/// would be fresh each time.
fn faults_instead(found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
    let Some(allocating) = Share::of(found.cpu, AccountId::of_class("allocation"), process) else {
        return Ns::ZERO;
    };
    let entries = found.cpu.in_process(process).filter(|e| e.detail == Detail::Faults);
    let (met, took) = entries.fold((0, Ns::ZERO), |(n, ns), e| (n + e.count, ns + e.ns));
    if met < FAULTS {
        return Ns::ZERO;
    }
    let pages = allocating.ns.part(HANDED_OUT).0 / PAGE;
    Ns((took.0 / met).saturating_mul(pages.saturating_sub(met)))
}

/// Whether a collection copies each object that lives: a larger heap saves nothing if all do.
fn moves_what_lives(language: &str) -> bool {
    matches!(language, "JavaScript" | "Java" | "Haskell" | "OCaml")
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Python" => {
            "Collect less often where many objects are made and kept: gc.set_threshold(100_000), \
             or gc.disable() around loading the data, then gc.freeze(). Without the collector only \
             reference cycles stay in memory."
        }
        "JavaScript" => {
            "Make fewer objects that live for a short time, or give them more room: node \
             --max-semi-space-size=64 (MiB; costs up to three times that in memory). Measure it: \
             if most objects are kept, a larger space only copies more."
        }
        "Java" => {
            "Make fewer objects, or give the young ones more room: -Xmn with a large part of -Xmx. \
             -Xlog:gc shows each pause and how much stays alive."
        }
        "Ruby" => {
            "Make fewer objects (each_line instead of readlines, frozen strings), or turn the \
             collector off while data is loaded that stays: GC.disable, then GC.enable."
        }
        "Haskell" => {
            "Keep less alive (strict fields, Text and unboxed vectors for String and lists), or give \
             it more room: +RTS -A256m (build with -rtsopts); +RTS -s shows the collector's share."
        }
        "OCaml" => {
            "Allocate less (a Buffer for `^` in a loop, arrays of floats and unboxed fields for tuples), or give it more \
             room: OCAMLRUNPARAM='s=8M,o=200' (words of the minor heap; percent of the major one). v=0x400 shows the \
             collections at exit."
        }
        "Go" => {
            "Keep values instead of pointers: []event for []*event, an index for a *string; then \
             there is less to mark and less to allocate. Without a change of code, but with more \
             memory: GOGC=400, or debug.SetGCPercent(400) with GOMEMLIMIT as a bound."
        }
        "Crystal" => {
            "Put texts together by String.build instead of `+=`, use structs instead of classes for small values, \
             reuse buffers, and give the collector a larger heap: GC_INITIAL_HEAP_SIZE=256M, or \
             GC_FREE_SPACE_DIVISOR=1."
        }
        _ => "Keep fewer pointers alive and allocate less, or collect less often.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{computing, found, repeat, rows, weighed};
    use expect_test::expect;

    const FEED: &str = "main.feed (main.go:70) <- main.main (main.go:87)";

    #[test]
    fn assists_and_barriers_are_found_at_the_lines_that_allocate() {
        let assist = format!(
            "runtime.scanobject <- runtime.gcDrainN <- runtime.gcAssistAlloc1 <- runtime.mallocgc <- {FEED}"
        );
        let barrier = format!("runtime.wbBufFlush1 <- gcWriteBarrier <- {FEED}");
        let alloc =
            format!("runtime.mallocgcTiny <- runtime.mallocgc <- runtime.newobject <- {FEED}");
        let text = computing(
            "Go",
            &[(20, &assist), (10, &barrier), (20, &alloc), (50, "main.main (main.go:80)")],
        );
        expect![[r#"
            gc 58 % (10..65) @ main.feed:70: app spent 29.9 µs of its 100 µs in the collector (30 %).
            allocation 25 % (7..43) @ main.feed:70: app spent 19.9 µs of its 100 µs in the allocator (20 %).
        "#]].assert_eq(&found(&text));
        expect![[r#"
            net-work 49750
            gc 29850
            allocation 19900
            start-up 500 exec, linking and initialising
        "#]]
        .assert_eq(&rows(&text, 4));
    }

    #[test]
    fn waits_for_the_collector_are_saved_with_the_allocations() {
        // Half of the time another thread holds the only CPU and marks. The collector sleeps too.
        let mark = "runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker";
        let alloc = format!("runtime.mallocgc <- runtime.newobject <- {FEED}");
        let samples = |from: u64, count: u64, stack: &str| {
            repeat(count, from, 1000, |at| format!("{at} sample {stack}\n"))
        };
        let text = format!(
            "image app path /bin/app language Go\nsample-period 1000\ncpus 1\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n10 fork 2 thread\n{}{}\
             40000 off preempted\n80000 cpu0 on\n{}\
             90000 off blocked futex from runtime.futex <- runtime.gcMarkTermination\n\
             94000 cpu0 on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt\n\
             100000 exit\n100000 off dead\n\
             task 2 app\n40000 cpu0 on\n{}80000 off blocked futex\n",
            samples(500, 20, &alloc),
            samples(20_500, 19, FEED),
            samples(80_500, 9, FEED),
            samples(40_500, 39, mark),
        );
        expect![[r#"
            allocation 67 % (8..72) @ main.feed:70: app spent 23.1 µs of its 100 µs in the allocator (23 %).
            gc 44 % (0..52) @ main.feed:70: app waited 44.0 µs of its 100 µs for the collector, or for a CPU that it held (44 %); the collector took 0 ns of its time.
        "#]].assert_eq(&found(&text));
    }

    /// The program marks in `assists` of 100 samples and allocates in `allocates` of them; another
    /// thread marks all the time, on a CPU of its own.
    fn beside(assists: u64, allocates: u64) -> String {
        let samples = |from: u64, count: u64, stack: &str| {
            repeat(count, from, 1000, |at| format!("{at} sample {stack}\n"))
        };
        let assist = format!("runtime.scanobject <- runtime.gcAssistAlloc1 <- {FEED}");
        let alloc = format!("runtime.mallocgc <- runtime.newobject <- {FEED}");
        let mark = "runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker";
        format!(
            "image app path /bin/app language Go\nsample-period 1000\n\
             task 1 app\n0 on\n0 exec /bin/app\n0 main\n10 fork 2 thread\n{}{}{}\
             100000 exit\n100000 off dead\ntask 2 app\n20 on\n{}90000 exit\n90000 off dead\n",
            samples(500, assists, &assist),
            samples(500 + assists * 1000, allocates, &alloc),
            samples(500 + (assists + allocates) * 1000, 99 - assists - allocates, FEED),
            samples(1_500, 88, mark),
        )
    }

    #[test]
    fn a_collector_in_the_background_of_a_program_that_keeps_its_data_is_refused() {
        assert_eq!(found(&beside(0, 2)), "");
        assert_eq!(found(&beside(3, 2)), "");
    }

    #[test]
    fn assists_for_a_collector_in_the_background_are_found_alone() {
        let report = weighed(&beside(12, 0));
        let found = report.findings.iter().find(|f| f.class == "gc").unwrap();
        assert_eq!(found.saving_ns, found.amount_ns, "{found:?}");
        assert!(found.high < 0.25, "{found:?}");
        expect!["89.3 µs more CPU time on other threads (the collector takes 53 % of all CPU time): not in the saving, unless another task waits for that CPU"]
            .assert_eq(&found.evidence.join("\n"));
    }

    /// 100 ms, of which 30 are the collector's and 60 the allocator's, with 100 page faults of
    /// `fault` ns each.
    fn churning(fault: u64) -> String {
        let assist = format!("runtime.scanobject <- runtime.gcAssistAlloc1 <- {FEED}");
        let alloc = format!("runtime.mallocgc <- runtime.newobject <- {FEED}");
        let own = repeat(100, 500_000, 1_000_000, |at| {
            let stack = match at / 1_000_000 {
                0..30 => &assist,
                30..90 => &alloc,
                _ => FEED,
            };
            let begins = format!("{} fault {:#x} from {alloc}\n", at + 1000, 0xc000_0000 + at);
            format!("{at} sample {stack}\n{begins}{} fault-end\n", at + 1000 + fault)
        });
        format!(
            "image app path /bin/app language Go\nsample-period 1000000\n\
             task 1 app\n0 on\n0 exec /bin/app\n0 main\n{own}100000000 exit\n100000000 off dead\n"
        )
    }

    #[test]
    fn reused_memory_would_cost_page_faults_without_a_collector() {
        let report = weighed(&churning(2000));
        let found = report.findings.iter().find(|f| f.class == "gc").unwrap();
        expect![[r#"
            15446000 of 29790000
            14.3 ms is subtracted: fresh memory instead of reused memory would cost this in page faults"#]]
        .assert_eq(&format!(
            "{} of {}\n{}",
            found.saving_ns,
            found.amount_ns,
            found.evidence.join("\n")
        ));
        // Slower faults would cost the whole saving.
        let report = weighed(&churning(6000));
        assert!(report.findings.iter().all(|f| f.class != "gc"));
    }

    #[test]
    fn garbage_of_conversions_is_their_finding() {
        let compile = "regexp/syntax.parse (/usr/local/go/src/regexp/syntax/parse.go:9) <- regexp.MustCompile (/usr/local/go/src/regexp/regexp.go:9) <- main.fill (mail.go:63) <- main.main (mail.go:124)";
        let by = |allocates: &str| {
            let assist = format!("runtime.gcAssistAlloc <- runtime.mallocgc <- {allocates}");
            let alloc = format!("runtime.mallocgcTiny <- runtime.mallocgc <- {allocates}");
            let rest = "main.main (mail.go:80)";
            let some = (15, compile);
            found(&computing("Go", &[some, (20, &assist), (20, &alloc), (30, rest), some]))
        };
        let text = by(compile);
        let first = text.lines().next().unwrap_or_default();
        assert!(first.contains("text-conversion") && first.contains("@ main.fill:63"), "{text}");
        assert!(!text.contains("gc "), "{text}");
        // Near miss: the program itself makes the garbage.
        let text = by(FEED);
        assert!(text.contains("gc ") && text.contains("text-conversion"), "{text}");
    }

    #[test]
    fn a_rare_collection_is_refused() {
        let mark = "runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker";
        assert_eq!(found(&computing("Go", &[(3, mark), (97, FEED)])), "");
    }

    /// A script that an image with this path runs: 60 of 100 samples are below `inner`, called by `root`.
    fn script(path: &str, language: &str, inner: &str, root: &str) -> String {
        let below = format!("{inner} <- {root} <- run_code <- main");
        computing(language, &[(60, &below), (40, "run_code <- main")]).replace("/bin/app", path)
    }

    #[test]
    fn the_collector_of_a_runtime_is_found_with_all_that_it_calls() {
        for (path, language, inner, root) in [
            ("/usr/bin/python3.11", "Python", "visit_decref <- dict_traverse", "gc_collect_main"),
            ("/usr/bin/ruby", "Ruby", "st_foreach <- mark_hash", "gc_mark_children"),
            ("/usr/bin/java", "Java", "oop_iterate", "\"PSScavenge::invoke(bool)\""),
            ("/bin/tool", "Haskell", "copy_tag <- evacuate1 <- scavenge_block", "GarbageCollect"),
            ("/bin/tool", "OCaml", "oldify_one <- oldify_mopup", "caml_empty_minor_heap"),
        ] {
            let report = weighed(&script(path, language, inner, root));
            let found = report.findings.iter().find(|f| f.class == "gc").expect(language);
            assert_eq!(found.amount_ns, 59_700, "{found:?}");
            assert_eq!(
                found.low == 0.0,
                ["Java", "Haskell", "OCaml"].contains(&language),
                "{found:?}"
            );
            // Functions of OCaml are on the C stack, with lines.
            assert!(found.sites.is_empty() || language == "OCaml", "{found:?}");
        }
    }

    #[test]
    fn a_programs_own_function_with_a_collectors_name_is_refused() {
        let own = script("/bin/app", "C", "visit_decref <- dict_traverse", "gc_collect_main");
        assert!(weighed(&own).findings.iter().all(|f| f.class != "gc"));
        let end = "gc_collect_main <- PyGC_Collect <- Py_FinalizeEx";
        let python = script("/usr/bin/python3", "Python", "dict_traverse", end);
        assert!(weighed(&python).findings.iter().all(|f| f.class != "gc"), "at its end");
        let python = script("/usr/bin/python3", "Python", "dict_traverse", "gc_alloc");
        assert!(weighed(&python).findings.iter().all(|f| f.class != "gc"));
    }
}
