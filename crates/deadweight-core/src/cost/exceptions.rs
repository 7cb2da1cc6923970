//! Exceptions.
//!
//! # What it is
//! Exceptions, panics and their like, thrown and caught as a part of normal work. Each one makes an
//! object, and walks over the stack twice to find who catches it: some microseconds, where a test
//! of a result takes a nanosecond. Each frame between adds to it.
//!
//! # How deadweight knows
//! Samples under the functions that throw, unwind and catch: `__cxa_throw` and the unwinder (C++),
//! panics of Rust and Go, `raise` and the backtrace of Crystal. All that these call is charged to
//! them, with the allocation of the exception. The place is the program's own line that threw, or
//! called the library function that did. With `-r`, one more run counts the throws of each line. The
//! saving is that time: an estimate, and rather low, because code behind an exception also finds
//! colder caches.
//!
//! # What it is mistaken for
//! A few exceptions: they take no time. The one that ends the program, whose backtrace may take long. Code that is prepared for
//! exceptions and meets none costs nothing. Time in the handler is the program's own work.
//!
//! # What to do
//! Ask first (`find` instead of `at`, `try_emplace`, `from_chars`), or return the failure as a value
//! (`std::optional`, `std::expected`, `Result`, `error`, `nil`).
//!
//! # Seen in
//! A price book that catches `std::out_of_range` for each article without an agreement.
//! In `tests/programs`: `thrown_per_line.cpp`.

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::call_site::{CallSite, Weights};
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::shares::{Share, sampled_sites, samples_of};
use deadweight_code::symbol_role::{SymbolRole, of_name};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::Exit;
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CLASS: Class = Class {
    id: "exceptions",
    source: include_str!("exceptions.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time exceptions are the exception.
const LARGE: f64 = 0.05;
/// The part of the remaining time that goes away with them, in proportion to their share: with 79 % in the unwinder, a
/// pair of programs that differ in nothing else saved 87 %.
const AROUND: f64 = 0.3;

fn claim(sample: &UserSample<'_>) -> bool {
    (sample.own.is_some() || recovers(sample))
        && sample.under(SymbolRole::Throw)
        && !is_deferred_call(sample)
}

/// Whether Go returns from a panic: on a stack of its scheduler, where no caller shows.
fn recovers(sample: &UserSample<'_>) -> bool {
    sample.library().any(|(name, _)| name == "runtime.recovery")
}

/// Whether Go runs deferred calls at a function's end: with the code that it also runs in a panic.
fn is_deferred_call(sample: &UserSample<'_>) -> bool {
    sample.library().any(|(name, _)| name == "runtime.deferreturn")
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    if share.ns.share_of(net) < LARGE || is_the_end(found, process) {
        return None;
    }
    let places = thrown_at(found, &share.places);
    let saving = share.with_the_rest(share.ns, AROUND);
    let (low, _) = share.interval(share.ns);
    let (_, high) = share.interval(share.with_the_rest(share.ns, 2.0 * AROUND));
    let language = &facts.processes.get(process).language;
    let word = if ["Rust", "Go", "Zig"].contains(&&**language) { "panics" } else { "exceptions" };
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: format!("{word} thrown and caught in normal work"),
        text: format!(
            "{} spent {} of its {} throwing and catching {word} ({}).",
            facts.name(process),
            time(share.ns),
            time(net),
            percent(share.ns, net),
        ),
        amount: share.ns,
        saving,
        range: (low, high),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &places),
        evidence: vec![format!(
            "{} under the functions that throw, unwind and catch",
            things(share.samples, "sample")
        )],
        remedy: remedy(language).into(),
    })
}

