//! Zeroing.
//!
//! # What it is
//! Memory is set to zero, or to another fixed value, before the program writes its own data there:
//! a vector constructed at its full size, a buffer cleared for each record, a large object
//! constructed and then filled.
//!
//! # How deadweight knows
//! Samples in memset and its relatives (`bzero`, Go's `memclrNoHeapPointers`, a compiler's
//! runtime), and in `rep stos`, loops and runs of stores of zero, with the line that causes them.
//! The saving is an estimate: on pairs of programs (with and without it) the saving was 0.8 to 3
//! times its share of the time, because the caches stay warmer too.
//!
//! Page faults during the zeroing are counted separately. deadweight samples such pages later,
//! without stopping the program: a few at a time, 10 ms or more after they were cleared. If most of
//! them are used, the next writer would cause the faults instead: they are *first-touch*. If most
//! still hold nothing but zeroes, they were cleared in vain, because the kernel had handed them out
//! zeroed. Then their faults are *zeroing* too, with the calls that give the pages back, and the
//! saving includes as much of them as the sampled pages show.
//!
//! # What it is mistaken for
//! Memory set to a value that the program just loaded or computed: this is the program's work and
//! is not counted. Zeroes that the program reads: counters, sums, tables, padding. If the function
//! that clears the memory then counts in it, its code shows that, and this is not counted either.
//! Otherwise samples do not show it: read the line, or let `--prove` run a copy of the program that
//! does not clear there. Memory that a library clears for itself, as a compressor that starts anew: only the program
//! can ask for less of that, and the range begins at 0.
//!
//! # What to do
//! Make the buffer once and keep it. Make it only as large as it is used. Or leave it uninitialised
//! where everything is written before it is read.
//!
//! # Seen in
//! A frame decoder that value-initialises 32 KiB for each frame of at most 1400 bytes.
//! In `tests/programs`: `cleared_frames.cpp`; needed in `cleared_counts.c`, `fresh_marks.c`.

mod advice;
mod by_library;

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Entry, Slice, What};
use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::page_faults::{ENTRY_AND_EXIT, gives_back, taken_down};
use crate::inspect::shares::Share;
use crate::inspect::{Draft, with_user_side};
use deadweight_code::Role;
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::report::How;
use deadweight_report::stats::proportion::proportion;
use deadweight_report::wording::{percent, time};
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "zeroing",
    source: include_str!("zeroing.rs"),
    claim: Claim::SamplesAndFaults(claim, is_in_vain),
    inspect,
};

/// Below this share of the wall time leaving memory uninitialised gains nothing.
const LARGE: f64 = 0.03;
/// Which part of the remaining time, per share of the zeroing, goes away with it: from a pair of
/// programs, measured five times (share 45 to 52 %, saved 47 to 57 %).
const WAITING: f64 = 0.12;
/// Clearing fewer bytes than this is part of constructing a value.
const LEAST: u32 = 128;

fn claim(sample: &UserSample<'_>) -> bool {
    let called = sample.symbol_role() == Some(SymbolRole::Fill)
        && (sample.caller_role() != Role::Filling || is_left_to_the_library(sample));
    let counted = sample.caller_role() == Role::AccumulatorZeroing
        || sample.own_role() == Role::AccumulatorZeroing;
    (called && !counted || is_inlined(sample)) && !sample.is_under_text()
}

