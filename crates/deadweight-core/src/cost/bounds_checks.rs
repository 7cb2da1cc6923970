//! Bounds checks.
//!
//! # What it is
//! Before each access of an array the program compares the index with the length, and branches to a
//! panic if the index is too large. In a short hot loop the checks are a large part of the
//! instructions. They also keep the compiler from processing several elements at once.
//!
//! # How deadweight knows
//! The machine code of the functions that samples hit: a compare and a branch whose cold side calls
//! the language's own panic (Go, Rust, Zig, Crystal, C++'s `at()`). The cost of the checks is
//! measured by their part of a hot loop's instructions, not by the samples that hit them: the
//! processor decides which instruction of a group a sample hits, and on some processors it is never
//! the check. The saving is always a candidate. Processors do most checks in parallel with other
//! work, so the saving may be nothing. Where the checks kept a loop from being vectorised, it is
//! several times the share of the checks. In Zig one setting controls the checks of indexes and of
//! overflow, so both count. `--prove` runs a copy of the program without the checks. Instructions
//! that do nothing take their place, so a copy that is no faster proves little.
//!
//! # What it is mistaken for
//! A wait for memory: a check of an index that was just loaded waits for that load, and the program
//! would still wait without the check. deadweight leaves out such checks, and loops whose samples
//! nearly all wait for one to three instructions that are no checks. It also leaves out checks
//! outside hot loops.
//!
//! # What to do
//! Show the compiler the length once, before the loop: slice to a common length, or iterate instead
//! of indexing. Measure before you keep anything unsafe.
//!
//! # Seen in
//! A simulation of heat on a plate: every access of a row checked both indexes.
//! In `tests/programs`: `checked_rows.rs`, `stencil.go`; refused in `chase.rs`.