/// Whether all throwing came after the program's other work, as a panic that ends it; or before any, if it failed.
fn is_the_end(found: &Inspection<'_, '_>, process: ProcessId) -> bool {
    let facts = found.facts;
    let symbols = facts.symbols();
    let mut known: BTreeMap<StackId, bool> = BTreeMap::new();
    // What prints a backtrace counts, too: it runs under these.
    let mut throws = |stack| {
        *known.entry(stack).or_insert_with(|| {
            let mut frames = CallSite::Stack(stack).frames(symbols);
            frames
                .any(|(_, frame)| of_name(symbols.name(frame.function)) == Some(SymbolRole::Throw))
        })
    };
    let of_process: BTreeSet<StackId> =
        samples_of(found, process).filter_map(|(_, site, _)| site.stack()).collect();
    let tasks = (0..facts.timeline.tasks.len()).map(TaskId::at);
    let mut samples: Vec<(Ns, bool)> = tasks
        .filter(|task| facts.processes.of(*task) == process)
        .flat_map(|task| &facts.timeline.task(task).samples)
        .filter(|sample| of_process.contains(&sample.stack))
        .map(|sample| (sample.at, throws(sample.stack)))
        .collect();
    samples.sort_unstable();
    let first = samples.iter().position(|(_, throws)| *throws).unwrap_or(0);
    let failed = |exit: &Exit| exit.code != 0 || exit.signal.is_some();
    let at_once = facts.trace.meta.exit.as_ref().is_some_and(failed);
    // One sample more may be of the program's exit.
    (first > 0 || at_once) && samples[first..].iter().filter(|(_, throws)| !throws).count() <= 1
}

/// The places that throw. In Go's recovery no caller shows, and the line that calls `recover` throws nothing.
fn thrown_at(found: &Inspection<'_, '_>, places: &Weights) -> Weights {
    let throws = |site: &CallSite| {
        let sample = site.stack().map(|stack| found.facts.sample(stack));
        sample.is_none_or(|sample| {
            !recovers(&sample) && !sample.library().any(|(name, _)| name == "runtime.gorecover")
        })
    };
    let thrown: Weights =
        places.iter().map(|(site, w)| (*site, *w)).filter(|(site, _)| throws(site)).collect();
    if thrown.is_empty() { places.clone() } else { thrown }
}

