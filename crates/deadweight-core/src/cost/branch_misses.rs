//! Branch misses.
//!
//! # What it is
//! A loop branches, jumps or calls through a pointer, and the CPU cannot guess where to. At each wrong guess it throws away
//! what it had begun, and starts again: 15 to 20 cycles.
//!
//! # How deadweight knows
//! Samples of such a loop come where its branches lead to: behind a condition, at the first instructions of a case, or
//! of the functions that a call through a pointer reaches. Registers count the turns: one takes several times as long
//! as its instructions need, and no memory out of the caches explains that. An estimate: misses are not
//! counted (no PMU is used).
//!
//! # What it is mistaken for
//! The end of an inner loop, checks that end in a panic: the CPU learns these. Conditions that go the same way for long.
//! Loads from far memory just behind a branch, or just before it: see `cache-misses`. A division that a branch leads
//! around: what comes behind it waits for the result. Elements of an array that are stored and loaded again for the next one,
//! as in tables of dynamic programming: each waits for the one before.
//!
//! # What to do
//! Sort or group the data, so that the same way comes many times in turn; compute both results and choose by a
//! mask or a table; a list for each kind instead of calls through a pointer.
//!
//! # Seen in
//! Bills of six tariffs in random order: 70 % of the time.
//! In `tests/programs`: `unsorted_kinds.cpp`.

use super::{Claim, Class, Inspection};
use crate::facts::Facts;
use crate::facts::hot_loops::reason::{Reason, comes_after};
use crate::facts::hot_loops::{HotLoop, is_of_loops};
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::inspect::shares::sampled_sites;
use crate::inspect::slow_loops::{SlowLoops, Waited, at_calls, turns};
use deadweight_code::Cycle;
use deadweight_code::instruction::Kind;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, time};

pub(super) const CLASS: Class = Class {
    id: "branch-misses",
    source: include_str!("branch_misses.rs"),
    // The time is the loop's work; its row is that of the work.
    claim: Claim::Slices(|_, _| false),
    inspect,
};

/// Below this share of the wall time it does not matter.
const LARGE: f64 = 0.08;
/// A loop without wrong guesses takes so many times as long as its instructions need: most, typical, least. Fast forms
/// of three programs took 0.8 to 1.8.
const GUESSED: (f64, f64, f64) = (2.0, 1.3, 0.8);

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts_of_all(draft)
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let loops = SlowLoops::of(found, process, |why| match why {
        Reason::Branches(ways) => Some(ways),
        _ => None,
    })?;
    let waited = Waited::of(found, process, loops.samples(), is_of_loops, |_| true)?;
    let (hot, ways) = loops.hottest()?;
    // Of several loops, the least.
    let ratios = loops.all.iter().filter_map(|(hot, _)| Some(hot.speed?.ratio()));
    let ratio = ratios.min_by(f64::total_cmp)?;
    let saved = |guessed: f64| waited.ns.part(1.0 - guessed / ratio);
    if saved(GUESSED.1).share_of(net) < LARGE {
        return None;
    }
    let all: Vec<&HotLoop> = loops.all.iter().map(|(hot, _)| *hot).collect();
    let places = at_calls(&waited.places, &all);
    let behind = hot.part(|sample| comes_after(facts, ways, sample));
    let mut evidence = vec![format!(
        "{:.0} % of the loop's {} samples come where its branches lead to",
        behind * 100.0,
        hot.samples.len()
    )];
    evidence.extend(turns(hot));
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "a loop whose branches cannot be guessed".into(),
        text: format!(
            "{} took {} of {} ({}), {ratio:.1} times as long as the instructions need: the branches go where the \
             CPU does not expect.",
            loops.name(&facts.name(process)),
            time(waited.ns),
            time(net),
            percent(waited.ns, net),
        ),
        amount: saved(GUESSED.2),
        saving: saved(GUESSED.1),
        range: (saved(GUESSED.0).part(0.7), saved(GUESSED.2)),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &places),
        evidence,
        remedy: remedy(facts, hot).into(),
    })
}

