//! Cache misses.
//!
//! # What it is
//! A loop waits for memory: each turn needs a cache line that the CPU's own caches do not hold. Either
//! the addresses follow no order, so that the CPU cannot fetch ahead (a list or a tree in memory's random order, a
//! look-up in a large table), or the loop uses a few bytes of each line of 64 (a column of a matrix, one
//! field of large records): then most of what memory delivers is thrown away.
//!
//! # How deadweight knows
//! Samples keep the registers. The instruction before each sample took the time; its operand and the
//! registers give the address. Many distinct addresses mean much memory; the loop's own code, or how the
//! addresses move with its counter and with time, shows whether they are in order and how many bytes of each line
//! are used. A finding needs: most of a loop's samples behind such accesses, more memory than the second cache,
//! and, where a register counts the turns, turns that take much longer than their instructions need. Without
//! a count of misses (no PMU is used) this is an estimate.
//!
//! # What it is mistaken for
//! A stream that uses all of its lines: it is limited by memory bandwidth, and is not accused. A set
//! that fits the caches, however random. A list whose nodes lie in order. Pages instead of lines: see
//! `small-pages`.
//!
//! # What to do
//! Walk in the order of memory: rows instead of columns, sorted queries, an array instead of a list. Put what a
//! loop uses side by side: an array for each field, or hot fields apart from cold ones. Smaller elements, indexes of 32
//! bits instead of pointers.
//!
//! # Seen in
//! A budget that reads five numbers of 256-byte records: 64 % of its time.
//! In `tests/programs`: `fields_of_records.c`, `shuffled_list.c`.

use super::{Claim, Class, Inspection};
use crate::facts::hot_loops::memory::{LINE, Reached};
use crate::facts::hot_loops::reason::Reason;
use crate::facts::hot_loops::{HotLoop, is_of_loops};
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::inspect::shares::sampled_sites;
use crate::inspect::slow_loops::{SlowLoops, Waited, turns};
use deadweight_report::report::How;
use deadweight_report::wording::{bytes, percent, time};

pub(super) const CLASS: Class = Class {
    id: "cache-misses",
    source: include_str!("cache_misses.rs"),
    // The time is the loop's work; its row is that of the work.
    claim: Claim::Slices(|_, _| false),
    inspect,
};

/// Below this share of the wall time it does not matter.
const LARGE: f64 = 0.08;
/// The part of the time at random accesses that an order saves: least, and typical; at most it is all of it. Pairs of
/// programs saved 97 % (list to array), 80 % (sorted look-ups) of it.
const AT_RANDOM: (f64, f64) = (0.2, 0.85);
/// The same of the part of the bytes that are not used, for lines in order.
const UNUSED: (f64, f64) = (0.4, 1.0);

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts_of_all(draft)
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let loops = SlowLoops::of(found, process, |why| match why {
        Reason::Memory(reached) => Some(reached),
        _ => None,
    })?;
    let far = |by| loops.all.iter().any(|(_, reached)| reached.iter().any(|r| r.by == by));
    let waited = Waited::of(found, process, loops.samples(), is_of_loops, |s| {
        s.access.is_some_and(|a| far(a.by))
    })?;
    if waited.ns.share_of(net) < LARGE {
        return None;
    }
    let (hot, reached) = loops.hottest()?;
    let main = reached.first()?;
    let (parts, whole) =
        if main.in_order { (UNUSED, 1.0 - main.used / LINE as f64) } else { (AT_RANDOM, 1.0) };
    let saved = |part: f64| waited.ns.part(part * whole);
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: title(main).into(),
        text: format!(
            "{} waited for memory for {} of {} ({}): {}.",
            loops.name(&facts.name(process)),
            time(waited.ns),
            time(net),
            percent(waited.ns, net),
            what(main),
        ),
        amount: waited.ns,
        saving: saved(parts.1),
        range: (saved(parts.0), waited.ns),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &waited.places),
        evidence: evidence(hot, main),
        remedy: remedy(main).into(),
    })
}

fn title(main: &Reached) -> &'static str {
    if main.in_order {
        "a loop fetches cache lines of which it uses little"
    } else {
        "a loop waits for memory in random order"
    }
}