fn remedy(language: &str) -> &'static str {
    match language {
        "C++" => {
            "Ask before: find() and a test for end() instead of at(), std::from_chars instead of stoi. Or \
             return the failure as a value: std::optional, std::expected, an error code."
        }
        "Rust" => {
            "Return Result or Option instead of panicking and catching: get() for an index, \
             checked_div, parse() with a match on its error."
        }
        "Go" => {
            "Return an error instead of panic and recover; test an index or a nil before its use."
        }
        "Crystal" => {
            "Ask with the methods that return nil: []? instead of [], to_i? instead of to_i, \
             find instead of a rescue. Or raise without a backtrace: a constant exception, with its \
             callstack set."
        }
        _ => "Return the failure as a value where it is a normal result.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{computing, found, rows};
    use expect_test::expect;

    const THROW: &str = "libgcc_s.so.1+0x14c40 @libgcc_s.so.1 <- _Unwind_RaiseException @libgcc_s.so.1 <- __cxa_throw @libstdc++.so.6 <- \"std::__throw_out_of_range(char const*)\" @libstdc++.so.6 <- std::unordered_map::at (/usr/include/c++/12/map.h:9) in price (p.cpp:8) <- main (p.cpp:30)";

    #[test]
    fn exceptions_per_item_are_found_with_what_the_unwinder_calls() {
        let cleared = "memset @libc.so.6 <- _Unwind_RaiseException @libgcc_s.so.1 <- __cxa_throw @libstdc++.so.6 <- price (p.cpp:9) <- main (p.cpp:30)";
        let made = "malloc @libc.so.6 <- __cxa_allocate_exception @libstdc++.so.6 <- price (p.cpp:9) <- main (p.cpp:30)";
        let text = computing(
            "C++",
            &[(50, THROW), (10, cleared), (5, made), (35, "price (p.cpp:10) <- main (p.cpp:30)")],
        );
        expect![[r#"
            exceptions 71 % (49..87) @ price:8: app spent 64.7 µs of its 100 µs throwing and catching exceptions (65 %).
        "#]].assert_eq(&found(&text));
        expect![[r#"
            exceptions 64675
            net-work 34825
            start-up 500 exec, linking and initialising
        "#]]
        .assert_eq(&rows(&text, 3));
    }

    #[test]
    fn an_unwinder_that_is_linked_in_is_found_and_functions_without_lines_are_refused() {
        let text = |stack: &str| {
            computing("C++", &[(40, stack), (60, "price (p.cpp:10) <- main (p.cpp:30)")])
        };
        let thrown = "execute_cfa_program <- uw_frame_state_for <- _Unwind_RaiseException <- __cxa_throw <- price (p.cpp:9) <- main (p.cpp:30)";
        let said = found(&text(thrown));
        assert!(said.starts_with("exceptions") && said.contains("@ price:9"), "{said}");
        // The program's own function, in the destructor that unwinding runs, or below one of its own.
        for own in ["release", "release <- __clean_up", "_Unwind_Backtrace <- trace"] {
            assert_eq!(found(&text(&format!("{own} <- price (p.cpp:9) <- main (p.cpp:30)"))), "");
        }
    }

    #[test]
    fn a_panic_after_all_other_work_is_refused_and_many_before_are_found() {
        let work = "price (p.rs:10) <- main (p.rs:30)";
        let panic = "std::panicking::begin_panic_handler <- core::panicking::panic_fmt <- price (p.rs:9) <- main (p.rs:30)";
        assert_eq!(found(&computing("Rust", &[(70, work), (30, panic)])), "");
        // At once, with a library that prints where it came from.
        let printing = format!("miniz_oxide::inflate::core::decompress <- {panic}");
        let failed = |code: u8| {
            let all = computing("Rust", &[(30, panic), (40, &printing), (30, panic)]);
            found(&format!("exit {code}\n{all}"))
        };
        assert_eq!(failed(101), "");
        assert!(failed(0).starts_with("exceptions"), "{}", failed(0));
        let said = found(&computing("Rust", &[(40, work), (28, panic), (32, work)]));
        assert!(said.starts_with("exceptions") && said.contains("@ price:9"), "{said}");
    }

    #[test]
    fn a_few_exceptions_and_the_one_that_ends_the_program_are_refused() {
        let text = computing("C++", &[(4, THROW), (96, "price (p.cpp:10) <- main (p.cpp:30)")]);
        assert_eq!(found(&text), "");
    }

    #[test]
    fn a_panic_in_go_is_found_and_deferred_calls_are_refused() {
        let own = "main.guard (main.go:9) <- main.main (main.go:30)";
        let panic = format!("runtime.(*_panic).nextFrame <- runtime.gopanic <- {own}");
        let rest = (70, "main.main (main.go:31)");
        let found = |stack: &str| found(&computing("Go", &[(30, stack), rest]));
        assert!(found(&panic).starts_with("exceptions"), "{}", found(&panic));
        let panic =
            format!("runtime.gorecover.func1 <- runtime.systemstack <- runtime.gorecover <- {own}");
        assert!(found(&panic).starts_with("exceptions"), "{}", found(&panic));
        let deferred = format!("runtime.(*_panic).nextDefer <- runtime.deferreturn <- {own}");
        assert_eq!(found(&deferred), "");
    }

    #[test]
    fn the_return_from_a_panic_in_go_has_no_place_and_belongs_to_it() {
        let panic = "runtime.(*_panic).nextFrame <- runtime.gopanic <- main.guard (main.go:9) <- main.main (main.go:30)";
        let back = "runtime.findfunc (/usr/local/go/src/runtime/symtab.go:945) <- runtime.recovery (/usr/local/go/src/runtime/panic.go:1304) <- runtime.mcall";
        let asked = "runtime.gorecover.func1 <- runtime.systemstack <- runtime.gorecover <- main.eval.func1 (main.go:5) <- runtime.gopanic <- main.guard (main.go:9) <- main.main (main.go:30)";
        let text = computing(
            "Go",
            &[(10, panic), (20, asked), (20, back), (50, "main.main (main.go:31)")],
        );
        let said = found(&text);
        assert!(said.starts_with("exceptions") && said.contains("@ main.guard:9"), "{said}");
        assert_eq!(rows(&text, 1), "exceptions 49750\n");
        let other = "runtime.findfunc (/usr/local/go/src/runtime/symtab.go:945) <- runtime.schedule <- runtime.mcall";
        assert!(
            !rows(&computing("Go", &[(50, other), (50, "main.main (main.go:31)")]), 3)
                .contains("exceptions")
        );
    }

    #[test]
    fn a_handler_and_a_backtrace_are_no_exceptions() {
        let text = computing(
            "C++",
            &[
                (40, "recover (p.cpp:20) <- main (p.cpp:30)"),
                (
                    40,
                    "_Unwind_Backtrace @libgcc_s.so.1 <- backtrace @libc.so.6 <- log (p.cpp:20) <- main (p.cpp:30)",
                ),
            ],
        );
        assert_eq!(found(&text), "");
    }
}
