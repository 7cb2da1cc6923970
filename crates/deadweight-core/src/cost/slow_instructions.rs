//! Slow instructions.
//!
//! # What it is
//! A loop divides by a value that the compiler did not know, or takes square roots: 10 to 40 cycles where a multiplication
//! takes 3.
//!
//! # How deadweight knows
//! Most samples of the loop come just after a division or a root, or after instructions that need its result: the machine
//! code says what the time went to. The latter count only where a turn does little else, and uses memory that fits the
//! caches. There is a finding where something else would do: the divisor is the same in all turns of the loop, or one of
//! a few (the registers show which), so that inverses can be computed before; or the root is only compared. The saving is
//! an estimate: what replaces the division costs too.
//!
//! # What it is mistaken for
//! Division by a constant: compilers multiply instead. Divisors that differ each time, and roots whose value is needed:
//! these are the work. A division beside longer work, or before a look-up in a large table: it goes on meanwhile, or the
//! memory is waited for (`cache-misses`).
//!
//! # What to do
//! Multiply by the inverse, computed once outside the loop; a power of two, and a mask instead of a remainder;
//! 32 bits instead of 64; counters that wrap by a comparison; `x < r * r` instead of a root.
//!
//! # Seen in
//! Sums of quotients by eight divisors in turn: 71 % of the time.
//! In `tests/programs`: `divides.c`, `delay_line.c`.

use super::{Claim, Class, Inspection};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights};
use crate::facts::hot_loops::divisions::Divisions;
use crate::facts::hot_loops::reason::Reason;
use crate::facts::hot_loops::{LoopSample, is_of_loops};
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::inspect::shares::sampled_sites;
use crate::inspect::slow_loops::{SlowLoops, Waited, turns};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, time};
use deadweight_trace::ids::StackId;

pub(super) const CLASS: Class = Class {
    id: "slow-instructions",
    source: include_str!("slow_instructions.rs"),
    // The time is the loop's work; its row is that of the work.
    claim: Claim::Slices(|_, _| false),
    inspect,
};

/// Below this share of the wall time it does not matter.
const LARGE: f64 = 0.1;
/// The part of the time at divisions that another computation saves: least, typical, most. Pairs of programs saved 29 to
/// 67 % of their time, with 84 to 93 % of it there.
const SAVED: (f64, f64, f64) = (0.3, 0.65, 0.85);

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts_of_all(draft)
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let loops = SlowLoops::of(found, process, |why| match why {
        Reason::Divisions(places) => Some(places),
        _ => None,
    })?;
    let divides = |s: &LoopSample| {
        loops.all.iter().any(|(_, places)| places.contains_key(&(s.function, s.waited)))
    };
    let mut waited = Waited::of(found, process, loops.samples(), is_of_loops, divides)?;
    if waited.ns.share_of(net) < LARGE {
        return None;
    }
    let (hot, places) = loops.hottest()?;
    let later = places.iter().any(|((_, at), division)| at != division);
    let after =
        if later { "a division, or after what needs its result" } else { "a division or a root" };
    let in_what = if later {
        "in divisions, and waiting for their results"
    } else {
        "in divisions or square roots"
    };
    waited.places = at_divisions(facts, &waited.places, &loops);
    let mut evidence = vec![format!(
        "{:.0} % of the loop's {} samples come just after {after}",
        hot.part(divides) * 100.0,
        hot.samples.len()
    )];
    evidence.extend(turns(hot));
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "a loop that divides".into(),
        text: format!(
            "{} spent {} of {} ({}) {in_what}.",
            loops.name(&facts.name(process)),
            time(waited.ns),
            time(net),
            percent(waited.ns, net),
        ),
        amount: waited.ns,
        saving: waited.ns.part(SAVED.1),
        range: (waited.ns.part(SAVED.0), waited.ns.part(SAVED.2)),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &waited.places),
        evidence,
        remedy: "Multiply by the inverse, computed once before the loop; use a power of two and a mask; \
                 divide 32-bit numbers; let a counter wrap by a comparison."
            .into(),
    })
}