/// Whether the library and not the program's line chooses the fill value: `s.resize(n)`, but not
/// `s.resize(n, c)`.
fn is_left_to_the_library(sample: &UserSample<'_>) -> bool {
    let line = sample.own_frame().map_or("", |(_, frame)| sample.symbols.source_line(frame));
    let Some((_, arguments)) = line.split_once("resize(") else { return false };
    let mut depth = 0_usize;
    for letter in arguments.chars() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => return !sample.is_called_directly(),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

/// Whether the sampled instruction itself clears much memory: `rep stos`, a loop or a long run of
/// stores.
fn is_inlined(sample: &UserSample<'_>) -> bool {
    let plain = sample.symbol_roles.iter().all(|symbol_role| *symbol_role == SymbolRole::Library);
    match sample.waited.role {
        Role::Zeroing(run) if plain && !sample.unoptimised => {
            run.looped || run.bytes == 0 || run.bytes >= LEAST
        }
        _ => false,
    }
}

/// Whether a page fault only served to clear memory that was never used, or a call gives such
/// memory back.
pub(super) fn is_in_vain(facts: &Facts<'_>, slice: &Slice) -> bool {
    if slice.starting || !facts.zeroed(slice.process).is_in_vain() {
        return false;
    }
    match slice.what {
        What::Fault(fault) => {
            let fault = &facts.timeline.faults[fault as usize];
            !fault.major && facts.zeroes(fault)
        }
        What::Call(group, _) => {
            gives_back(facts.call_groups.get(group).name) && facts.zeroed(slice.process).most
        }
        _ => false,
    }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

/// The page faults during the zeroing, of any account: their time and number.
fn faults(found: &Inspection<'_, '_>, process: ProcessId) -> (Ns, u64) {
    let entries = found.wall.in_process(process);
    entries
        .filter(|e| e.detail == Detail::Faults)
        .flat_map(|e| &e.sites)
        .filter(|(site, _)| found.facts.symbol_role_at(**site) == Some(SymbolRole::Fill))
        .fold((Ns::ZERO, 0), |sum, (_, weight)| (sum.0 + Ns(weight.amount), sum.1 + weight.count))
}

/// How much of the page faults removing the zeroing saves, with their kernel entry and exit and the
/// freeing of the pages: at least, probably and at most.
fn saved(found: &Inspection<'_, '_>, process: ProcessId, (ns, count): (Ns, u64)) -> (Ns, Ns, Ns) {
    let fate = found.facts.zeroed(process);
    let all = with_user_side(found, process, ns, count, ENTRY_AND_EXIT)
        + taken_down(found, process, count);
    if !fate.is_known() {
        return (Ns::ZERO, Ns::ZERO, all);
    }
    let (low, high) = proportion(fate.part(), fate.sampled);
    (all.part(low), all.part(fate.part()), all.part(high))
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    let own_faults = exact(found, account, process, |e| e.detail == Detail::Faults);
    let amount = share.ns + exact(found, account, process, |e| !e.is_sampled());
    if amount.share_of(net) < LARGE {
        return None;
    }
    let met = faults(found, process);
    let fate = facts.zeroed(process);
    let (surely, probably, at_most) = saved(found, process, met);
    let (low, high) = share.interval(share.ns);
    let name = facts.name(process);
    let mut evidence = vec![format!(
        "{} of {} samples are in zeroing; in test programs, removing it saved 0.8 to 3 times its share",
        share.samples, share.whole.1
    )];
    if met.0.share_of(net) >= 0.01 {
        evidence.push(advice::of_faults(met, fate));
    }
    // It goes away only with what the library is asked for.
    let kept = by_library::part(facts, &share.places);
    evidence.extend(by_library::evidence(kept));
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: advice::title(fate).into(),
        text: format!(
            "{name} spent {} of its {} setting memory to a fixed value ({}){}.",
            time(amount),
            time(net),
            percent(amount, net),
            if own_faults > Ns::ZERO {
                format!(", {} of it in page faults", percent(own_faults, amount))
            } else {
                String::new()
            }
        ),
        amount,
        saving: share.with_the_rest(share.ns, WAITING) + probably,
        range: (low.part(1.0 - kept) + surely, share.with_the_rest(high, WAITING) + at_most),
        how: How::Estimate,
        sites: share.sites(facts.symbols()),
        evidence,
        remedy: advice::remedy(&facts.processes.get(process).language, kept).into(),
    })
}