fn remedy(facts: &Facts<'_>, hot: &HotLoop) -> &'static str {
    let by_table = |cycle: Cycle<'_>| cycle.instructions().any(|i| i.kind == Kind::Jump(None));
    if hot.cycle(facts).is_some_and(by_table) {
        "Sort or group the work by its kind. Where the order matters, as in an interpreter: end each case \
         with a jump of its own to the next one, and make one case of pairs that often follow each other."
    } else if hot.calls() {
        "Sort or group the objects by their kind, or keep a list for each kind: then the calls of one kind follow \
         each other."
    } else {
        "Sort or group the data by what the branch depends on; or compute both results and choose without a \
         branch (a table, a mask, a minimum)."
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, looping, scattered};
    use deadweight_report::report::CheckOutcome;

    // 0: movzx edx, [rdi]; 3: test dl, dl; 5: jns a; 7: add rax, rdx; a: inc rdi; d: cmp rsi, rdi; 10: jne 0; ret
    const CHOICE: &str = "code choose @0x1000 0fb617 84d2 7903 4801d0 48ffc7 4839fe 75ee c3";
    /// After the first instruction behind the branch, on both ways, and before the branch.
    const BEHIND: [u64; 2] = [0x100a, 0x100d];
    const ELSEWHERE: [u64; 2] = [0x1003, 0x1005];

    /// So many turns from one sample to the next, which come at one of these places.
    fn choosing(turns: u64, places: [u64; 2]) -> String {
        looping(CHOICE, 100, |i| {
            let place = places[usize::from(scattered(i, 2) == 1)];
            let stack = format!("choose (s.c:5) @{place:#x} <- main (s.c:9) @0x2000");
            (stack, vec![(7, 0x7f00_0000_0000 + i * turns)])
        })
    }

    /// Without a register that counts, the branches may be the reason or not: that is not ruled out.
    #[test]
    fn a_loop_whose_turns_no_register_shows_is_not_checkable() {
        let outcome = |text: &str| {
            let checks = super::super::tests::weighed(text).checks;
            let check = checks.into_iter().find(|check| check.class == "branch-misses").unwrap();
            (check.outcome, check.why)
        };
        let still = |places| choosing(0, places);
        assert_eq!(outcome(&still(ELSEWHERE)), (CheckOutcome::RuledOut, String::new()));
        let (seen, why) = outcome(&still(BEHIND));
        assert_eq!(seen, CheckOutcome::NotCheckable);
        assert!(why.contains("no register shows how often"), "{why}");
        assert_eq!(outcome(&choosing(1000, BEHIND)).0, CheckOutcome::Found);
    }

    #[test]
    fn samples_behind_a_branch_of_a_slow_loop_are_found() {
        // 10 ns a turn; its seven instructions need less than one.
        let said = found(&choosing(1000, BEHIND));
        assert!(said.starts_with("branch-misses 9") && said.contains("@ choose:5"), "{said}");
    }

    #[test]
    fn a_fast_loop_and_samples_elsewhere_are_refused() {
        assert_eq!(found(&choosing(10_000, BEHIND)), "");
        assert_eq!(found(&choosing(1000, ELSEWHERE)), "");
    }

    #[test]
    fn a_loop_with_a_locked_instruction_is_refused() {
        // In place of `add rax, rdx`: lock inc dword [rdi].
        let locked = |text: String| {
            text.replace(
                "0fb617 84d2 7903 4801d0 48ffc7 4839fe 75ee c3",
                "0fb617 84d2 7903 f0ff07 48ffc7 4839fe 75ee c3",
            )
        };
        let said = found(&locked(choosing(1000, BEHIND)));
        assert!(said.starts_with("atomics") && !said.contains("branch-misses"), "{said}");
    }

    #[test]
    fn samples_behind_a_branch_around_a_division_are_refused() {
        // As LLVM compiles a remainder by a variable: no division if the number is smaller.
        // 0: mov rax, r9; 3: cmp rax, rsi; 6: jb e; 8: xor edx, edx; a: div esi; c: mov eax, edx
        // e: add rcx, [rdi+rax*8]; 12: add r9, 7; 16: dec r10; 19: jne 0; 1b: ret
        let code =
            "code look @0x1000 4c89c8 4839f0 7206 31d2 f7f6 89d0 48030cc7 4983c107 49ffca 75e5 c3";
        let behind = |code: &str| {
            found(&looping(code, 100, |i| {
                let stack = "look (s.c:5) @0x1012 <- main (s.c:9) @0x2000";
                let (at, counted) = (scattered(i, 20_000), i * 7000);
                (stack.into(), vec![(0, at), (7, 0x7f00_0000_0000), (9, counted)])
            }))
        };
        assert_eq!(behind(code), "");
        // imul esi
        let said = behind(&code.replace("f7f6", "f7ee"));
        assert!(said.starts_with("branch-misses"), "{said}");
    }

    #[test]
    fn an_element_that_waits_for_the_one_stored_before_it_is_refused() {
        // 0: mov eax, [rdi+rcx*4-4]; 4: mov edx, [rsi+rcx*4]; 7: test edx, edx; 9: js d; b: add eax, edx
        // d: mov [rdi+rcx*4], eax; 10: inc rcx; 13: cmp rcx, r8; 16: jne 0; 18: ret
        let row = "code choose @0x1000 8b448ffc 8b148e 85d2 7802 01d0 89048f 48ffc1 4c39c1 75e8 c3";
        let turning = |code: &str, turns| {
            found(&looping(code, 100, |i| {
                let place = [0x100d, 0x1010][usize::from(scattered(i, 2) == 1)];
                let stack = format!("choose (s.c:5) @{place:#x} <- main (s.c:9) @0x2000");
                (stack, vec![(1, i * turns), (6, 0x7e00_0000_0000), (7, 0x7f00_0000_0000)])
            }))
        };
        // 3 ns: a store and the load of the next turn take 2 of them. 10 ns: they do not explain that.
        assert_eq!(turning(row, 3_300), "");
        assert!(turning(row, 1_000).starts_with("branch-misses"), "{}", turning(row, 1_000));
        // Its own old value: nothing waits.
        let own = row.replace("8b448ffc", "8b448f00");
        assert!(turning(&own, 3_300).starts_with("branch-misses"), "{}", turning(&own, 3_300));
    }

    #[test]
    fn without_a_register_that_counts_turns_it_is_refused() {
        let text = choosing(1000, BEHIND);
        let still: Vec<_> = text.lines().filter(|l| !l.contains(" registers 4 ")).collect();
        assert_eq!(found(&still.join("\n")), "");
    }
}
