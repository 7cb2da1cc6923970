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
//! and, where a register counts the turns, turns that take much longer than their instructions need (a cycle is measured
//! after the run). Without
//! a count of misses (no PMU is used) this is an estimate. Where the loop only goes from index to index, in an array of
//! 4-byte indexes, nothing can be packed, and the order may be the data itself: this is a candidate. Samples behind a
//! branch may wait for what it compares: if that is on another line in each turn, and far, they count here.
//!
//! # What it is mistaken for
//! A stream that uses all of its lines: it is limited by memory bandwidth, and is not accused. A set
//! that fits the caches, however random. A sum of floating-point numbers from turn to turn, each of which waits for the
//! one before: without the time of a turn it looks like a wait for a table's numbers, and neither is accused. A list
//! whose nodes lie in order. A block of a matrix: its lines are still in the first cache when the next row uses their
//! next bytes. Pages instead of lines: see `small-pages`.
//!
//! # What to do
//! Walk in the order of memory: rows instead of columns, sorted queries, an array instead of a list. Put what a
//! loop uses side by side: an array for each field, or hot fields apart from cold ones. Smaller elements, indexes of 32
//! bits instead of pointers. Where the same data is passed again with other steps, as in a sieve: in blocks that fit a cache.
//!
//! # Seen in
//! A budget that reads five numbers of 256-byte records: 64 % of its time.
//! In `tests/programs`: `fields_of_records.c`, `shuffled_list.c`.

use super::{Claim, Class, Inspection};
use crate::facts::call_site::CallSite;
use crate::facts::hot_loops::memory::{LINE, Reached};
use crate::facts::hot_loops::reason::Reason;
use crate::facts::hot_loops::{HotLoop, is_of_loops};
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::inspect::shares::sampled_sites;
use crate::inspect::slow_loops::{SlowLoops, Waited, turns, waits_behind};
use deadweight_report::report::How;
use deadweight_report::wording::{bytes, percent, time};
use deadweight_trace::units::Ns;

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
    // Where a table is looked up at random, sorting the look-ups may cost what it saves.
    let is_sure = main.in_order || main.chased && !main.only_links;
    let least = if is_sure { saved(parts.0) } else { Ns::ZERO };
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
        range: (least, waited.ns),
        how: if main.only_links { How::Candidate } else { How::Estimate },
        sites: sampled_sites(facts.symbols(), &waited.places),
        evidence: evidence(hot, reached),
        remedy: match walks_buckets(found, &waited) {
            true => format!("{BUCKETS} {}", remedy(main)),
            false => remedy(main).into(),
        },
    })
}

/// The advice for a search in the chains of a hash table.
const BUCKETS: &str = "First look at the hash function: if it puts many keys into one bucket, each search walks a long chain \
    (bucket_size() shows it), and a better one saves all of that. Else:";

/// Whether most of this time is in searches in the buckets of C++'s hash tables, which are lists.
fn walks_buckets(found: &Inspection<'_, '_>, waited: &Waited) -> bool {
    let symbols = found.facts.symbols();
    let amount = |searches: bool| -> u64 {
        let in_table = |site: &CallSite| {
            let mut names = site.frames(symbols).map(|(_, frame)| symbols.name(frame.function));
            names.any(|name| {
                name.contains("::_M_find_before_node") || name.contains("::_M_find_node")
            })
        };
        let places = waited.places.iter().filter(|(site, _)| !searches || in_table(site));
        places.map(|(_, weight)| weight.amount).sum()
    };
    amount(true) * 2 > amount(false)
}

fn title(main: &Reached) -> &'static str {
    if main.in_order {
        "a loop fetches cache lines of which it uses little"
    } else if main.by_pointers {
        "a loop waits for memory behind pointers"
    } else {
        "a loop waits for memory in random order"
    }
}

fn what(main: &Reached) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
    let size = bytes(main.footprint() as u64);
    match main.spacing {
        Some(spacing) if main.strides_vary => format!(
            "it reaches {size} of cache lines or more in steps of changing size, {spacing} bytes in the median",
        ),
        Some(spacing) => format!(
            "it uses {:.0} of the {LINE} bytes of each cache line, {spacing} bytes apart, and reaches {size} of lines or more",
            main.used,
        ),
        None if main.only_links => format!(
            "it goes from index to index of an array that holds nothing else, in no order, and reaches {size} of cache \
             lines or more. Only a test can show whether another order of the data is possible"
        ),
        None if main.by_pointers => format!(
            "each turn goes to memory behind another pointer, and the loop reaches {size} of cache lines or more",
        ),
        None => format!("its addresses follow no order, and reach {size} of cache lines or more"),
    }
}