/// The places of samples, where those that wait for a division stand for it, as far as its line is known.
fn at_divisions(facts: &Facts<'_>, places: &Weights, loops: &SlowLoops<'_, Divisions>) -> Weights {
    let of = |stack: StackId| {
        let mut samples = loops
            .all
            .iter()
            .flat_map(|(hot, divided)| hot.samples.iter().map(move |sample| (sample, *divided)));
        let (sample, divisions) = samples.find(|(sample, _)| sample.stack == stack)?;
        let division = divisions.get(&(sample.function, sample.waited))?;
        facts.machine.location(facts.machine.code(sample.function).image, *division)
    };
    let mut moved = Weights::new();
    for (site, weight) in places {
        let at = site.stack().and_then(|stack| Some(CallSite::Waited(stack, of(stack)?)));
        moved.entry(at.unwrap_or(*site)).or_default().amount += weight.amount;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, looping, scattered};

    // 0: xor edx, edx; 2: mov rax, [rcx]; 5: div rsi; 8: add r8, rax; b: add rcx, 8; f: cmp rcx, r9; 12: jne 0; 14: ret
    const DIVIDES: &str = "code share @0x1000 31d2 488b01 48f7f6 4901c0 4883c108 4c39c9 75ec c3";

    fn at(place: u64) -> String {
        looping(DIVIDES, 100, |i| {
            let stack = format!("share (s.c:5) @{place:#x} <- main (s.c:9) @0x2000");
            (stack, vec![(1, 0x7f00_0000_0000 + i * 100 % 4096)])
        })
    }

    #[test]
    fn samples_after_a_division_are_found() {
        let said = found(&at(0x1008));
        assert!(said.starts_with("slow-instructions 65") && said.contains("@ share:5"), "{said}");
    }

    // 0: mov rax, rbx; 3: xor edx, edx; 5: sub rax, [r11+rcx*8]; 9: div rsi; c: movss xmm0, [rdi+rdx*4]
    // 11: mulss xmm0, [r10+rcx*4]; 17: add rcx, 1; 1b: addss xmm1, xmm0; 1f: cmp rcx, r8; 22: jne 0; 24: ret
    const TAPS: &str =
        "4889d8 31d2 492b04cb 48f7f6 f30f100497 f3410f59048a 4883c101 f30f58c8 4c39c1 75dc c3";

    /// Samples behind the instruction before `place`, of a loop with a table of so many numbers.
    fn taps(code: &str, place: u64, table: u64) -> String {
        looping(&format!("code feed @0x1000 {code}"), 100, |i| {
            let stack = format!("feed (s.c:5) @{place:#x} <- main (s.c:9) @0x2000");
            let remainder = scattered(i, table);
            (stack, vec![(1, i * 37 % 96), (2, remainder), (6, 9999), (7, 0x7f00_0000_0000)])
        })
    }

    #[test]
    fn samples_after_what_needs_the_remainder_are_found() {
        for place in [0x1017, 0x101f] {
            let said = found(&taps(TAPS, place, 1 << 14));
            assert!(
                said.starts_with("slow-instructions 65 % (27..87) @ feed:5"),
                "{place:#x} {said}"
            );
        }
    }

    #[test]
    fn what_does_not_need_the_remainder_a_large_table_and_a_rare_division_are_refused() {
        // After add rcx, 1.
        assert_eq!(found(&taps(TAPS, 0x101b, 1 << 14)), "");
        // 64 MiB: perhaps memory is waited for.
        assert_eq!(found(&taps(TAPS, 0x1017, 1 << 24)), "");
        // 3: test al, 63; 5: jne d: only some turns divide.
        let rare = TAPS.replace("31d2 492b04cb", "a83f 7506 31d2 90").replace("75dc", "75db");
        let refused = found(&taps(&rare, 0x1018, 1 << 14));
        assert_eq!(refused, "");
    }

    #[test]
    fn a_division_beside_longer_work_is_refused() {
        // Twice as long a chain: mulss xmm1, xmm2; addss xmm1, xmm0
        let longer = TAPS.replace("f30f58c8 4c39c1 75dc", "f30f59ca f30f58c8 4c39c1 75d8");
        assert_eq!(found(&taps(&longer, 0x1017, 1 << 14)), "");
    }

    #[test]
    fn a_few_divisors_are_found_and_many_are_refused() {
        // 0: mov rax, [rcx]; 3: xor edx, edx; 5: mov rsi, [rcx+8]; 9: div rsi; c: add rcx, 16; 10: cmp rcx, r9; 13: jne 0; ret
        let code = "code share @0x1000 488b01 31d2 488b7108 48f7f6 4883c110 4c39c9 75eb c3";
        let by = |divisors: u64| {
            looping(code, 100, |i| {
                let stack = "share (s.c:5) @0x100c <- main (s.c:9) @0x2000";
                (stack.into(), vec![(1, 0x7f00_0000_0000 + i * 160), (6, 1000 + i % divisors)])
            })
        };
        assert!(found(&by(5)).starts_with("slow-instructions"), "{}", found(&by(5)));
        assert_eq!(found(&by(50)), "");
    }

    #[test]
    fn a_root_that_is_compared_is_found_and_one_that_is_added_is_refused() {
        // 0: movsd xmm0, [rcx]; 4: sqrtsd xmm1, xmm0; 8: comisd xmm1, xmm2; c: adc eax, 0; f: add rcx, 8; 13: cmp rcx, r9; 16: jne 0
        let code = "code near @0x1000 f20f1001 f20f51c8 660f2fca 83d000 4883c108 4c39c9 75e8 c3";
        let text = looping(code, 100, |i| {
            let stack = "near (s.c:5) @0x1008 <- main (s.c:9) @0x2000";
            (stack.into(), vec![(1, 0x7f00_0000_0000 + i * 100 % 4096)])
        });
        assert!(found(&text).starts_with("slow-instructions"), "{}", found(&text));
        // addsd xmm2, xmm1
        assert_eq!(found(&text.replace("660f2fca", "f20f58d1")), "");
    }

    #[test]
    fn samples_after_other_instructions_and_a_multiplication_are_refused() {
        assert_eq!(found(&at(0x100b)), "");
        // mul rsi
        assert_eq!(found(&at(0x1008).replace("48f7f6", "48f7e6")), "");
    }
}
