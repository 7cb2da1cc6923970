//! Unoptimised build.
//!
//! # What it is
//! Code that was compiled without optimisation: every variable is in memory, every small function
//! is called, every check is made. Debug builds are meant to be like this, and are then timed by
//! mistake.
//!
//! # How deadweight knows
//! GCC and Go write their options into the binary. For other compilers, the machine code of the hot
//! functions shows it: at least 26 % of their instructions access their own stack frame, or most
//! functions first store their arguments in memory; or library functions of one or two instructions (Rust's checks of
//! pointers, Crystal's accesses) are called, not inlined. If no debug information shows what was inlined,
//! both signs are needed. The row is the time in such code that no other cost claims. The saving is
//! an estimate from fourteen programs that were built both ways (optimisation removed 54 to 86 % of
//! the time in C and C++, 85 to 96 % in Rust, 86 % in Zig, 36 and 66 % in Go). It depends on the
//! language and on the program.
//!
//! # What it is mistaken for
//! A few cold functions without optimisation; optimised code that is short of registers. As long as
//! a build is unoptimised, findings about its other costs are about the build too.
//!
//! # What to do
//! Build for release, then weigh the program again: the other findings may be gone.
//!
//! # Seen in
//! A log packer in Zig's default mode.
//! In `tests/programs`: `debug_build.zig`.

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::builds::Build;
use crate::facts::call_site::Weights;
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::shares::{Share, sampled_sites, samples_of};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, time};

pub(super) const CLASS: Class = Class {
    id: "unoptimised-build",
    source: include_str!("unoptimised_build.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time the build does not matter.
const LARGE: f64 = 0.05;

fn claim(sample: &UserSample<'_>) -> bool {
    sample.unoptimised
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

/// The part of the time in unoptimised code that optimisation removed: least, typical, most.
fn gain(language: &str) -> (f64, f64, f64) {
    match language {
        "C" | "C++" => (0.5, 0.75, 0.9),
        "Rust" => (0.7, 0.91, 0.97),
        "Zig" => (0.6, 0.86, 0.95),
        "Go" => (0.3, 0.55, 0.8),
        _ => (0.4, 0.8, 0.95),
    }
}

/// All samples in unoptimised code, of any account.
fn places(found: &Inspection<'_, '_>, process: ProcessId) -> Weights {
    let mut places = Weights::new();
    for (_, site, amount) in samples_of(found, process) {
        let Some(stack) = site.stack() else { continue };
        if found.facts.sample(stack).unoptimised {
            places.entry(site).or_default().amount += amount;
        }
    }
    places
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    let places = places(found, process);
    let ns = share.time_of(places.values().map(|weight| weight.amount).sum());
    if ns.share_of(net) < LARGE {
        return None;
    }
    let in_process = facts.processes.get(process);
    let (least, typical, most) = gain(&in_process.language);
    let (low, high) = share.interval(ns);
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "built without optimisation".into(),
        text: format!(
            "{} spent {} of its {} in code that was compiled without optimisation ({}).",
            facts.name(process),
            time(ns),
            time(net),
            percent(ns, net),
        ),
        amount: ns,
        saving: ns.part(typical),
        range: (low.part(least), high.part(most)),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &places),
        evidence: evidence(found, process),
        remedy: remedy(&in_process.language).into(),
    })
}

