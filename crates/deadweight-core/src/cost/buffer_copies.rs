//! Buffer copies.
//!
//! # What it is
//! Bytes are moved from one place to another although the program does not need that: the rest of a
//! buffer is shifted to its front after each message, a container outgrows its memory again and
//! again, a string becomes bytes and a string again.
//!
//! # How deadweight knows
//! Samples in memcpy and memmove (also Go's and the compilers' own) that a library function called
//! for the program: erase, insert, append, growth, conversion. A copy that the program's own line
//! asks for counts in two cases: its function allocates the memory it copies into, or it is a
//! memmove, which shifts what is already there. So does a container's copy, element by element, in Rust
//! and C++. If growth is the main reason why a program in Go or Crystal allocates, this finding includes the allocating and collecting. If a line of the program
//! enlarges a block itself (`realloc`), all work of the allocator there counts, with or without a
//! copy: mostly the block can stay in its place. The saving is an estimate. Removing copies has
//! saved their share of the time and about 10 percentage points more, which the prediction adds. On
//! two programs that were not used to fit the model it was still 12 points too low. Growing in
//! fewer steps saves between nothing and all of the allocator's share: the block stays in its
//! place, and larger steps touch new pages.
//!
//! # What it is mistaken for
//! A copy that is the program's job: from one of its buffers into another, asked for in its own
//! line. Copies inside streams that read and write, and those of a library that sorts or keeps a tree in order. Moves of less
//! than 64 bytes, where registers show the length: they cost a call. A goroutine that gets a larger
//! stack. Values moved piecewise are *struct-copies*.
//!
//! # What to do
//! Move an offset instead of the bytes, and compact once. Reserve the final size. Pass a view
//! instead of a copy.
//!
//! # Seen in
//! A protocol session that erases each command from the front of a 64 KiB buffer.
//! In `tests/programs`: `erase_front.cpp`, `realloc_line.c`.