use super::{AccountId, Claim, Class, Inspection, NET_WORK};
use crate::facts::call_site::{CallSite, Weights, add, own_frame};
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::hot_code::hot_code;
use crate::inspect::shares::{Own, sampled_sites, samples_of};
use crate::inspect::{Draft, processes_in};
use deadweight_code::machine_code::FunctionId;
use deadweight_code::{Loop, Role};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::ids::LocationId;
use deadweight_trace::symbols::SourceFrame;
use deadweight_trace::units::{FileAddr, Ns};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CLASS: Class = Class {
    id: "bounds-checks",
    source: include_str!("bounds_checks.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time checks are the normal cost of safety.
const LARGE: f64 = 0.06;
/// A loop with a smaller part of checks among its instructions is limited by other work.
const MANY: f64 = 0.15;
/// A loop that spends more than this part of its time waiting for one instruction that is no check
/// is limited by that instruction. The processor does the checks meanwhile.
const WAITING: f64 = 0.6;
/// So is a loop that spends more than this part in a few of its instructions, none of them a check: a cache
/// miss shows at the load, at what needs the value, and at what retires next.
const WAITING_FEW: f64 = 0.85;
/// How many instructions are few: at most so many, and at most one of so many.
const FEW: (usize, usize) = (3, 5);
/// The part of a loop's other time that remains if a compiler can process several elements at once:
/// from pairs of programs, with the 128-bit vectors that compilers use by default.
const VECTORISED: f64 = 0.5;

fn claim(sample: &UserSample<'_>) -> bool {
    let inside = sample.own == Some(sample.waited.at);
    let check = sample.waited.role == Role::BoundsCheck { after_load: false };
    inside && check && !sample.unoptimised
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let accounts = [AccountId::of_class(CLASS.id), NET_WORK];
    let entries = accounts.into_iter().flat_map(|account| found.wall.in_account(account));
    processes_in(entries).into_iter().filter_map(|process| draft(found, process)).collect()
}

/// A loop with checks, and the samples in it.
struct Checked {
    function: FunctionId,
    around: Loop,
    /// Samples that waited for a check.
    checks: u64,
    /// Samples of each instruction that is no check.
    others: BTreeMap<LocationId, u64>,
    places: Weights,
}

impl Checked {
    fn all(&self) -> u64 {
        self.checks + self.others.values().sum::<u64>()
    }

    /// Whether its checks are worth reporting.
    fn is_about_checks(&self) -> bool {
        self.around.bounds_check_share() >= MANY && !self.waits_for_memory()
    }

    /// Whether its time is in one instruction that is no check, or in very few.
    fn waits_for_memory(&self) -> bool {
        let mut hottest: Vec<u64> = self.others.values().copied().collect();
        hottest.sort_unstable_by(|a, b| b.cmp(a));
        let few = FEW.0.min(self.around.instructions as usize / FEW.1);
        let part = |of: usize| hottest.iter().take(of).sum::<u64>() as f64 / self.all() as f64;
        part(1) > WAITING || part(few) > WAITING_FEW
    }

    /// Which part of its instructions belongs to the checks.
    fn checking(&self, language: &str) -> f64 {
        if one_switch(language) {
            self.around.check_share()
        } else {
            self.around.bounds_check_share()
        }
    }

    /// Samples that its checks stand for.
    fn share(&self, language: &str) -> f64 {
        self.checking(language) * self.all() as f64
    }

    /// Samples that removing its checks may save.
    fn gain(&self, language: &str) -> f64 {
        let checking = self.checking(language);
        let all = self.all() as f64;
        match language {
            _ if vectorises(language) && self.around.uniform => {
                (1.0 - (1.0 - checking) * VECTORISED) * all
            }
            // Each check computes the length of a vector from its two ends.
            "C++" => checking * all,
            _ => f64::midpoint(checking * all, self.checks as f64).max(checking * all),
        }
    }

    /// Its samples on lines that have a check; all of them if no line is known.
    fn on_checked_lines(&self, found: &Inspection<'_, '_>) -> Weights {
        let (facts, symbols) = (found.facts, found.facts.symbols());
        let image = facts.machine.code(self.function).image;
        let checks = facts.machine.function(self.function).checks_in(&self.around);
        let lines: BTreeSet<SourceFrame> = checks
            .filter_map(|addr| facts.machine.location(image, addr))
            .filter_map(|at| own_frame(symbols, CallSite::At(at)).map(|(_, frame)| *frame))
            .collect();
        let checked =
            |site: &CallSite| own_frame(symbols, *site).is_some_and(|f| lines.contains(f.1));
        let mut places = self.places.clone();
        if places.keys().any(checked) {
            places.retain(|site, _| checked(site));
        }
        places
    }
}

/// The loops of a process that have many checks, hottest first, with their samples that no other
/// class claims.
fn loops(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Checked> {
    let facts = found.facts;
    let account = AccountId::of_class(CLASS.id);
    let mut loops: BTreeMap<(FunctionId, FileAddr), Checked> = BTreeMap::new();
    for (of, site, amount) in samples_of(found, process) {
        if of != account && of != NET_WORK {
            continue;
        }
        let Some(sample) = site.stack().map(|stack| facts.sample(stack)) else { continue };
        let waited = sample.waited;
        if sample.own != Some(waited.at) || sample.unoptimised {
            continue;
        }
        let Some((function, around)) = facts.machine.loop_around(waited) else { continue };
        let checked = loops.entry((function, around.first)).or_insert_with(|| Checked {
            function,
            around,
            checks: 0,
            others: BTreeMap::new(),
            places: Weights::new(),
        });
        match waited.role {
            Role::BoundsCheck { .. } => checked.checks += amount,
            _ => *checked.others.entry(waited.at).or_default() += amount,
        }
        checked.places.entry(site).or_default().amount += amount;
    }
    let mut loops: Vec<Checked> = loops.into_values().filter(Checked::is_about_checks).collect();
    loops.sort_by_key(|checked| std::cmp::Reverse(checked.all()));
    loops
}

/// A loop whose checks are worth reporting.
pub(crate) struct CheckedLoop {
    /// The function that has it.
    pub(crate) function: FunctionId,
    /// Where it is.
    pub(crate) around: Loop,
    /// The samples in it.
    pub(crate) samples: u64,
    /// The samples on lines with a check.
    pub(crate) places: Weights,
}

/// The loops that a finding of this class rests on, hottest first.
pub(crate) fn checked_loops(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<CheckedLoop> {
    let of = |checked: Checked| CheckedLoop {
        function: checked.function,
        around: checked.around,
        samples: checked.all(),
        places: checked.on_checked_lines(found),
    };
    loops(found, process).into_iter().map(of).collect()
}

/// Whether one setting of a language controls the checks of indexes and of overflow, so that both
/// are removed together.
fn one_switch(language: &str) -> bool {
    language == "Zig"
}

/// Whether the compilers of a language vectorise a plain loop by default. Go's never does, GCC not
/// at -O2.
fn vectorises(language: &str) -> bool {
    !matches!(language, "Go" | "C" | "C++")
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let own = Own::of(found.wall, process);
    let loops = loops(found, process);
    let hottest = &loops.first()?.around;
    let sum = |part: &dyn Fn(&Checked) -> f64| own.part(loops.iter().map(part).sum());
    let language = facts.processes.get(process).language.as_str();
    let amount = sum(&|checked| checked.share(language));
    if amount.share_of(net) < LARGE {
        return None;
    }
    let saving = sum(&|checked| checked.gain(language));
    let mut places = Weights::new();
    loops.iter().for_each(|checked| add(&mut places, &checked.on_checked_lines(found)));
    let in_loops: u64 = loops.iter().map(Checked::all).sum();
    let in_checks: u64 = loops.iter().map(|checked| checked.checks).sum();
    let mut evidence = vec![format!(
        "{in_loops} of {} samples are in loops with many checks, {in_checks} of them at a check; \
         checks of an index that was just loaded are not counted",
        own.samples
    )];
    if one_switch(language) && hottest.other_checks > 0 {
        evidence.push(format!(
            "checks for overflow take {} more in the hottest loop; the same setting removes them",
            things(u64::from(hottest.other_checks), "instruction")
        ));
    }
    if hottest.uniform && vectorises(language) {
        evidence.push(
            "apart from its checks, the hottest loop does the same with each element: without the \
             checks the compiler may process several elements at once"
                .into(),
        );
    }
    evidence.extend(hot_code(facts, &places));
    let in_loops = own.part(in_loops as f64);
    Some(Draft {
        class: CLASS.id,
        // The finding does not rest on the samples of its account.
        moves: false,
        process,
        title: "indexes checked in a hot loop".into(),
        text: format!(
            "{} spent {} of its {} ({}) in loops that compare indexes with lengths: {} of the {} \
             in the hottest loop. Only a test can show what removing these checks saves.",
            facts.name(process),
            time(in_loops),
            time(net),
            percent(in_loops, net),
            hottest.checks,
            things(u64::from(hottest.instructions), "instruction"),
        ),
        amount,
        saving,
        range: (Ns::ZERO, saving.max(amount)),
        how: How::Candidate,
        sites: sampled_sites(facts.symbols(), &places),
        evidence,
        remedy: remedy(language).into(),
    })
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Rust" => {
            "Slice all rows to one length before the loop (let (a, b) = (&a[..n], &b[..n]);), or \
             iterate: zip, windows(3), chunks_exact. Use get_unchecked only where that fails."
        }
        "Go" => {
            "Slice once before the loop (row := in[y*w : y*w+w]) and range over it, or touch the \
             last index first (_ = row[w-1]). go build -gcflags=-d=ssa/check_bce lists the checks \
             that remain."
        }
        "Zig" => {
            "Slice to one length before the loop and iterate: for (a[0..n], b[0..n]) |x, *y|; \
             where that fails, @setRuntimeSafety(false) in that one function, or ReleaseFast."
        }
        "Crystal" => "Iterate (each_with_index, zip), or use unsafe_fetch(i) in that one loop.",
        "C++" => "Iterate, or check the largest index once and use [] instead of at().",
        _ => "Check the largest index once before the loop, or iterate instead of indexing.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{coded, found, weighed};
    use expect_test::expect;

    /// `main.step` of `tests/programs/stencil.go`.
    const STEP: &str = "main.step @0x49e1a0
        554889e5488944241048897c2428b901000000eb0348ffc1498d52ff0f1f40004839d17d75ba01000000eb0a46
        891caf48ffc24c89c14d8d41ff4c39c27dd64989c8490fafc94c8d1c0a4d8d5bff4c8d24114c39db765d488d0c
        0a488d4901468b1c984839cb76474d89e54d29cc44031c884c39e376334b8d0c2946031ca0904839cb76204403
        1c88428b0ca8c1e1024129cb4c39ee7794eb025dc30f1f4000e8fb13feffe8f613feffe8f113feffe8ec13feff
        e8e713feff90";

    fn panicking(language: &str, code: &str, at: &str, stacks: &[(u64, &str)]) -> String {
        let calls = format!("\ncalls {at} runtime.panicBounds\ntask 1");
        coded(language, code, stacks).replacen("\ntask 1", &calls, 1)
    }

    #[test]
    fn checks_in_a_hot_loop_are_found_as_a_candidate() {
        let line = |at: &str| format!("main.step (main.go:11) {at} <- main.main (main.go:25)");
        let text = panicking(
            "Go",
            STEP,
            "0x47f640",
            &[
                (9, &line("@0x49e206")),
                (8, &line("@0x49e223")),
                (50, &line("@0x49e203")),
                (33, &line("@0x49e225")),
            ],
        );
        expect![[r#"
            bounds-checks 40 % (0..49) @ main.step:11: app spent 99.5 µs of its 100 µs (100 %) in loops that compare indexes with lengths: 10 of the 33 instructions in the hottest loop. Only a test can show what removing these checks saves.
        "#]].assert_eq(&found(&text));
        expect![[r#"
            100 of 100 samples are in loops with many checks, 50 of them at a check; checks of an index that was just loaded are not counted
            hottest code, in main.step:
                 0  lea rcx, [rcx+1h]
                50  mov r11d, [rax+r11*4]
                 9  cmp rbx, rcx                      main.go:11
                 0  jbe 49E24Fh
                 0  mov r13, r12
                 0  sub r12, r9
                 0  add r11d, [rax+rcx*4]
                 0  cmp rbx, r12
                 0  jbe 49E24Ah
                 0  lea rcx, [r9+r13]
                 0  add r11d, [rax+r12*4]
                 0  nop
                 8  cmp rbx, rcx
                33  jbe 49E245h"#]].assert_eq(&weighed(&text).findings[0].evidence.join("\n"));
    }

    /// `chase::follow` of `tests/programs/chase.rs`.
    const FOLLOW: &str = "chase::follow @0x14690
        31d231c04885f6741c0f1f800000000089d181faffff3f00770c8b148f4801d048ffce75ebc350488d15cae703
        00be000040004889cfff15e4060400";

    #[test]
    fn a_check_that_waits_for_its_index_is_refused() {
        let text = panicking(
            "Rust",
            FOLLOW,
            "0x54db0",
            &[
                (50, "chase::follow (c.rs:21) @0x146a8 <- chase::main (c.rs:13)"),
                (50, "chase::follow (c.rs:21) @0x146ad <- chase::main (c.rs:13)"),
            ],
        );
        assert_eq!(found(&text), "");
    }

    #[test]
    fn checks_that_no_sample_hits_are_found_in_the_code() {
        // As on AMD's Zen 5: nearly every sample hits the instruction after a load.
        let line = |at: &str| format!("main.step (main.go:11) {at} <- main.main (main.go:25)");
        let at = ["@0x49e1d0", "@0x49e1ee", "@0x49e20e", "@0x49e229"].map(line);
        let stacks = at.each_ref().map(|at| (10, at.as_str()));
        expect![[r#"
            bounds-checks 30 % (0..37) @ main.step:11: app spent 39.5 µs of its 40.0 µs (99 %) in loops that compare indexes with lengths: 10 of the 33 instructions in the hottest loop. Only a test can show what removing these checks saves.
        "#]]
        .assert_eq(&found(&panicking("Go", STEP, "0x47f640", &stacks)));
    }

    #[test]
    fn a_loop_that_waits_for_one_instruction_is_refused() {
        let text = panicking(
            "Go",
            STEP,
            "0x47f640",
            &[
                (4, "main.step (main.go:11) @0x49e206 <- main.main (main.go:25)"),
                (96, "main.step (main.go:11) @0x49e203 <- main.main (main.go:25)"),
            ],
        );
        assert_eq!(found(&text), "");
    }

    #[test]
    fn a_loop_whose_cache_misses_spread_over_three_instructions_is_refused() {
        // As in a walk by columns: the load, the instruction that needs it, and the next load.
        let stacks = |each: u64| {
            let line = |at: &str| format!("main.step (main.go:11) {at} <- main.main (main.go:25)");
            let at = ["@0x49e206", "@0x49e203", "@0x49e212", "@0x49e21f"].map(line);
            let hits = [100 - 3 * each, each, each, each];
            let stacks: Vec<_> = hits.into_iter().zip(at.iter().map(String::as_str)).collect();
            found(&panicking("Go", STEP, "0x47f640", &stacks))
        };
        assert_eq!(stacks(31), "");
        assert_ne!(stacks(26), "");
    }

    #[test]
    fn a_short_stay_in_such_a_loop_is_refused() {
        let text = panicking(
            "Go",
            STEP,
            "0x47f640",
            &[
                (9, "main.step (main.go:11) @0x49e206 <- main.main (main.go:25)"),
                (9, "main.step (main.go:11) @0x49e20e <- main.main (main.go:25)"),
                (90, "main.main (main.go:25) @0x49f000"),
            ],
        );
        assert_eq!(found(&text), "");
    }
}