/// The time of this account's page faults and calls that are `chosen`.
fn exact(
    found: &Inspection<'_, '_>,
    account: AccountId,
    process: ProcessId,
    chosen: impl Fn(&Entry) -> bool,
) -> Ns {
    found.wall.of_process(account, process).filter(|e| chosen(e)).map(|e| e.ns).sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{coded, computing, found};
    use expect_test::expect;

    #[test]
    fn a_vector_cleared_per_frame_is_found() {
        let text = computing(
            "C++",
            &[
                (
                    40,
                    "memset @libc.so.6 <- std::vector<char> (/usr/include/c++/12/v.h:1) in Router::step (framer.cpp:66) <- main (framer.cpp:113)",
                ),
                (60, "Router::accept (framer.cpp:92) <- main (framer.cpp:113)"),
            ],
        );
        expect![[r#"
            zeroing 43 % (28..60) @ Router::step:66: app spent 39.8 µs of its 100 µs setting memory to a fixed value (40 %).
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn what_a_compressor_clears_for_itself_has_no_least_saving() {
        let reset = "runtime.memclrNoHeapPointers (/usr/local/go/src/runtime/memclr_amd64.s:99) <- compress/flate.(*compressor).reset (/usr/local/go/src/compress/flate/deflate.go:656) <- main.pack (p.go:9) <- main.main (p.go:20)";
        let text = |stack: &str| computing("Go", &[(40, stack), (60, "main.main (p.go:21)")]);
        let said = found(&text(reset));
        assert!(said.starts_with("zeroing 43 % (0..60) @ main.pack:9"), "{said}");
        let zlib = "memset @libc.so.6 <- deflateReset @libz.so.1 <- pack (p.c:9) <- main (p.c:20)";
        let said = found(&text(zlib).replace("language Go", "language C"));
        assert!(said.starts_with("zeroing 43 % (0..60) @ pack:9"), "{said}");
        let made = "runtime.memclrNoHeapPointers (/usr/local/go/src/runtime/memclr_amd64.s:99) <- runtime.mallocgc (/usr/local/go/src/runtime/malloc.go:9) <- image/png.decode (/usr/local/go/src/image/png/reader.go:9) <- main.pack (p.go:9) <- main.main (p.go:20)";
        let said = found(&text(made));
        assert!(said.starts_with("zeroing 43 % (28..60)"), "{said}");
    }

    /// memset(line, runs[i].value, n); memset(line, 0, n);
    const DECODE: &str =
        "code decode @0x102b 0fb673084c89e74c89eae8c6f0ffff31f64c89e74c89eae8b9f0ffffc3
        calls 0x100 memset";

    #[test]
    fn memory_set_to_a_value_that_was_just_loaded_is_refused() {
        let set_by = |at: &str| {
            let stack = format!("memset @libc.so.6 <- decode (a.c:3) @{at} <- main (a.c:9)");
            let text = computing("C", &[(60, stack.as_str()), (40, "main (a.c:9)")]);
            found(&text.replacen("task 1", &format!("{DECODE}\ntask 1"), 1))
        };
        assert_eq!(set_by("0x1039"), "");
        assert!(set_by("0x1046").starts_with("zeroing"), "{}", set_by("0x1046"));
    }

    #[test]
    fn text_resized_with_zeroes_is_found_and_with_given_letters_is_refused() {
        let set_by = |source: &str| {
            let stack = "memset @libc.so.6 <- std::string::_M_replace_aux @0x1039 <- encode (a.cpp:3) <- main (a.cpp:9)";
            let text = computing("C++", &[(60, stack), (40, "main (a.cpp:9)")]);
            let code = DECODE.replace("code decode", "code std::string::_M_replace_aux");
            let text = text.replacen("task 1", &format!("{code}\ntask 1"), 1);
            let report = super::super::tests::with_source(&text, "a.cpp", 3, source);
            report.findings.iter().any(|finding| finding.class == "zeroing")
        };
        assert!(set_by("out.resize(std::max(n, 24000));"));
        assert!(!set_by("out.resize(out.size() + run.n, run.letter);"));
        assert!(!set_by("out.append(run.n, run.letter);"));
    }

    /// memset(counts, 0, 65536); for (i = 0; i < 300; i++) if (++counts[...] > most) most = counts[...];
    const COUNT: &str = "code busiest @0x1210 53ba0000010089f331f6e821feffffb92b010000ba010000004469cbb179\
        379ec700010000004889c74489ce0f1f400089f025ff3f00004c8d0487418b0083c00139c24189000f42d04401ce83e90175df89d05bc3
        calls 0x1040 memset";

    #[test]
    fn a_table_that_is_cleared_to_count_in_it_is_refused() {
        let stack = "memset @libc.so.6 <- busiest (a.c:3) @0x121a <- main (a.c:9)";
        let text = computing("C", &[(60, stack), (40, "main (a.c:9)")]);
        let reads = |code: &str| found(&text.replacen("task 1", &format!("{code}\ntask 1"), 1));
        assert_eq!(reads(COUNT), "");
        // 1253: mov [r8], edx
        let set = COUNT.replace("39c2418900", "39c2418910");
        assert!(reads(&set).starts_with("zeroing"), "{}", reads(&set));
    }

    /// `struct msg m = {0};` of 8 KiB by gcc 12 -O2.
    const PARSE: &str = "parse @0x1000 4881ec082000004889fe31c0b9000400004889e7f348ab4889e7e80000\
         00008b142489d0c1e81f01d0d1f848980fbe4404044881c408200000c3";

    #[test]
    fn a_record_cleared_in_place_is_found() {
        let stack = |at| format!("parse (p.c:2) @app+{at} <- main (p.c:9)");
        let (clears, works) = (stack("0x1014"), stack("0x102b"));
        expect![[r#"
            zeroing 72 % (54..83) @ parse:2: app spent 69.7 µs of its 100 µs setting memory to a fixed value (70 %).
        "#]].assert_eq(&found(&coded("C", PARSE, &[(70, &clears), (30, &works)])));
    }

    #[test]
    fn page_faults_during_it_are_reported_and_not_promised() {
        let text = "image app path /bin/app language C
            task 1 app
            0 on
            0 exec /bin/app
            0 main
            500 sample memset @libc.so.6 <- fresh (a.c:3) <- main (a.c:9)
            501 sample memset @libc.so.6 <- fresh (a.c:3) <- main (a.c:9)
            502 sample memset @libc.so.6 <- fresh (a.c:3) <- main (a.c:9)
            503 sample memset @libc.so.6 <- fresh (a.c:3) <- main (a.c:9)
            504 sample memset @libc.so.6 <- fresh (a.c:3) <- main (a.c:9)
            505 sample memset @libc.so.6 <- fresh (a.c:3) <- main (a.c:9)
            506 sample memset @libc.so.6 <- fresh (a.c:3) <- main (a.c:9)
            507 sample memset @libc.so.6 <- fresh (a.c:3) <- main (a.c:9)
            1000 fault 0x7f00 from memset @libc.so.6 <- fresh (a.c:3) <- main (a.c:9)
            2000 fault-end
            2500 sample work (a.c:5) <- main (a.c:9)
            2501 sample work (a.c:5) <- main (a.c:9)
            2502 sample work (a.c:5) <- main (a.c:9)
            2503 sample work (a.c:5) <- main (a.c:9)
            2504 sample work (a.c:5) <- main (a.c:9)
            2505 sample work (a.c:5) <- main (a.c:9)
            2506 sample work (a.c:5) <- main (a.c:9)
            2507 sample work (a.c:5) <- main (a.c:9)
            3000 exit
            3000 off dead";
        let report = super::super::tests::weighed(text);
        let evidence = &report.findings.iter().find(|f| f.class == "zeroing").unwrap().evidence;
        expect![[r#"
            8 of 16 samples are in zeroing; in test programs, removing it saved 0.8 to 3 times its share
            1.00 µs in 1 page fault during the zeroing: saved only if the memory is not used at all, else the next writer causes them"#]].assert_eq(&evidence.join("\n"));
    }

    /// A line of 32 pages is cleared. 10 ms later they are sampled: all but the first `filled`
    /// still hold zeroes. Then the line is freed.
    fn line(filled: u64) -> String {
        let pages = 0..32_u64;
        let addr = |page: u64| 0x7f00_0000_0000 + page * 4096;
        let cleared = pages.clone().map(|page| {
            let at = 1000 + page * 400_000;
            format!(
                "{at} fault {:#x} from memset @libc.so.6 <- new_line (l.hpp:9) <- main (q.cpp:3)
                 {} fault-end
                 {} sample memset @libc.so.6 <- new_line (l.hpp:9) <- main (q.cpp:3)\n",
                addr(page),
                at + 300_000,
                at + 350_000
            )
        });
        let sampled = pages.map(|page| {
            let zero = if page < filled { "" } else { " zero" };
            format!("25000000 page {:#x}{zero}\n", addr(page))
        });
        let worked = (0..32)
            .map(|n| format!("{} sample scan (q.cpp:7) <- main\n", 25_000_000 + n * 100_000));
        let events: String = cleared.chain(sampled).chain(worked).collect();
        format!(
            "image q path /bin/q language C++
             task 1 q
             0 on
             0 exec /bin/q
             0 main
             {events}29000000 syscall munmap 0x7f0000000000 131072
             29500000 back 0
             30000000 exit
             30000000 off dead"
        )
    }

    fn reported(text: &str) -> String {
        let report = super::super::tests::weighed(text);
        let rows = report.ledger.iter().filter(|row| row.account != "net-work");
        let rows = rows.map(|row| format!("{} {} {}\n", row.account, row.ns, row.note));
        let findings = report.findings.iter().map(|f| {
            format!(
                "{}: {}\n{}\nsaves {} ({:.4} to {:.4})\n{}\n",
                f.class,
                f.title,
                f.text,
                f.saving_ns,
                f.low,
                f.high,
                f.evidence.join("\n")
            )
        });
        rows.chain(findings).collect()
    }

    #[test]
    fn page_faults_of_memory_that_stays_zero_are_found() {
        expect![[r#"
            zeroing 20049500 48 % in 32 page faults
            start-up 1000 exec, linking and initialising
            zeroing: memory cleared in vain
            q spent 20.0 ms of its 30.0 ms setting memory to a fixed value (67 %), 48 % of it in page faults.
            saves 20019720 (0.4695 to 0.7963)
            32 of 64 samples are in zeroing; in test programs, removing it saved 0.8 to 3 times its share
            9.60 ms in 32 page faults during the zeroing: in vain, because 30 of 32 such pages, sampled later, still held nothing but zeroes, as the kernel had handed them out
        "#]].assert_eq(&reported(&line(2)));
    }

    #[test]
    fn page_faults_of_memory_that_is_filled_are_refused() {
        expect![[r#"
            zeroing 9949500 
            first-touch 9600000 32 first touches
            system-calls 500000 munmap ×1
            start-up 1000 exec, linking and initialising
            zeroing: memory cleared before it is used
            q spent 9.95 ms of its 30.0 ms setting memory to a fixed value (33 %).
            saves 11178020 (0.2327 to 0.5726)
            32 of 64 samples are in zeroing; in test programs, removing it saved 0.8 to 3 times its share
            9.60 ms in 32 page faults during the zeroing: without the zeroing the next writer causes them, because only 2 of 32 such pages, sampled later, still held nothing but zeroes
        "#]].assert_eq(&reported(&line(30)));
    }

    #[test]
    fn buffers_of_streams_and_a_small_share_are_refused() {
        let text = computing(
            "C",
            &[
                (30, "memset @libc.so.6 <- vfprintf @libc.so.6 <- report (a.c:3) <- main (a.c:9)"),
                (2, "memset @libc.so.6 <- table_new (a.c:7) <- main (a.c:9)"),
                (68, "work (a.c:5) <- main (a.c:9)"),
            ],
        );
        assert_eq!(found(&text), "");
    }
}