mod shifts;
mod small_moves;

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::allocating::{joins_texts, mostly_allocation};
use crate::inspect::growth;
use crate::inspect::shares::Share;
use deadweight_code::Role;
use deadweight_code::symbol_role::{SymbolRole, is_copying_loop};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, time};
use deadweight_trace::ids::StackId;
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "buffer-copies",
    source: include_str!("buffer_copies.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time a copy is not worth reporting.
const LARGE: f64 = 0.04;
/// The part of the allocator's time that growing in fewer steps saves: one program saved a fifth by
/// doubling, and everything with blocks that existed before.
const FEWER_STEPS: f64 = 0.5;
/// The finding is about growth if at least this part of it is the allocator's.
const MOSTLY: f64 = 0.5;
/// Which part of the remaining time, per share of the copies, goes away with them: from a pair of
/// programs, measured six times (share 53 to 62 %, saved 62 to 70 %).
const WAITING: f64 = 0.35;

fn claim(sample: &UserSample<'_>) -> bool {
    growth::is_by_hand(sample)
        || sample.symbol_role() == Some(SymbolRole::Copy)
            // Counted references cost what their counters cost.
            && sample.waited.role != Role::Atomic
            && !sample.is_under_text()
            && !sample.under(SymbolRole::Sort)
            && !grows_stack(sample)
            && !is_for_a_digest(sample)
            && !is_in_tree(sample)
            && (!sample.is_called_directly() || sample.allocates || shifts(sample))
}

/// Whether Go's runtime moves a goroutine to a larger stack.
fn grows_stack(sample: &UserSample<'_>) -> bool {
    sample.symbols.functions(sample.stack).any(|name| name == "runtime.copystack")
}

/// Whether one of Go's packages for digests, ciphers and compression copies its input into blocks: that is its work.
fn is_for_a_digest(sample: &UserSample<'_>) -> bool {
    let packages = ["crypto/", "hash/", "compress/"];
    // What such a package calls back, as a writer, is the program's own.
    let mut below = sample.symbols.functions(sample.stack).take(sample.symbol_roles.len());
    below.any(|name| packages.iter().any(|package| name.starts_with(package)))
}

/// Whether a tree of Rust's library keeps the keys of a node in order: that is the insertion itself.
fn is_in_tree(sample: &UserSample<'_>) -> bool {
    let mut below = sample.symbols.functions(sample.stack).take(sample.symbol_roles.len());
    below.any(|name| name.trim_start_matches('<').starts_with("alloc::collections::btree::"))
}

/// Whether the program's own line moves bytes within one buffer, to make room or to close a gap.
fn shifts(sample: &UserSample<'_>) -> bool {
    let own = sample.own_frame();
    own.is_some_and(|(_, frame)| shifts::is_shift(sample.symbols.source_line(frame)))
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    let growth = growth::saved_with_growth(found, process);
    let with_it = growth.unwrap_or_default();
    let share = match growth {
        Some(_) => share,
        None => share.without(&mostly_allocation(found, process)),
    };
    if (share.ns + with_it).share_of(net) < LARGE {
        return None;
    }
    let (low, high) = share.interval(share.ns);
    let enlarging =
        part(&share, &|site| found.facts.sample(site).symbol_role() != Some(SymbolRole::Copy));
    let is_growth = enlarging >= MOSTLY;
    if !is_growth && small_moves::are_small(found, process, &share) {
        return None;
    }
    // Removing copies saves part of the remaining time too; removing `realloc` calls that move
    // nothing does not.
    let saved = |ns: Ns, of_it: f64| {
        let stays = ns.part(enlarging);
        share.with_the_rest(ns - stays + with_it, WAITING) + stays.part(of_it)
    };
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: if is_growth { growth::GROWTH } else { "bytes copied from buffer to buffer" }.into(),
        text: format!(
            "{} spent {} of its {} {} ({}).",
            facts.name(process),
            time(share.ns),
            time(net),
            if is_growth {
                "enlarging blocks of memory"
            } else {
                "copying bytes from one buffer to another"
            },
            percent(share.ns, net),
        ),
        amount: share.ns,
        saving: saved(share.ns, FEWER_STEPS),
        range: (low.part(1.0 - enlarging), saved(high, 1.0)),
        how: How::Estimate,
        evidence: evidence(found, &share, is_growth, with_it),
        sites: share.sites(facts.symbols()),
        remedy: if is_growth {
            LARGER_STEPS
        } else {
            let by_elements = |stack| facts.symbols().functions(stack).any(is_copying_loop);
            let language = facts.processes.get(process).language.as_str();
            match (language, part(&share, &by_elements) >= MOSTLY) {
                ("C++", true) => BY_REFERENCE,
                _ => joins_texts(found, process).unwrap_or_else(|| remedy(language)),
            }
        }
        .into(),
    })
}

/// The part of the share's samples whose stack is `chosen`.
fn part(share: &Share, chosen: &dyn Fn(StackId) -> bool) -> f64 {
    let chosen = |site: &CallSite| site.stack().is_some_and(chosen);
    let sum = share.places.iter().filter(|(site, _)| chosen(site)).map(|(_, w)| w.amount).sum();
    let sum: u64 = sum;
    sum as f64 / share.samples.max(1) as f64
}

fn evidence(
    found: &Inspection<'_, '_>,
    share: &Share,
    is_growth: bool,
    with_it: Ns,
) -> Vec<String> {
    let known = if is_growth {
        "enlarging blocks; in test programs, growing in fewer steps saved between a fifth and all \
         of this time"
    } else {
        "copies; in test programs, removing copies saved their share and about 10 percentage points \
         more"
    };
    let mut evidence =
        vec![format!("{} of {} samples are in {known}", share.samples, share.whole.1)];
    let grown = part(share, &|stack| found.facts.sample(stack).under(SymbolRole::Grow));
    if grown > 0.0 && !is_growth {
        evidence.push(format!(
            "{} of this time while a container or text outgrew its memory",
            percent(share.ns.part(grown), share.ns)
        ));
    }
    if with_it > Ns::ZERO {
        evidence.push(format!(
            "{} more in allocating the larger memory, in the garbage collector, and in waits for \
             both: this goes away too",
            time(with_it)
        ));
    }
    evidence
}