fn what(main: &Reached) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
    let size = bytes(main.footprint() as u64);
    match main.stride {
        Some(stride) => format!(
            "it uses {:.0} of the {LINE} bytes of each cache line, {} bytes apart, and reaches {size} of lines or more",
            main.used,
            stride.unsigned_abs(),
        ),
        None => format!("its addresses follow no order, and reach {size} of cache lines or more"),
    }
}

fn evidence(hot: &HotLoop, main: &Reached) -> Vec<String> {
    let mut evidence = vec![format!(
        "{} of the loop's {} samples wait behind this access; their registers give its address",
        main.samples,
        hot.samples.len(),
    )];
    evidence.extend(turns(hot));
    evidence
}

fn remedy(main: &Reached) -> &'static str {
    if main.in_order {
        "Put what the loop uses side by side: an array for each field, hot fields apart from cold ones, \
         rows instead of columns."
    } else {
        "Give the data the order in which it is used: an array instead of a list, sorted look-ups, nodes \
         in a block of their own; or make it smaller (indexes of 32 bits instead of pointers)."
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, looping, scattered};
    use expect_test::expect;

    // 0: addss xmm0, [rdx]; 4: add rdx, rdi; 7: add eax, 1; a: cmp eax, esi; c: jne 0; e: ret
    const COLUMN: &str = "code sum @0x1000 f30f5802 4801fa 83c001 39f0 75f2 c3";
    // 0: add rax, [rdi+8]; 4: mov rdi, [rdi]; 7: test rdi, rdi; a: jne 0; c: ret
    const LIST: &str = "code walk @0x1000 48034708 488b3f 4885ff 75f4 c3";
    const AFTER_LOAD: &str = "sum (s.c:5) @0x1004 <- main (s.c:9) @0x2000";

    /// A sum of numbers that are `stride` bytes apart: so many turns from one sample to the next.
    fn column(stride: u64, turns: u64) -> String {
        looping(COLUMN, 100, |i| {
            let at = i * turns % 1_000_000;
            (AFTER_LOAD.into(), vec![(0, at), (2, 0x7f00_0000_0000 + at * stride), (7, stride)])
        })
    }

    /// A list whose nodes lie where `place` says.
    fn list(place: impl Fn(u64) -> u64) -> String {
        looping(LIST, 250, |i| {
            let stack = "walk (s.c:5) @0x1004 <- main (s.c:9) @0x2000";
            (stack.into(), vec![(7, 0x7f00_0000_0000 + place(i))])
        })
    }

    #[test]
    fn a_column_of_a_matrix_is_found() {
        expect![[r#"
            cache-misses 93 % (37..100) @ sum:5: A loop of app waited for memory for 995 µs of 1.00 ms (100 %): it uses 4 of the 64 bytes of each cache line, 4096 bytes apart, and reaches 6.0 MiB of lines or more.
        "#]].assert_eq(&found(&column(4096, 1000)));
    }

    #[test]
    fn a_stream_and_a_fast_loop_are_refused() {
        // All bytes of each line.
        assert_eq!(found(&column(4, 1000)), "");
        // A turn takes 1.5 ns, its sum of floating-point numbers 1.2.
        assert_eq!(found(&column(4096, 6600)), "");
        // A thousand numbers: in the second cache.
        assert_eq!(found(&column(64, 10)), "");
    }

    #[test]
    fn a_list_in_random_order_is_found_and_one_in_order_is_refused() {
        let random = list(|i| scattered(i, 1 << 20) * 64);
        expect![[r#"
            cache-misses 85 % (20..100) @ walk:5: A loop of app waited for memory for 2.50 ms of 2.50 ms (100 %): its addresses follow no order, and reach 1.9 MiB of cache lines or more.
        "#]].assert_eq(&found(&random));
        // 4000 nodes from one sample to the next, of a million; and of a thousand, round and round.
        assert_eq!(found(&list(|i| i * 4000 % 1_000_000 * 64)), "");
        assert_eq!(found(&list(|i| i * 370 % 1000 * 64)), "");
        // As random, in 256 KiB.
        assert_eq!(found(&list(|i| scattered(i, 1 << 12) * 64)), "");
    }

    #[test]
    fn without_a_line_of_source_nothing_is_said() {
        let text = column(4096, 1000).replace(" (s.c:5)", "").replace(" (s.c:9)", "");
        assert_eq!(found(&text), "");
    }
}
