//! Zeroing.
//!
//! # What it is
//! Memory set to zero, or to another fixed value, before the program writes what it wants there: a
//! vector constructed at its full size, a cleared buffer per record, a large object made and then
//! filled.
//!
//! # How deadweight knows
//! Samples in memset and its relatives (`bzero`, Go's `memclrNoHeapPointers`, a compiler's runtime),
//! and in `rep stos`, loops and runs of stores of zero, with the line that causes it. Page faults under it are told apart: they vanish only if the buffer
//! does, otherwise the next writer meets them. An estimate: on pairs of programs the saving was 0.8 to 3
//! times the share, because caches stay warmer too.
//!
//! # What it is mistaken for
//! Zeroes that are read: counters, tables, padding. Whether they are, deadweight does not see; the
//! reader of the line does.
//!
//! # What to do
//! Make the buffer once and keep it; make it at the size that is used; leave it uninitialised where
//! everything is written before it is read.
//!
//! # Seen in
//! A frame decoder that value-initialises 32 KiB for each frame of at most 1400 bytes.
//! In `tests/programs`: `cleared_frames.cpp`.

use super::{AccountId, Claim, Class, Inspection};
use crate::asm::Role;
use crate::attribute::Detail;
use crate::duty::Duty;
use crate::findings::{Draft, processes_in};
use crate::processes::ProcessId;
use crate::report::How;
use crate::shares::Share;
use crate::units::Ns;
use crate::user_time::UserSample;
use crate::wording::{percent, time};

pub(super) const CLASS: Class = Class {
    id: "zeroing",
    group: "zeroing",
    source: include_str!("zeroing.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time nobody gains by leaving memory dirty.
const LARGE: f64 = 0.03;
/// Which part of the rest, by its own share, goes with it: a pair of programs, measured five times
/// (share 45 to 52 %, saved 47 to 57 %).
const WAITING: f64 = 0.12;
/// Fewer bytes than this are cleared as part of making a value.
const LEAST: u32 = 128;

fn claim(sample: &UserSample<'_>) -> bool {
    let called = sample.duty() == Some(Duty::Fill);
    (called || is_inlined(sample)) && !sample.under(Duty::Stream)
}

/// Whether the instruction waited for clears a good stretch of memory by itself: `rep stos`, a loop
/// or a long run of stores.
fn is_inlined(sample: &UserSample<'_>) -> bool {
    let plain = sample.duties.iter().all(|duty| *duty == Duty::Library);
    match sample.waited.role {
        Role::Zeroing(run) if plain && !sample.unoptimised => {
            run.looped || run.bytes == 0 || run.bytes >= LEAST
        }
        _ => false,
    }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    processes_in(found.wall.in_account(account))
        .into_iter()
        .filter_map(|process| draft(found, account, process))
        .collect()
}

/// The time of page faults that the zeroing met, whatever account has them.
fn faults(found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
    let entries = found.wall.entries.iter();
    entries
        .filter(|e| e.process == process && e.detail == Detail::Faults)
        .flat_map(|e| &e.sites)
        .filter(|(spot, _)| found.case.duty_at(**spot) == Some(Duty::Fill))
        .map(|(_, weight)| Ns(weight.amount))
        .sum()
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let case = found.case;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    if share.ns.share_of(net) < LARGE {
        return None;
    }
    let faults = faults(found, process);
    let (low, high) = share.interval(share.ns);
    let name = case.name(process);
    let mut evidence = vec![format!(
        "{} samples of {} in it; removing it has saved 0.8 to 3 times its share",
        share.samples, share.whole.1
    )];
    if faults.share_of(net) >= 0.01 {
        evidence.push(format!(
            "{} in page faults that it meets first: saved only if the memory is not used at all, \
             else the next writer meets them",
            time(faults)
        ));
    }
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "memory cleared before it is used".into(),
        text: format!(
            "{name} spent {} of its {} setting memory to a fixed value ({}).",
            time(share.ns),
            time(net),
            percent(share.ns, net),
        ),
        amount: share.ns,
        saving: share.with_the_rest(share.ns, WAITING),
        range: (low, share.with_the_rest(high, WAITING) + faults),
        how: How::Estimate,
        sites: share.sites(case.symbols()),
        evidence,
        remedy: remedy(&case.processes.get(process).language).into(),
    })
}

fn remedy(language: &str) -> &'static str {
    match language {
        "C++" => {
            "Keep one buffer outside the loop; a vector of the size that is used, filled by \
             insert or resize_and_overwrite; or std::make_unique_for_overwrite<char[]>(n), which \
             leaves it as it is."
        }
        "Rust" => {
            "Keep one Vec outside the loop. Vec::with_capacity(n) and extend, or read_to_end, \
             instead of vec![0; n]; MaybeUninit where every byte is written."
        }
        "Go" => {
            "Keep one slice outside the loop (buf = buf[:0]); make([]T, 0, n) and append instead \
             of make([]T, n)."
        }
        "Zig" => "Declare it undefined and write it once, or keep one buffer outside the loop.",
        "Crystal" => "Keep one Bytes outside the loop; Slice(UInt8).new(pointer, n) over it.",
        _ => {
            "malloc instead of calloc where everything is written; clear only the part that is \
             used; keep one buffer instead of a fresh `= {0}` per call."
        }
    }
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
            zeroing 43 % (31..53) @ Router::step:66: app spent 39.8 µs of its 100 µs setting memory to a fixed value (40 %).
        "#]].assert_eq(&found(&text));
    }

    /// `struct msg m = {0};` of 8 KiB by gcc 12 -O2.
    const PARSE: &str = "parse @0x1000 4881ec082000004889fe31c0b9000400004889e7f348ab4889e7e80000\
         00008b142489d0c1e81f01d0d1f848980fbe4404044881c408200000c3";

    #[test]
    fn a_record_cleared_in_place_is_found() {
        let stack = |at| format!("parse (p.c:2) @app+{at} <- main (p.c:9)");
        let (clears, works) = (stack("0x1014"), stack("0x102b"));
        expect![[r#"
            zeroing 72 % (60..80) @ parse:2: app spent 69.7 µs of its 100 µs setting memory to a fixed value (70 %).
        "#]].assert_eq(&found(&coded("C", PARSE, &[(70, &clears), (30, &works)])));
    }

    #[test]
    fn page_faults_under_it_are_told_and_not_promised() {
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
        let told = &report.findings.iter().find(|f| f.class == "zeroing").unwrap().evidence;
        expect![[r#"
            8 samples of 16 in it; removing it has saved 0.8 to 3 times its share
            1.00 µs in page faults that it meets first: saved only if the memory is not used at all, else the next writer meets them"#]].assert_eq(&told.join("\n"));
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