/// The remedy for a block that grows piece by piece.
const LARGER_STEPS: &str = "Keep the size of the block beside its used length and double the size when \
     it is full, or take the final size at once, instead of one realloc per piece.";

/// The remedy for containers in C++ that are copied as a whole.
const BY_REFERENCE: &str = "A container is copied with all that it holds: loop with `const auto &`, pass `const T &` or a \
     std::span, move what is not needed afterwards.";

fn remedy(language: &str) -> &'static str {
    match language {
        "C++" => {
            "Keep an offset and erase once per batch instead of erase(0, n) per item; reserve(n) \
             before appending; take std::string_view or std::span; use std::deque where items are \
             taken from the front."
        }
        "Rust" => {
            "Keep an offset, or take from a VecDeque, instead of drain(..n) or remove(0); \
             Vec::with_capacity(n); pass &[u8] or &str instead of to_vec() and clone()."
        }
        "Go" => {
            "make([]T, 0, n) before appending; slice forward (buf = buf[n:]) instead of copying \
             down; keep []byte everywhere instead of string([]byte) and back."
        }
        "Zig" => {
            "Keep a read index instead of orderedRemove(0) or copyForwards per item; \
             ensureTotalCapacity before appending; pass slices."
        }
        "Crystal" => {
            "String.build or IO::Memory instead of `+` in a loop; Deque where items are taken from \
             the front; Slice views instead of dup."
        }
        _ => {
            "Keep an offset and move the rest once per batch instead of per item; double the size \
             when growing, or take the final size at once; pass pointer and length."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{computing, found};
    use expect_test::expect;

    #[test]
    fn the_rest_shifted_to_the_front_is_found() {
        let text = computing(
            "C++",
            &[
                (
                    60,
                    "memmove @libc.so.6 <- std::string::_M_erase @libstdc++.so.6 <- Session::receive (session.cpp:58) <- main (session.cpp:104)",
                ),
                (
                    40,
                    "Store::run (session.cpp:17) <- Session::receive (session.cpp:57) <- main (session.cpp:104)",
                ),
            ],
        );
        expect![[r#"
            buffer-copies 68 % (45..80) @ Session::receive:58: app spent 59.7 µs of its 100 µs copying bytes from one buffer to another (60 %).
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn a_goroutine_that_gets_a_larger_stack_and_blocks_of_a_digest_are_refused() {
        let grows = "runtime.memmove <- runtime.copystack <- runtime.newstack <- main.walk (main.go:9) <- main.main (main.go:20)";
        let text = computing(
            "Go",
            &[(30, grows), (70, "main.walk (main.go:10) <- main.main (main.go:20)")],
        );
        assert_eq!(found(&text), "");
        // What a digest copies into its blocks is its work; what is put together for it is not.
        let copies = |by: &str| {
            let copy = format!(
                "runtime.memmove <- {by} <- main.sum (main.go:9) <- main.main (main.go:20)"
            );
            found(&computing(
                "Go",
                &[(30, &copy), (70, "main.sum (main.go:10) <- main.main (main.go:20)")],
            ))
        };
        assert_eq!(
            copies("crypto/internal/fips140/sha256.(*Digest).Write <- crypto/sha256.Sum256"),
            ""
        );
        let called_back = "bytes.(*Buffer).Write <- main.(*out).Write (main.go:5) <- compress/flate.(*Writer).Write";
        for by in ["bytes.(*Buffer).Write", called_back] {
            assert!(copies(by).starts_with("buffer-copies"), "{by}: {}", copies(by));
        }
    }

    #[test]
    fn a_containers_copy_element_by_element_is_found_and_its_allocations_are_refused() {
        let cloning = |leaf: &str| {
            let copy = format!(
                "{leaf} in \"<T as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec\" (/rustc/1/library/alloc/src/slice.rs:432) in replay::view (replay.rs:72) <- replay::main (replay.rs:9)"
            );
            found(&computing("Rust", &[(60, &copy), (40, "replay::main (replay.rs:9)")]))
        };
        let moved = cloning("core::mem::write (/rustc/1/library/core/src/mem/mod.rs:9)");
        assert!(moved.starts_with("buffer-copies 68 % (45..80) @ replay::view:72"), "{moved}");
        assert!(!cloning("__rust_alloc").contains("buffer-copies"));
    }

    #[test]
    fn moves_of_a_sort_and_of_a_tree_are_refused() {
        let tree = "alloc::collections::btree::node::slice_insert";
        for sort in ["qsort_r @libc.so.6", "core::slice::sort::stable::merge", "sort.Stable", tree]
        {
            let copies = format!(
                "__memcpy_avx_unaligned @libc.so.6 <- {sort} <- rank (app.c:9) <- main (app.c:20)"
            );
            let text = computing("C", &[(40, &copies), (60, "rank (app.c:9) <- main (app.c:20)")]);
            assert_eq!(found(&text), "", "{sort}");
        }
    }

    #[test]
    fn growth_is_found_and_named() {
        let text = computing(
            "Go",
            &[
                (
                    30,
                    "runtime.memmove <- runtime.growslice <- main.fill (main.go:9) <- main.main (main.go:20)",
                ),
                (70, "main.fill (main.go:10) <- main.main (main.go:20)"),
            ],
        );
        let report = super::super::tests::weighed(&text);
        expect![[r#"
            30 of 100 samples are in copies; in test programs, removing copies saved their share and about 10 percentage points more
            100 % of this time while a container or text outgrew its memory"#]]
        .assert_eq(&report.findings[0].evidence.join("\n"));
    }

    const ALLOCATES: &str =
        "runtime.mallocgc <- runtime.growslice <- main.fill (main.go:9) <- main.main (main.go:20)";
    const COPIES: &str =
        "runtime.memmove <- runtime.growslice <- main.fill (main.go:9) <- main.main (main.go:20)";
    const ASSISTS: &str = "runtime.(*sweepLocked).sweep <- runtime.gcAssistAlloc <- runtime.mallocgc <- runtime.growslice <- main.fill (main.go:9) <- main.main (main.go:20)";

    #[test]
    fn growth_with_its_allocations_and_collections_is_one_finding() {
        let rest = (40, "main.fill (main.go:10) <- main.main (main.go:20)");
        let text = computing("Go", &[(15, COPIES), (20, ALLOCATES), (25, ASSISTS), rest]);
        expect![[r#"
            buffer-copies 68 % (8..79) @ main.fill:9: app spent 14.9 µs of its 100 µs copying bytes from one buffer to another (15 %).
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn growth_beside_many_live_pointers_does_not_cover_their_marking() {
        let rest = (40, "main.fill (main.go:10) <- main.main (main.go:20)");
        let marks = ASSISTS.replace("(*sweepLocked).sweep", "scanobject");
        let text = computing("Go", &[(15, COPIES), (20, ALLOCATES), (25, &marks), rest]);
        assert!(found(&text).starts_with("gc"), "{}", found(&text));
    }

    #[test]
    fn growth_beside_other_allocations_does_not_cover_them() {
        let other = "runtime.mallocgc <- runtime.newobject <- main.fill (main.go:11) <- main.main (main.go:20)";
        let text = computing(
            "Go",
            &[(15, COPIES), (20, ALLOCATES), (25, other), (40, "main.main (main.go:20)")],
        );
        expect![[r#"
            allocation 68 % (19..80) @ main.fill:11: app spent 44.8 µs of its 100 µs in the allocator (45 %).
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn growth_by_hand_is_found() {
        let text = computing(
            "C",
            &[
                (2, "malloc @libc.so.6 <- text_add (text.c:5) <- main (text.c:20)"),
                (40, "memcpy @libc.so.6 <- text_add (text.c:6) <- main (text.c:20)"),
                (58, "main (text.c:21)"),
            ],
        );
        expect![[r#"
            buffer-copies 48 % (28..65) @ text_add:6: app spent 39.8 µs of its 100 µs copying bytes from one buffer to another (40 %).
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn a_block_made_larger_piece_by_piece_is_found_wherever_it_stays() {
        let text = computing(
            "C",
            &[
                (
                    20,
                    "_int_realloc @libc.so.6 <- realloc @libc.so.6 <- append (log.c:14) <- main (log.c:28)",
                ),
                (
                    8,
                    "_int_free @libc.so.6 <- _int_realloc @libc.so.6 <- realloc @libc.so.6 <- append (log.c:14) <- main (log.c:28)",
                ),
                (2, "free @libc.so.6 <- main (log.c:33)"),
                (70, "main (log.c:25)"),
            ],
        );
        expect![[r#"
            buffer-copies 14 % (0..47) @ append:14: app spent 27.9 µs of its 100 µs enlarging blocks of memory (28 %).
        "#]].assert_eq(&found(&text));
        let report = super::super::tests::weighed(&text);
        expect![[r#"
            memory grown piece by piece
            28 of 100 samples are in enlarging blocks; in test programs, growing in fewer steps saved between a fifth and all of this time"#]]
        .assert_eq(&format!(
            "{}\n{}",
            report.findings[0].title,
            report.findings[0].evidence.join("\n")
        ));
    }

    #[test]
    fn a_vector_that_grows_inside_its_library_stays_allocation() {
        let text = computing(
            "Rust",
            &[
                (
                    30,
                    "realloc @libc.so.6 <- alloc::raw_vec::finish_grow <- alloc::raw_vec::RawVec<T,A>::grow_one <- fill (a.rs:3) <- main (a.rs:9)",
                ),
                (70, "main (a.rs:9)"),
            ],
        );
        expect![[r#"
            allocation 37 % (12..55) @ fill:3: app spent 29.9 µs of its 100 µs in the allocator (30 %).
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn a_loop_that_copies_is_found_if_it_is_inlined_too() {
        let shift = "mem.copyForwards (/zig/lib/std/mem.zig:247) in app.words (a.zig:4) <- app.main (a.zig:9)";
        let shift = computing("Zig", &[(60, shift), (40, "app.main (a.zig:9)")]);
        let found = super::super::tests::with_source(
            &shift,
            "a.zig",
            4,
            "std.mem.copyForwards(u8, rest[0..left], rest[end..]);",
        );
        let found = &found.findings[0];
        assert_eq!((found.class.as_str(), found.sites[0].line), ("buffer-copies", 4));
    }

    #[test]
    fn words_loaded_through_an_inlined_copy_are_refused() {
        let load = "core::ptr::copy_nonoverlapping (/rustc/1/library/core/src/ptr.rs:1) in \
             hashbrown::Group::load (/rust/deps/hashbrown/g.rs:3) in count (a.rs:2) <- main (a.rs:9)";
        assert_eq!(found(&computing("Rust", &[(50, load), (50, "main (a.rs:9)")])), "");
    }

    #[test]
    fn copies_that_are_the_programs_job_are_refused() {
        let text = computing(
            "C",
            &[
                // Its own line asks for them.
                (50, "memcpy @libc.so.6 <- tile_blit (blit.c:30) <- main (blit.c:80)"),
                // Copying out of a stream's buffer is the stream's job.
                (
                    40,
                    "memcpy @libc.so.6 <- _IO_file_xsgetn @libc.so.6 <- fread @libc.so.6 <- load (blit.c:9) <- main (blit.c:80)",
                ),
                (10, "main (blit.c:80)"),
            ],
        );
        assert_eq!(found(&text), "");
    }
}
