//! Struct copies.
//!
//! # What it is
//! A value of many bytes is moved as a whole although little of it is used: a large struct passed
//! or returned by value (the constructor of a Crystal struct does this too), a loop variable that
//! is a copy of each element, an element taken out of an array and put back.
//!
//! # How deadweight knows
//! The machine code of the functions that samples hit: runs of loads whose values are stored
//! unchanged somewhere else, `rep movs`, and calls of memcpy whose size is a constant. The size is
//! read from the code. The type is named if debug information has exactly one type of that size
//! among the function's parameters, variables and results, and the types they point to. The saving
//! is an estimate, rather low: the code after a copy waits for the copy too. On pairs of programs
//! (with and without the copies) the saving was their share of the time and up to 25 percentage
//! points more.
//!
//! # What it is mistaken for
//! A copy that the program's own line asks for (`memcpy`, `copy_from_slice`); values below 64
//! bytes; a block that a hash or cipher loads to compute with; saved registers.
//!
//! # What to do
//! Pass a pointer or reference. Loop over the index instead of copies of the elements. Keep large
//! values in place, and sort or swap their indices.
//!
//! # Seen in
//! A dispatcher that ranges over vehicles of 560 bytes and reads three fields of each.
//! In `tests/programs`: `by_value.cpp`, `range_copy.go`, `costs_in_crystal.cr`. In `cases`: a hash
//! state of 1912 bytes, copied four times.

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::hot_code::hot_code;
use crate::inspect::shares::{Share, samples_of};
use deadweight_code::symbol_role::SymbolRole;
use deadweight_code::{Place, Role, Run};
use deadweight_report::report::{How, Site};
use deadweight_report::wording::{bytes, percent, time};
use deadweight_trace::ids::NameId;
use deadweight_trace::symbols::{SourceFrame, Symbols};
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CLASS: Class = Class {
    id: "struct-copies",
    source: include_str!("struct_copies.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Smaller values cost no more than a pointer to them.
const LEAST: u32 = 64;
/// Larger ones of a constant size are buffers.
const MOST: u32 = 1 << 16;
/// Below this share of the wall time a change of signature is not worth it.
const LARGE: f64 = 0.04;
/// Which part of the remaining time, per share of the copies, waits for them: from pairs of
/// programs.
const WAITING: f64 = 0.6;

/// Which part of a `memcpy` from memory to memory may be fetching the value, which an index does not
/// save if the value is used. A heap of values with 304 bytes: 56 % in copies, 47 % saved.
const FETCHED: f64 = 0.25;

/// Up to this many bytes at the end of a value may be copied separately.
const APART: u32 = 32;

fn claim(sample: &UserSample<'_>) -> bool {
    // Unoptimised code copies values all the time: that is the cost of the build.
    !sample.unoptimised
        && moved(sample).is_some()
        && !sample.is_under_text()
        && !is_asked_for(sample)
}

/// The value that the program's own code was moving.
fn moved(sample: &UserSample<'_>) -> Option<Run> {
    let inside = sample.own == Some(sample.waited.at);
    let role = match sample.own_role() {
        role if inside || sample.symbol_role() == Some(SymbolRole::Copy) => role,
        _ if sample.in_own_instance() => sample.waited.role,
        _ => return None,
    };
    match role {
        // A copy into fresh memory fills a buffer for its owner.
        Role::Copy(Run { to: Place::Returned, from, .. })
            if sample.allocates && from != Place::Frame =>
        {
            None
        }
        Role::Copy(run) if !run.looped && (LEAST / 2..=MOST).contains(&run.bytes) => Some(run),
        _ => None,
    }
}

/// Whether the program's own line asks for a copy of bytes. If its text is not known: a copy to or
/// from the stack is one that no line asks for.
fn is_asked_for(sample: &UserSample<'_>) -> bool {
    const WORDS: [&str; 7] =
        ["memcpy", "memmove", "copy(", "copy_from_slice", "copyForwards", "copy_from", "bcopy"];
    let line = sample.own_frame().map_or("", |(_, frame)| sample.symbols.source_line(frame));
    let on_stack = moved(sample).is_some_and(|r| [r.from, r.to].contains(&Place::Frame));
    if line.is_empty() { !on_stack } else { WORDS.iter().any(|word| line.contains(word)) }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

/// The value that the line with most samples copies.
struct Moved {
    bytes: u64,
    from: Place,
    to: Place,
}

/// A line that copies: its samples, the runs that they hit and how often, and the function with the machine code.
type Copying<'s> = (&'s SourceFrame, u64, BTreeMap<Run, u64>, NameId);

/// The lines that copy, most samples first.
fn lines<'s>(found: &Inspection<'s, '_>, share: &Share) -> Vec<Copying<'s>> {
    let mut lines: BTreeMap<&SourceFrame, (u64, BTreeMap<Run, u64>, NameId)> = BTreeMap::new();
    for (site, weight) in &share.places {
        let Some(stack) = site.stack() else { continue };
        let sample = found.facts.sample(stack);
        let (Some(run), Some((at, frame))) = (moved(&sample), sample.own_frame()) else { continue };
        let line = lines.entry(frame).or_default();
        line.0 += weight.amount;
        *line.1.entry(run).or_default() += weight.amount;
        line.2 = at.frames.last().map_or(frame.function, |machine| machine.function);
    }
    let lines = lines.into_iter().map(|(frame, (samples, runs, of))| (frame, samples, runs, of));
    let mut lines: Vec<Copying<'s>> = lines.collect();
    lines.sort_by_key(|(_, samples, ..)| std::cmp::Reverse(*samples));
    lines
}

/// The value that the hottest line copies: the sum of its runs, since a large value takes several.
fn hottest(lines: &[Copying<'_>]) -> Option<Moved> {
    let (_, _, runs, _) = lines.first()?;
    let (largest, _) = runs.iter().max_by_key(|(run, samples)| (run.bytes, **samples))?;
    let alike = runs.keys().filter(|run| (run.from, run.to) == (largest.from, largest.to));
    // A second copy of the same value is listed separately: see `passes`.
    let sizes: BTreeSet<u32> = alike.map(|run| run.bytes).collect();
    Some(Moved {
        bytes: sizes.into_iter().map(u64::from).sum(),
        from: largest.from,
        to: largest.to,
    })
}

/// If the same value is copied more than once on its way: one line with all these copies.
fn passes(found: &Inspection<'_, '_>, lines: &[Copying<'_>]) -> Option<String> {
    /// Lines that are listed.
    const LISTED: usize = 3;
    let large = |runs: &BTreeMap<Run, u64>| -> Vec<u64> {
        let runs = runs.keys().filter(|run| run.bytes >= LEAST);
        runs.map(|run| u64::from(run.bytes)).collect()
    };
    let lines = lines.iter().map(|(frame, _, runs, _)| (frame, large(runs)));
    let lines: Vec<_> = lines.filter(|(_, sizes)| !sizes.is_empty()).take(LISTED).collect();
    let listed = lines.iter().map(|(frame, sizes)| {
        let name = found.facts.symbols().name(frame.function);
        let pieces =
            if sizes.len() > 1 { format!(" in {} pieces", sizes.len()) } else { String::new() };
        format!("{name} {}{pieces}", bytes(sizes.iter().sum()))
    });
    let listed: Vec<String> = listed.collect();
    let more_than_once = lines.iter().map(|(_, sizes)| sizes.len()).sum::<usize>() > 1;
    more_than_once.then(|| format!("copied in one pass: {}", listed.join(", ")))
}

/// Which part of the samples is in a library's `memcpy` that moves values from memory to memory.
fn called(found: &Inspection<'_, '_>, share: &Share) -> f64 {
    let from_memory_to_memory = |site: &CallSite| {
        let Some(stack) = site.stack() else { return false };
        let sample = found.facts.sample(stack);
        (sample.symbol_role() == Some(SymbolRole::Copy) || sample.in_own_instance())
            && moved(&sample).is_some_and(|run| ![run.from, run.to].contains(&Place::Frame))
    };
    let called = share.places.iter().filter(|(site, _)| from_memory_to_memory(site));
    let called: u64 = called.map(|(_, weight)| weight.amount).sum();
    called as f64 / share.samples.max(1) as f64
}

/// Time in what the hottest line calls, if it copies to the stack for it: the first loads from a fresh copy wait until it is
/// there.
fn called_with(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    share: &Share,
    lines: &[Copying<'_>],
) -> Ns {
    let Some((line, _, runs, _)) = lines.first() else { return Ns::ZERO };
    if !runs.keys().any(|run| run.to == Place::Frame) {
        return Ns::ZERO;
    }
    let symbols = found.facts.symbols();
    let is_below = |site: &CallSite| {
        let caller = site.stack().and_then(|stack| symbols.stack(stack).get(1).copied());
        let caller = caller.and_then(|at| symbols.locations.get(at.index())?.frames.first());
        caller == Some(*line)
    };
    let copies = AccountId::of_class(CLASS.id);
    let below = samples_of(found, process)
        .filter(|(account, site, _)| *account != copies && is_below(site));
    share.time_of(below.map(|(_, _, amount)| amount).sum())
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    let lines = lines(found, &share);
    let moved = hottest(&lines)?;
    if share.ns.share_of(net) < LARGE || moved.bytes < u64::from(LEAST) {
        return None;
    }
    let (low, high) = share.interval(share.ns);
    let called = called(found, &share);
    let waits = |ns| share.with_the_rest(ns, WAITING * (1.0 - called));
    let low = low.part(1.0 - FETCHED * called);
    let mut evidence = vec![format!(
        "{} of {} samples are in such copies; in test programs, removing copies saved their share \
         and up to 25 percentage points more",
        share.samples, share.whole.1
    )];
    evidence.extend(passes(found, &lines));
    evidence.extend(hot_code(facts, &share.places));
    let sites = share.sites(facts.symbols());
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "values copied whole".into(),
        text: format!(
            "{} spent {} of its {} copying whole values ({}): {}{} at a time{}.",
            facts.name(process),
            time(share.ns),
            time(net),
            percent(share.ns, net),
            bytes(moved.bytes),
            lines
                .first()
                .and_then(|line| type_of(facts.symbols(), line.3, moved.bytes))
                .unwrap_or_default(),
            user_side_per_call(moved.from, moved.to),
        ),
        amount: share.ns,
        saving: waits(share.ns),
        range: (low, waits(high).max(high + called_with(found, process, &share, &lines))),
        how: How::Estimate,
        evidence,
        remedy: remedy(written_in(&sites, &facts.processes.get(process).language)).into(),
        sites,
    })
}

/// The type of a value of this many bytes, if `function` handles only one such type. The end of a
/// value may be copied separately.
fn type_of(symbols: &Symbols, function: NameId, moved: u64) -> Option<String> {
    let least = u32::try_from(moved).ok()?;
    let most = least.saturating_add(APART.max(least / 8));
    let mut fitting = symbols.values.range((function, least)..=(function, most));
    let (first, second) = (fitting.next()?, fitting.next());
    let ((_, size), name) = first;
    let name = symbols.name(*name);
    if *size == least {
        return Some(format!(" of {name}"));
    }
    second.is_none().then(|| format!(" of {name} (which has {})", bytes(u64::from(*size))))
}

/// The source and the destination of a copy, as far as the code shows them.
fn user_side_per_call(from: Place, to: Place) -> String {
    let word = |place| match place {
        Place::Unknown => None,
        Place::Frame => Some("its own stack frame"),
        Place::Pointer => Some("memory behind a pointer"),
        Place::Element => Some("an array's element"),
        Place::Static => Some("a fixed address"),
        Place::Returned => Some("what a call returned"),
    };
    match (word(from), word(to)) {
        (Some(from), Some(to)) if from == to => format!(", within {to}"),
        (Some(from), Some(to)) => format!(", from {from} to {to}"),
        (Some(from), None) => format!(", from {from}"),
        (None, Some(to)) => format!(", to {to}"),
        (None, None) => String::new(),
    }
}

/// The language of the place: a program's library may be in another language.
fn written_in<'l>(sites: &[Site], language: &'l str) -> &'l str {
    let file = sites.first().map_or("", |site| site.file.as_str());
    if file.ends_with(".c") { "C" } else { language }
}

fn remedy(language: &str) -> &'static str {
    match language {
        "C++" => {
            "Take the value by const reference (const T &x), loop with const auto &x, return a \
             reference, or std::move what owns its memory. Sort or swap indices or pointers instead of \
             large values."
        }
        "C" => "Take a pointer (const struct T *x) and use x->field; return through a pointer.",
        "Rust" => {
            "Borrow the value: &T as the parameter, for x in &items, iter() instead of into_iter() or \
             clone(); Box large values that move often; swap indices instead of values."
        }
        "Go" => {
            "Range over the index and take the address: for i := range items { x := &items[i] }; \
             pass *T and use pointer receivers; keep []*T if elements are moved."
        }
        "Zig" => {
            "Capture by pointer (for (items) |*x|), take *const T, and write `const x = &items[i];` \
             instead of `const x = items[i];`."
        }
        "Crystal" => {
            "The value that `new` or another method returns is copied: declare it with `uninitialized` \
             and let a method fill it in place; or make it a class, or pass a pointer to it."
        }
        _ => "Pass a pointer or reference to the value instead of the value.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{coded, found, weighed, with_source};
    use crate::weigh::{Weighing, weigh};
    use deadweight_trace::Trace;
    use expect_test::expect;

    // type Row struct { v [41]int64 }
    // func rows(r []Row) (s int64) {
    // 	for _, x := range r { s += x.v[3] + x.v[7] }
    // 	return
    // }
    const ROWS: &str = "main.rows @0x4893e0
        4c8da42430ffffff4d3b66100f868b000000554889e54881ec48010000488984245801000031c931d2eb61
        488d34244889c741b805000000440f1030440f1136440f107010440f117610440f107020440f117620440f1070
        30440f1176304883c0404883c64041ffc875cd440f1070f8440f1176f8488b74241848037424";

    #[test]
    fn a_loop_variable_that_is_a_copy_is_found() {
        let text = coded(
            "Go",
            ROWS,
            &[
                (60, "main.rows (main.go:7) @0x48941c <- main.main (main.go:20)"),
                (40, "main.rows (main.go:8) @0x489459 <- main.main (main.go:20)"),
            ],
        );
        expect![[r#"
            struct-copies 74 % (45..84) @ main.rows:7: app spent 59.7 µs of its 100 µs copying whole values (60 %): 320 bytes at a time, from memory behind a pointer to its own stack frame.
        "#]].assert_eq(&found(&text));
        let evidence = weighed(&text).findings[0].evidence.join("\n");
        expect![[r#"
            60 of 100 samples are in such copies; in test programs, removing copies saved their share and up to 25 percentage points more
            hottest code, in main.rows:
                 0  mov r8d, 5h
                60  movups xmm14, [rax]
                 0  movups [rsi], xmm14               main.go:7"#]]
        .assert_eq(&evidence);
    }

    // void pass(struct huge *h) { eat(*h); }, 2048 bytes
    const PASS: &str =
        "pass @0x1280 4881ec080800004889feb9000100004889e7f348a5e896fdffff4881c408080000c3";

    #[test]
    fn a_large_argument_by_value_is_found_and_a_copy_that_the_line_asks_for_is_not() {
        let stacks = [(70, "pass (a.c:7) @0x1295 <- main (a.c:20)"), (30, "main (a.c:20)")];
        let text = coded("C", PASS, &stacks);
        expect![[r#"
            struct-copies 82 % (54..90) @ pass:7: app spent 69.7 µs of its 100 µs copying whole values (70 %): 2 048 bytes at a time, to its own stack frame.
        "#]].assert_eq(&found(&text));
        let asked_for = with_source(&text, "a.c", 7, "memcpy(&local, h, sizeof local);");
        assert!(asked_for.findings.is_empty(), "{:?}", asked_for.findings);
    }

    #[test]
    fn generic_code_of_a_library_copies_the_programs_values() {
        let copied = |function: &str| {
            let stack = format!("{function} @0x1295 <- by_price (a.cpp:7) <- main (a.cpp:20)");
            found(&coded("C++", PASS, &[(70, &stack), (30, "main (a.cpp:20)")]))
        };
        let found = copied("pass (/usr/include/c++/12/bits/move.h:204)");
        assert!(found.starts_with("struct-copies") && found.contains("@ by_price:7"), "{found}");
        assert_eq!(copied("pass (/usr/include/string.h:20)"), "", "no generic code");
    }

    #[test]
    fn the_type_is_named_where_only_one_fits() {
        let stacks = [(70, "pass (a.c:7) @0x1295 <- main (a.c:20)"), (30, "main (a.c:20)")];
        let described = |values: &[(&str, u32)]| {
            let mut trace = Trace::from_text(&coded("C", PASS, &stacks)).unwrap();
            for (name, size) in values {
                let (function, name) = (trace.symbols.intern("pass"), trace.symbols.intern(name));
                trace.symbols.values.insert((function, *size), name);
            }
            let whole = weigh(&Weighing { traces: &[trace], ..Weighing::default() });
            let text = whole.unwrap().findings[0].text.clone();
            text.split_once(": ").unwrap().1.to_owned()
        };
        let way = " at a time, to its own stack frame.";
        assert_eq!(described(&[]), format!("2 048 bytes{way}"));
        assert_eq!(
            described(&[("huge", 2048), ("larger", 2056)]),
            format!("2 048 bytes of huge{way}")
        );
        let larger = "2 048 bytes of larger (which has 2 056 bytes)";
        assert_eq!(
            described(&[("larger", 2056), ("far", 3000), ("small", 64)]),
            format!("{larger}{way}")
        );
        assert_eq!(described(&[("this", 2056), ("that", 2064)]), format!("2 048 bytes{way}"));
    }

    #[test]
    fn copies_without_a_constant_size_and_small_shares_are_refused() {
        let text = coded(
            "C",
            PASS,
            &[
                (60, "memcpy @libc.so.6 <- load (a.c:9) @0x2000 <- main (a.c:20)"),
                (3, "pass (a.c:7) @0x1295 <- main (a.c:20)"),
                (37, "main (a.c:20)"),
            ],
        );
        assert_eq!(found(&text), "");
    }
}