fn evidence(hot: &HotLoop, reached: &[Reached]) -> Vec<String> {
    let mut evidence = vec![waits_behind(hot, reached)];
    evidence.extend(turns(hot));
    evidence
}

fn remedy(main: &Reached) -> &'static str {
    if main.strides_vary {
        "Where the same data is passed again with each step size: take it in blocks that fit into a cache, and do \
         all steps in one block before the next, as a segmented sieve does. Or make the elements smaller: bits \
         instead of bytes."
    } else if main.in_order {
        "Put what the loop uses side by side: an array for each field, hot fields apart from cold ones, \
         rows instead of columns."
    } else if main.by_pointers {
        "If the pointers are the rows of a matrix, go through a row before the next one: swap the loops. If they are \
         objects, keep the objects themselves side by side in an array, or in an array what the loop uses of them."
    } else if main.only_links {
        "If the program may choose the order of the elements, give them the one in which they are used. If it can \
         follow several chains at once, do that in one loop: their waits overlap."
    } else {
        "Give the data the order in which it is used: an array instead of a list, sorted look-ups, nodes \
         in a block of their own; or make it smaller (indexes of 32 bits instead of pointers)."
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, looping, scattered, weighed};
    use super::CLASS;
    use deadweight_report::report::CheckOutcome;
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
        walked(250, place)
    }

    fn walked(samples: u64, place: impl Fn(u64) -> u64) -> String {
        looping(LIST, samples, |i| {
            let stack = "walk (s.c:5) @0x1004 <- main (s.c:9) @0x2000";
            (stack.into(), vec![(7, 0x7f00_0000_0000 + place(i))])
        })
    }

    #[test]
    fn a_column_of_a_matrix_is_found() {
        expect![[r#"
            cache-misses 93 % (34..100) @ sum:5: A loop of app waited for memory for 995 µs of 1.00 ms (100 %): it uses 4 of the 64 bytes of each cache line, 4096 bytes apart, and reaches 6.0 MiB of lines or more.
        "#]].assert_eq(&found(&column(4096, 1000)));
    }

    /// Columns of 512 numbers, one after the other: 0: inc r8; 3: xor r9d, r9d; 6: addss xmm0, [rdi+r9]; c: add r9, 8192
    /// 13: cmp r9, 0x400000; 1a: jne 6; 1c: add rdi, 4; 20: cmp r8, 2048; 27: jne 0. `other`: which samples, 10 µs
    /// apart, are of other work; `turns`: how many of the loop came before a sample.
    fn columns(other: impl Fn(u64) -> bool, turns: impl Fn(u64) -> u64) -> String {
        let code = "code sum @0x1000 49ffc0 4531c9 f3420f58040f 4981c100200000 4981f900004000 75ea \
                    4883c704 4981f800080000 75d7 c3";
        looping(code, 400, |i| {
            if other(i) {
                return ("other (s.c:20) <- main (s.c:9) @0x2000".into(), Vec::new());
            }
            let (lane, at) = (turns(i) / 512, turns(i) % 512 * 8192);
            let stack = "sum (s.c:5) @0x100c <- main (s.c:9) @0x2000";
            (stack.into(), vec![(7, 0x7f00_0000_0000 + lane * 4), (8, lane), (9, at)])
        })
    }

    #[test]
    fn columns_between_phases_of_other_work_are_found() {
        // 5 ns for a turn.
        let other = |i| i / 40 % 2 == 1;
        let turns = |i| (0..=i).filter(|i| !other(*i)).count() as u64 * 1999;
        expect![[r#"
            cache-misses 47 % (17..57) @ sum:5: A loop of app waited for memory for 2.00 ms of 4.00 ms (50 %): it uses 4 of the 64 bytes of each cache line, 8192 bytes apart, and reaches 1.2 MiB of lines or more.
        "#]].assert_eq(&found(&columns(other, turns)));
    }

    /// One number of records is compared, which are so far `apart`, and counts if it is the same.
    /// 0: jmp e; 2: add rdi, 256; 9: cmp rdi, r8; c: je 18; e: cmp [rdi], esi; 10: jne 2; 12: addsd xmm0, xmm1; 16: jmp 2; 18: ret
    fn compared(records: u64, apart: u32) -> String {
        let by: String = apart.to_le_bytes().map(|byte| format!("{byte:02x}")).concat();
        let code =
            format!("code count @0x1000 eb0c 4881c7{by} 4c39c7 740a 3937 75f0 f20f58c1 ebea c3");
        looping(&code, 100, |i| {
            let place = [0x1009, 0x1012, 0x1016][usize::try_from(scattered(i, 3)).unwrap()];
            let stack = format!("count (s.c:5) @{place:#x} <- main (s.c:9) @0x2000");
            (stack, vec![(7, 0x7f00_0000_0000 + i * 1000 % records * u64::from(apart))])
        })
    }

    #[test]
    fn a_field_that_a_branch_compares_is_found_and_not_the_branch() {
        let said = found(&compared(1_000_000, 256));
        assert!(said.starts_with("cache-misses") && said.contains("@ count:5"), "{said}");
        assert!(said.contains("it uses 4 of the 64 bytes of each cache line, 256 bytes"), "{said}");
        assert!(!said.contains("branch-misses"), "{said}");
    }

    #[test]
    fn fields_in_the_second_cache_or_close_to_each_other_are_refused() {
        assert_eq!(found(&compared(3_001, 256)), "");
        // Records of 32 bytes: the guesses take longer than half a line.
        let close = found(&compared(1_000_000, 32));
        assert!(close.starts_with("branch-misses") && !close.contains("cache-misses"), "{close}");
    }

    /// A part of a row is copied into a column. `run`: how many numbers at once.
    /// 0: movss xmm0, [rax]; 4: movss [rdx], xmm0; 8: add rax, 4; c: add rdx, 8192; 13: cmp rax, rcx; 16: jne 0; 18: ret
    fn transposed(run: u64) -> String {
        let code = "code turn @0x1000 f30f1000 f30f1102 4883c004 4881c200200000 4839c8 75e8 c3";
        looping(code, 250, |i| {
            let (at, left) = (scattered(i, 1 << 22) * 4, scattered(i, run));
            let (from, to) = (0x7e00_0000_0000 + at, 0x7f00_0000_0000 + at);
            let stack = "turn (s.c:5) @0x1008 <- main (s.c:9) @0x2000";
            (stack.into(), vec![(0, from), (1, from + left * 4), (2, to)])
        })
    }

    #[test]
    fn a_transposition_by_columns_is_found_and_one_by_blocks_is_refused() {
        let said = found(&transposed(2048));
        assert!(
            said.contains("it uses 4 of the 64 bytes of each cache line, 8192 bytes"),
            "{said}"
        );
        assert_eq!(found(&transposed(16)), "");
    }

    #[test]
    fn columns_that_take_half_of_their_time_are_refused() {
        // The other work of each column lies between two samples: a turn takes 2.5 ns.
        assert_eq!(found(&columns(|i| scattered(i, 2) == 1, |i| i * 1999)), "");
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
    fn where_the_cpu_is_fast_its_own_cycles_count() {
        let at_3_6_ghz = |text: String| text.replacen("task 1", "cycle 274\ntask 1", 1);
        // A turn takes 2.5 ns: twice as long as at 2.5 GHz, three times as long as at 3.6.
        assert_eq!(found(&column(4096, 4000)), "");
        let said = found(&at_3_6_ghz(column(4096, 4000)));
        assert!(said.starts_with("cache-misses"), "{said}");
        assert_eq!(found(&at_3_6_ghz(column(4096, 6600))), "");
        assert_eq!(found(&at_3_6_ghz(column(4, 4000))), "");
    }

    /// A column of a matrix whose rows are blocks of their own.
    /// 0: mov rax, [rdi]; 3: add rdi, 24; 7: movsd xmm0, [rax+rcx*8]; c: add edx, 1; f: cmp edx, esi; 11: jne 0; 13: ret
    fn rows(place: impl Fn(u64) -> u64) -> String {
        let code = "code sum @0x1000 488b07 4883c718 f20f1004c8 83c201 39f2 75ed c3";
        looping(code, 250, |i| {
            let at = i * 1000 % 1_000_000;
            let registers = vec![
                (0, 0x7f00_0000_0000 + place(at)),
                (1, 5),
                (2, at),
                (7, 0x7e00_0000_0000 + at * 24),
            ];
            ("sum (s.c:5) @0x100c <- main (s.c:9) @0x2000".into(), registers)
        })
    }

    #[test]
    fn rows_behind_pointers_are_not_said_to_have_no_order() {
        let said = found(&rows(|at| scattered(at, 1 << 20) * 64));
        assert!(said.contains("each turn goes to memory behind another pointer"), "{said}");
    }

    #[test]
    fn a_list_whose_reach_is_unknown_is_not_ruled_out_and_one_in_order_is() {
        let outcome = |text: &str| {
            let report = weighed(text);
            assert!(!report.findings.iter().any(|f| f.class == CLASS.id));
            report.checks.into_iter().find(|c| c.class == CLASS.id).unwrap().outcome
        };
        let few = walked(100, |i| scattered(i, 1 << 20) * 64);
        assert_eq!(outcome(&few), CheckOutcome::NotCheckable);
        assert_eq!(outcome(&list(|i| i * 4000 % 1_000_000 * 64)), CheckOutcome::RuledOut);
        assert_eq!(outcome(&list(|i| scattered(i, 1 << 12) * 64)), CheckOutcome::RuledOut);
    }

    #[test]
    fn a_list_in_random_order_is_found_and_one_in_order_is_refused() {
        let random = list(|i| scattered(i, 1 << 20) * 64);
        expect![[r#"
            cache-misses 85 % (18..100) @ walk:5: A loop of app waited for memory for 2.50 ms of 2.50 ms (100 %): its addresses follow no order, and reach 1.9 MiB of cache lines or more.
        "#]].assert_eq(&found(&random));
        // 4000 nodes from one sample to the next, of a million; and of a thousand, round and round.
        assert_eq!(found(&list(|i| i * 4000 % 1_000_000 * 64)), "");
        assert_eq!(found(&list(|i| i * 370 % 1000 * 64)), "");
        // As random, in 256 KiB.
        assert_eq!(found(&list(|i| scattered(i, 1 << 12) * 64)), "");
    }

    /// A sieve that crosses numbers out in steps of `step`.
    /// 0: mov byte [rdi+rax], 1; 4: add rax, rdx; 7: cmp rax, rsi; a: jle 0; c: ret
    fn sieve(step: impl Fn(u64) -> u64) -> String {
        let code = "code sieve @0x1000 c6040701 4801d0 4839f0 7ef4 c3";
        looping(code, 250, |i| {
            let at = i * 400_000 % 60_000_000;
            let stack = "sieve (s.c:5) @0x1004 <- main (s.c:9) @0x2000";
            (stack.into(), vec![(0, at), (2, step(i)), (7, 0x7f00_0000_0000)])
        })
    }

    #[test]
    fn a_sieve_gets_advice_about_blocks_and_a_column_does_not() {
        let changing = weighed(&sieve(|i| 3 + i / 50 * 400)).findings.remove(0);
        assert!(
            changing.text.contains("in steps of changing size, 803 bytes"),
            "{}",
            changing.text
        );
        assert!(changing.remedy.contains("in blocks that fit"), "{}", changing.remedy);
        let one = weighed(&sieve(|_| 803)).findings.remove(0);
        assert!(one.text.contains("of each cache line, 803 bytes apart"), "{}", one.text);
        assert!(one.remedy.starts_with("Put what the loop uses side by side"), "{}", one.remedy);
    }

    #[test]
    fn a_search_in_the_chains_of_a_hash_table_gets_advice_about_the_hash() {
        let random = list(|i| scattered(i, 1 << 20) * 64);
        let remedy = |text: &str| weighed(text).findings.remove(0).remedy;
        assert!(remedy(&random).starts_with("Give the data the order"));
        let in_table = random.replace(
            "sample walk (",
            "sample \"std::_Hashtable<long>::_M_find_before_node\" (h.h:9) in walk (",
        );
        assert!(remedy(&in_table).starts_with("First look at the hash"), "{}", remedy(&in_table));
    }

    #[test]
    fn a_sum_of_products_of_rows_in_any_order_is_refused() {
        // As Go compiles it. 0: lea rsi, [rcx+rax]; 4: lea rsi, [rsi+8]; 8: movss xmm1, [rsi+rbx*4]; d: lea rsi, [rdx+rax]
        // 11: lea rsi, [rsi+8]; 15: mulss xmm1, [rsi+rbx*4]; 1a: addss xmm0, xmm1; 1e: inc rbx; 21: cmp rbx, 96; 25: jl 0
        let code = "code near @0x1000 488d3401 488d7608 f30f100c9e 488d3402 488d7608 f30f590c9e f30f58c1 \
                    48ffc3 4883fb60 7cd9 c3";
        let text = looping(code, 250, |i| {
            let stack = "near (s.go:5) @0x101e <- main (s.go:9) @0x2000";
            let row = 0x7f00_0000_0000 + scattered(i, 1 << 14) * 400;
            (stack.into(), vec![(3, i * 37 % 96), (6, row)])
        });
        assert_eq!(found(&text), "");
    }

    #[test]
    fn numbers_of_a_table_are_found_and_a_sum_that_may_wait_for_itself_is_refused() {
        // 0: mov eax, [rsi+rcx*4]; 3: add edx, [rdi+rax*4]; 6: inc rcx; 9: cmp rcx, 96; d: jl 0; f: ret
        let table = |code: &str, after: u64| {
            looping(&format!("code pick @0x1000 {code} c3"), 250, |i| {
                let stack = format!("pick (s.c:5) @{after:#x} <- main (s.c:9) @0x2000");
                let at = scattered(i, 1 << 22);
                (stack, vec![(0, at), (1, i * 37 % 96), (7, 0x7f00_0000_0000)])
            })
        };
        let whole = found(&table("8b048e 031487 48ffc1 4883f960 7cf1", 0x1006));
        assert!(whole.starts_with("cache-misses 85 % (0..100) @ pick:5"), "{whole}");
        // addss xmm1, [rdi+rax*4], after xorps xmm1, xmm1: no sum from turn to turn
        let each = found(&table("8b048e 0f57c9 f30f580c87 48ffc1 4883f960 7cec", 0x100b));
        assert!(each.starts_with("cache-misses 85 % (0..100) @ pick:5"), "{each}");
        // addss xmm0, [rdi+rax*4]
        assert_eq!(found(&table("8b048e f30f580487 48ffc1 4883f960 7cef", 0x1008)), "");
    }

    #[test]
    fn buckets_and_nodes_of_a_large_table_are_found_together_and_those_of_a_small_one_refused() {
        // 0: mov rax, [rdi+rcx*8]; 4: add rdx, [rax]; 7: mov rcx, rdx; a: dec rsi; d: jne 0; f: ret
        let code = "code get @0x1000 488b04cf 480310 4889d1 48ffce 75f1 c3";
        let table = |lines: u64| {
            found(&looping(code, 400, |i| {
                let stack =
                    format!("get (s.c:5) @{:#x} <- main (s.c:9) @0x2000", 0x1004 + i % 2 * 3);
                let (bucket, node) = (scattered(i, lines * 8), scattered(i + 400, lines) * 64);
                let (buckets, nodes) = (0x7e00_0000_0000, 0x7f00_0000_0000);
                (stack, vec![(0, nodes + node), (1, bucket), (6, 90_000 - i * 100), (7, buckets)])
            }))
        };
        let large = table(1 << 18);
        assert!(large.starts_with("cache-misses") && large.contains("@ get:5"), "{large}");
        assert_eq!(table(1 << 12), "");
    }

    #[test]
    fn links_alone_are_found_as_a_candidate() {
        // 0: mov eax, [rdi+rax*4]; 3: inc ecx; 5: test eax, eax; 7: jns 0; 9: ret
        let links = |code: &str, apart: u64| {
            found(&looping(&format!("code walk @0x1000 {code} c3"), 250, |i| {
                let stack = "walk (s.c:5) @0x1003 <- main (s.c:9) @0x2000";
                let at = scattered(i, 1 << 22) * apart;
                (stack.into(), vec![(0, at), (1, i), (7, 0x7f00_0000_0000)])
            }))
        };
        let alone = links("8b0487 ffc1 85c0 79f7", 1);
        assert!(alone.starts_with("cache-misses 85 % (0..100) @ walk:5"), "{alone}");
        // A number next to each link: add edx, [rdi+rax*4+4]
        let with_data = links("8b0487 03548704 ffc1 85c0 79f3", 2);
        assert!(with_data.starts_with("cache-misses 85 % (18..100)"), "{with_data}");
        // Other parts of the elements are not used in this loop: they can be put elsewhere.
        let sparse = links("8b0487 ffc1 85c0 79f7", 4);
        assert!(sparse.starts_with("cache-misses 85 % (18..100)"), "{sparse}");
    }

    #[test]
    fn without_a_line_of_source_nothing_is_said() {
        let text = column(4096, 1000).replace(" (s.c:5)", "").replace(" (s.c:9)", "");
        assert_eq!(found(&text), "");
    }
}