fn evidence(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<String> {
    let facts = found.facts;
    let Some(id) = facts.processes.get(process).image else { return Vec::new() };
    let mut evidence = Vec::new();
    let image = facts.symbols().images.get(id.index());
    if let Some(image) = image.filter(|image| image.optimised == Some(false)) {
        evidence.push(format!("built by {}", facts.symbols().name(image.producer)));
    }
    if let Some(share) = facts.build(id).and_then(Build::called_share) {
        evidence.push(format!(
            "{:.0} % of its samples are in calls of library functions of one or two instructions, which optimisation \
             puts into their callers",
            share * 100.0
        ));
    }
    if let Some(build) = facts.build(id).filter(|build| build.shape.functions > 0) {
        evidence.push(format!(
            "{:.0} % of the instructions in hot functions access their own stack frame, {:.0} % of \
             the functions first store their arguments in memory",
            build.shape.stack_share() * 100.0,
            build.shape.spilling_share() * 100.0
        ));
    }
    evidence
}

fn remedy(language: &str) -> &'static str {
    match language {
        "C" | "C++" => "Compile with -O2 (CMake: -DCMAKE_BUILD_TYPE=Release), then weigh again.",
        "Rust" => "cargo build --release (rustc -O), then weigh again.",
        "Go" => "Build without -gcflags='-N -l', then weigh again.",
        "Zig" => "zig build -Doptimize=ReleaseFast (or ReleaseSafe), then weigh again.",
        // With --debug Crystal 1.6 keeps variables in memory for a debugger: 0.49 s instead of
        // 0.10.
        "Crystal" => {
            "crystal build --release, without --debug (which turns the optimiser off), then weigh \
             again."
        }
        _ => "Build for release, then weigh again.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{computing, found};
    use expect_test::expect;

    /// `int sum(const int *p, int n)` by gcc 12 -O0, and -O2.
    const PLAIN: &str = "554889e548897de88975e4c745fc00000000c745f800000000eb1d8b45f84898488d1485\
         00000000488b45e84801d08b000145fc8345f8018b45f83b45e47cdb8b45fc5dc3";
    const OPTIMISED: &str =
        "85f67e1c4863f631c0488d14b70f1f0003074883c7044839d775f5c30f1f400031c0c3";

    fn summing(marks: &str, code: &str) -> String {
        let stack = "sum (s.c:1) @app+0x1010 <- main (s.c:9) @app+0x2000";
        let text = computing("C", &[(100, stack)]);
        let text = text.replace("language C\n", &format!("language C {marks}\n"));
        format!("{text}\ncode sum @app+0x1000 {code}")
    }

    #[test]
    fn a_build_that_says_so_or_looks_so_is_found() {
        expect![[r#"
            unoptimised-build 75 % (43..91) @ sum:1: app spent 99.5 µs of its 100 µs in code that was compiled without optimisation (100 %).
        "#]].assert_eq(&found(&summing("producer \"GNU C17 -O0\" unoptimised", PLAIN)));
        // Clang, Rust, Zig and Crystal record no options.
        expect![[r#"
            unoptimised-build 75 % (43..91) @ sum:1: app spent 99.5 µs of its 100 µs in code that was compiled without optimisation (100 %).
        "#]].assert_eq(&found(&summing("", PLAIN)));
    }

    #[test]
    fn optimised_code_is_refused_whatever_the_unit_of_main_says() {
        assert_eq!(found(&summing("", OPTIMISED)), "");
        assert_eq!(found(&summing("unoptimised", OPTIMISED)), "");
        assert_eq!(found(&summing("optimised", PLAIN)), "");
    }

    #[test]
    fn without_lines_one_sign_is_not_enough() {
        // `long spin(void) { volatile long i, s = 0; for (i = 0; i < 100; i++) s += i; return s; }` by gcc 12 -O2.
        const VOLATILE: &str = "48c74424f80000000048c74424f000000000488b4424f04883f8637f2e0f1f00488b5424f0\
             488b4424f84801d048894424f8488b4424f04883c00148894424f0488b4424f04883f8637ed5488b4424f8c3";
        assert_eq!(found(&summing("no-lines", VOLATILE)), "");
        // Lines of a table that no compiler signed: it shows no inlined code.
        assert_eq!(found(&summing("", VOLATILE)), "");
        assert_ne!(found(&summing("producer clang", VOLATILE)), "");
        assert_ne!(found(&summing("no-lines", PLAIN)), "");
    }

    #[test]
    fn calls_of_what_is_always_inlined_show_it_and_inlined_ones_are_refused() {
        const CHECK: &str =
            "core::ptr::copy_nonoverlapping::precondition_check (/rustc/1/ub_checks.rs:73)";
        let checks = |between: &str| {
            let check = format!("{CHECK} {between} app::main (m.rs:7)");
            found(&computing("Rust", &[(30, &check), (70, "app::main (m.rs:9)")]))
        };
        let called = checks("<-");
        assert!(called.starts_with("unoptimised-build 9"), "{called}");
        assert!(!checks("in").contains("unoptimised-build"));
        let crystal =
            "Slice(UInt8)#unsafe_fetch (/usr/lib/crystal/lib/slice.cr:268) <- scan (s.cr:3)";
        let crystal = computing("Crystal", &[(30, crystal), (70, "scan (s.cr:4)")]);
        assert!(found(&crystal).starts_with("unoptimised-build"));
    }

    #[test]
    fn a_few_samples_are_refused() {
        let few = computing("C", &[(10, "sum (s.c:1) @app+0x1010 <- main (s.c:9) @app+0x2000")]);
        assert_eq!(found(&format!("{few}\ncode sum @app+0x1000 {PLAIN}")), "");
    }
}
