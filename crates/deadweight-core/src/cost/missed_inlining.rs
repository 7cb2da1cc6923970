//! Missed inlining.
//!
//! # What it is
//! A hot place calls a small function, and the call costs as much as the function. The caller moves
//! arguments to where the function expects them, and saves and reloads values that the call would
//! overwrite. The function saves and restores registers. The compiler cannot optimise across the
//! call.
//!
//! # How deadweight knows
//! The machine code of the functions that samples hit. A function is small if it has a few dozen
//! instructions, no loop, and calls only panics and what its rare cases need: functions in which
//! hardly a sample fell. Go's compiler itself says why it did not inline a function, if
//! `--explain-inlining` lets it compile the source again. The row is the time of the calls' own
//! instructions on both sides. The saving is an estimate. On pairs of programs (with and without
//! the calls) inlining saved that time. For functions of up to twenty instructions it also saved
//! most of the function's time, because the caller knows already what the function checks and loads
//! again. For functions of forty instructions it saved nothing more. Nor did it for C and C++
//! functions that write bytes: these bytes may belong to any object, so the caller still knows
//! nothing. Where the function adds to a value in memory, the range begins at 0: inlining saves two thirds if the compiler
//! then keeps the sum in a register, and 2 % if it does not.
//!
//! # What it is mistaken for
//! Recursion; calls of large functions, of the C library and of runtimes; a callback that a library
//! calls. One call of the C library for each character (`getc`, `putc`) is found by its name: it takes the stream's lock.
//!
//! # What to do
//! Put the function where the compiler sees it when it compiles the caller (a header, the same
//! file, link-time optimisation), or make it simple enough for the inliner.
//!
//! # Seen in
//! Erosion of a height map, whose cells were read through a function of another file.
//! In `tests/programs`: `far_getter.c`, `over_budget.go`.

mod advice;
mod characters;

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, add};
use crate::facts::hot_loops::reason::Reason;
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::hot_code::hot_code;
use crate::inspect::shares::{Share, sampled_sites, samples_of};
use deadweight_code::Role;
use deadweight_code::machine_code::{FunctionId, SmallCallee};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::ids::{LocationId, StackId};
use deadweight_trace::symbols::SourceFrame;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

pub(super) const CLASS: Class = Class {
    id: "missed-inlining",
    source: include_str!("missed_inlining.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time calls are a normal cost.
const LARGE: f64 = 0.05;
/// With this share of the time at the calls' own instructions no further sign is needed.
const SEEN: f64 = 0.05;
/// On some processors few samples hit these instructions: on a quiet Zen 4 0.3 to 2.5 % in a
/// program that inlining makes three times as fast (`tests/programs/far_getter.c`). Below [`SEEN`]
/// no single instruction of the small functions may have more of their time than this: it would
/// wait for memory, and would wait as long without the call. In `far_getter.c` one instruction has
/// six tenths, in a Go method that keeps a moving sum (2 to 4 % at the calls) a tenth. In a getter whose every load
/// waits for the load before (3.7 % at the calls once) one has all.
const WAITING: f64 = 0.8;
/// This many samples at the calls are no accident.
const SOME: u64 = 2;
/// A function with at most this many instructions mostly disappears when the compiler sees it
/// together with its caller: it checks and loads again what the caller knows already ...
const TINY: usize = 20;
/// ... and one with this many does not get smaller: the instructions are its work. From pairs of
/// programs with 9 to 40 instructions.
const WORKING: usize = 40;
/// What compiling caller and callee together saves in addition to the calls, as a part of the
/// calls' time.
const TOGETHER: f64 = 0.3;
/// Which part of a tiny function's time inlining saves, and at most of all the program's own time.
const MOST: f64 = 0.85;

fn claim(sample: &UserSample<'_>) -> bool {
    called(sample).is_some()
}

/// The small function to which a sample of a call's own instructions belongs.
pub(crate) fn called(sample: &UserSample<'_>) -> Option<SmallCallee> {
    let calling = matches!(
        sample.waited.role,
        Role::Prologue | Role::Epilogue | Role::Arguments | Role::Call
    );
    if !calling || sample.unoptimised || sample.own != Some(sample.waited.at) {
        return None;
    }
    match sample.waited.role {
        Role::Prologue | Role::Epilogue => sample.runs_small(),
        _ => sample.small_callee(),
    }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let each = found.drafts_of_all(characters::draft);
    found.drafts(CLASS.id, draft).into_iter().chain(each).collect()
}

/// What is known of one small function.
#[derive(Default)]
struct Small {
    /// Samples of the instructions around its calls, and of its prologue and epilogue.
    calling: u64,
    /// Other samples in it, by instruction.
    inside: BTreeMap<LocationId, u64>,
    through_pointer: bool,
    /// A frame of the code that calls it, and one of its own.
    caller: Option<SourceFrame>,
    own: Option<SourceFrame>,
}

impl Small {
    fn inside(&self) -> u64 {
        self.inside.values().sum()
    }
}

/// Whether no single instruction takes most of the time in these functions.
fn are_spread(functions: &[(FunctionId, Small)]) -> bool {
    let inside: u64 = functions.iter().map(|(_, small)| small.inside()).sum();
    let longest = functions.iter().flat_map(|(_, small)| small.inside.values()).max();
    longest.is_some_and(|longest| *longest as f64 <= WAITING * inside as f64)
}

/// The small functions, with most time in calls first.
fn functions(
    found: &Inspection<'_, '_>,
    share: &Share,
    process: ProcessId,
) -> Vec<(FunctionId, Small)> {
    let mut functions: BTreeMap<FunctionId, Small> = BTreeMap::new();
    for (site, weight) in &share.places {
        let Some(sample) = site.stack().map(|stack| found.facts.sample(stack)) else { continue };
        let Some(called) = called(&sample) else { continue };
        let small = functions.entry(called.function).or_default();
        small.calling += weight.amount;
        small.through_pointer |= called.through_pointer;
        if sample.waited.function != Some(called.function) {
            small.caller = small.caller.or(machine_frame(found, *site));
        }
    }
    let account = AccountId::of_class(CLASS.id);
    for (_, site, amount) in samples_of(found, process).filter(|(of, ..)| *of != account) {
        let Some(sample) = site.stack().map(|stack| found.facts.sample(stack)) else { continue };
        let Some(small) = sample.waited.function.and_then(|id| functions.get_mut(&id)) else {
            continue;
        };
        *small.inside.entry(sample.waited.at).or_default() += amount;
        small.own = small.own.or(machine_frame(found, site));
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_by_key(|(_, small)| std::cmp::Reverse(small.calling));
    functions
}

/// The source frame of the function that has the machine code.
fn machine_frame(found: &Inspection<'_, '_>, site: CallSite) -> Option<SourceFrame> {
    let symbols = found.facts.symbols();
    let leaf = *symbols.stack(site.stack()?).first()?;
    symbols.locations.get(leaf.index())?.frames.last().copied()
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    // A call through a pointer whose target cannot be guessed is no call that a compiler could inline.
    let mut hot = facts.hot_loops(process).iter();
    if hot.any(|hot| matches!(hot.reason, Some(Reason::Branches(_))) && hot.calls()) {
        return None;
    }
    let functions = functions(found, &share, process);
    let (first, small) = functions.first()?;
    let language = facts.processes.get(process).language.as_str();
    let inside: u64 = functions.iter().map(|(_, small)| small.inside()).sum();
    let most = share.ns + share.time_of(inside);
    let shared: Ns =
        functions.iter().map(|(id, s)| share.time_of(s.inside()).part(part(facts, *id))).sum();
    let saving = (share.ns + share.ns.part(TOGETHER) + shared).min(share.whole.0.part(MOST));
    let seen = share.ns.share_of(net) >= SEEN || share.samples >= SOME && are_spread(&functions);
    if !seen || saving.share_of(net) < LARGE {
        return None;
    }
    let (low, high) = share.interval(share.ns);
    let symbols = facts.symbols();
    let name = symbols.name(facts.machine.code(*first).name);
    let mut evidence = vec![format!(
        "{} of {} samples are in calls of {}, {} more in the functions themselves; in test programs, \
         inlining saved the calls and, for tiny functions, most of the rest",
        share.samples,
        share.whole.1,
        things(functions.len() as u64, "small function"),
        inside,
    )];
    let said = symbols.not_inlined.get(name);
    evidence.push(said.cloned().unwrap_or_else(|| reason(found, small, name, language)));
    // The calls may cost nothing beside the wait for the value that the call before has stored.
    let changes = facts.machine.function(*first).changes_memory();
    evidence.extend(changes.then(|| advice::stays(name)));
    let least = if changes { Ns::ZERO } else { low.part(0.5) };
    evidence.extend(hot_code(facts, &callers(found, &share.places)));
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "small function called, not inlined".into(),
        text: format!(
            "{} spent {} of its {} calling {name} and returning from it ({}), and {} inside it.",
            facts.name(process),
            time(share.ns),
            time(net),
            percent(share.ns, net),
            time(share.time_of(small.inside())),
        ),
        amount: share.ns,
        saving,
        range: (least, most.max(high).max(saving)),
        how: How::Estimate,
        sites: sampled_sites(symbols, &at_the_calls(found, &share.places)),
        evidence,
        remedy: advice::remedy(language, small.through_pointer).into(),
    })
}

/// Which part of a small function's time inlining saves.
fn part(facts: &Facts<'_>, id: FunctionId) -> f64 {
    if facts.machine.stays_in_memory(id) {
        return 0.0;
    }
    let working = facts.machine.function(id).work_instructions().clamp(TINY, WORKING);
    MOST * (WORKING - working) as f64 / (WORKING - TINY) as f64
}

/// The places in callers, if there are any: inlining removes what the callers do for the call.
fn callers(found: &Inspection<'_, '_>, places: &Weights) -> Weights {
    let calls = |site: &CallSite| {
        let role = site.stack().map(|stack| found.facts.sample(stack).waited.role);
        matches!(role, Some(Role::Arguments | Role::Call))
    };
    let callers: Weights =
        places.iter().filter(|(site, _)| calls(site)).map(|(s, w)| (*s, *w)).collect();
    if callers.is_empty() { places.clone() } else { callers }
}

/// The places, with samples at a function's first instruction moved to its call.
fn at_the_calls(found: &Inspection<'_, '_>, places: &Weights) -> Weights {
    let (facts, symbols) = (found.facts, found.facts.symbols());
    let entering = |stack: StackId| {
        let leaf = symbols.locations.get(symbols.stack(stack).first()?.index())?;
        let waited = facts.sample(stack).waited;
        let first = facts.machine.code(waited.function?).addr;
        Some(waited.role == Role::Prologue && leaf.addr == first)
    };
    let mut moved = Weights::new();
    for (site, weight) in places {
        let called = site.stack().filter(|stack| entering(*stack) == Some(true));
        let weight = BTreeMap::from([(called.map_or(*site, CallSite::Caller), *weight)]);
        add(&mut moved, &weight);
    }
    moved
}

/// Why it was not inlined, as far as the trace shows it.
fn reason(found: &Inspection<'_, '_>, small: &Small, name: &str, language: &str) -> String {
    let symbols = found.facts.symbols();
    let file = |frame: Option<SourceFrame>| {
        frame.map(|f| symbols.name(f.file)).filter(|file| !file.is_empty())
    };
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match (file(small.own), file(small.caller)) {
        _ if small.through_pointer => {
            format!("{name} is called through a pointer: a virtual function, or a function value")
        }
        _ if language == "Go" => format!(
            "{name} exceeds the inliner's budget or is marked noinline; --explain-inlining, or go \
             build -gcflags=-m=2, shows which, and the cost"
        ),
        (Some(own), Some(caller)) if own != caller => format!(
            "{name} is defined in {}, which the compiler did not see when it compiled {}",
            base(own),
            base(caller)
        ),
        _ => format!(
            "the compiler saw {name} and did not inline it: noinline, or by its own estimate"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{computing, found, weighed};
    use crate::weigh::{Weighing, weigh};
    use deadweight_trace::Trace;
    use expect_test::expect;

    // 1000: push rbx; mov rbx, rdi; mov edi, eax; call 1020; add eax, [rbx]; pop rbx; ret
    const CALLER: &str = "code loop @0x1000 53 4889fb 89c7 e815000000 0303 5b c3";
    // 1020: movsxd rdi, edi; mov eax, [rdi*4 + 2000h]; ret
    const GETTER: &str = "code get @0x1020 4863ff 8b04bd00200000 c3";
    // 1020: the same after a call of a function that is no panic
    const LARGE: &str = "code get @0x1020 e8dbffffff 4863ff 8b04bd00200000 c3";

    fn text(codes: &str, stacks: &[(u64, &str)]) -> String {
        computing("C", stacks).replacen("task 1", &format!("{codes}\ntask 1"), 1)
    }

    fn calls(leaf: &str) -> Vec<(u64, &str)> {
        vec![
            // After the call, and before it.
            (20, "loop (a.c:7) @0x100b <- main (a.c:20)"),
            (10, "loop (a.c:7) @0x1006 <- main (a.c:20)"),
            (20, leaf),
            (50, "main (a.c:20)"),
        ]
    }

    /// `memcpy@plt` jumps to a function of a library, which cannot be inlined.
    #[test]
    fn the_linkers_stub_is_refused() {
        let codes = format!("{CALLER}\n{}", GETTER.replace("get", "get@plt"));
        let leaf = "get@plt @0x102a <- loop (a.c:7) @0x100a <- main (a.c:20)";
        assert_eq!(found(&text(&codes, &calls(leaf))), "");
    }

    /// A signal came after the call: what leads back from its handler looks as if it was called there.
    #[test]
    fn the_way_back_from_a_signal_is_refused() {
        for name in ["runtime.sigreturn__sigaction", "__restore_rt_sigreturn"] {
            let codes = format!("{CALLER}\n{}", GETTER.replace("get", name));
            let leaf = format!("{name} @0x102a <- loop (a.c:7) @0x100a <- main (a.c:20)");
            assert_eq!(found(&text(&codes, &calls(&leaf))), "");
        }
    }

    /// `slices.SortFunc` calls the comparison, in code that no build puts both into; `std::sort` is compiled for it.
    #[test]
    fn a_callback_of_a_library_is_refused_unless_the_library_is_compiled_for_it() {
        let said = |language: &str, library: &str| {
            let sort = CALLER.replace("code loop", "code sort");
            let codes = format!("{sort}\n{GETTER}");
            let entered = format!("get (b.x:3) @0x1020 <- {library} @0x100a <- main (a.x:20)");
            let stacks = [(30, entered.as_str()), (70, "main (a.x:20)")];
            found(&computing(language, &stacks).replacen("task 1", &format!("{codes}\ntask 1"), 1))
        };
        assert_eq!(said("Go", "sort (/usr/local/go/src/slices/zsortanyfunc.go:80)"), "");
        let compiled = said("C++", "sort (/usr/include/c++/12/bits/stl_algo.h:1900)");
        assert!(compiled.starts_with("missed-inlining"), "{compiled}");
        let own = said("Go", "sort (a.x:7)");
        assert!(own.starts_with("missed-inlining"), "{own}");
    }

    #[test]
    fn a_getter_in_another_file_is_found() {
        let codes = format!("{CALLER}\n{GETTER}");
        let leaf = "get (b.c:3) @0x102a <- loop (a.c:7) @0x100a <- main (a.c:20)";
        let text = text(&codes, &calls(leaf));
        expect![[r#"
            missed-inlining 56 % (10..62) @ loop:7: app spent 29.9 µs of its 100 µs calling get and returning from it (30 %), and 19.9 µs inside it.
        "#]].assert_eq(&found(&text));
        expect![[r#"
            30 of 100 samples are in calls of 1 small function, 20 more in the functions themselves; in test programs, inlining saved the calls and, for tiny functions, most of the rest
            get is defined in b.c, which the compiler did not see when it compiled a.c"#]].assert_eq(&weighed(&text).findings[0].evidence[..2].join("\n"));
    }

    #[test]
    fn the_compilers_own_reason_replaces_the_inferred_one() {
        let codes = format!("{CALLER}\n{GETTER}");
        let leaf = "get (b.c:3) @0x102a <- loop (a.c:7) @0x100a <- main (a.c:20)";
        let mut trace = Trace::from_text(&text(&codes, &calls(leaf))).unwrap();
        let said = "cannot inline get: function too complex: cost 93 exceeds budget 80";
        trace.symbols.not_inlined.insert("get".into(), said.into());
        trace.symbols.not_inlined.insert("other".into(), "of no interest".into());
        let traces = [trace];
        let weighing = Weighing { traces: &traces, ..Weighing::default() };
        let evidence = &weigh(&weighing).unwrap().findings[0].evidence;
        assert_eq!(evidence[1], said);
        assert!(!evidence.iter().any(|line| line.contains("did not see")), "{evidence:?}");
    }

    #[test]
    fn a_function_that_calls_others_is_refused() {
        let leaf = "get (b.c:3) @0x1028 <- loop (a.c:7) @0x100a <- main (a.c:20)";
        assert_eq!(found(&text(&format!("{CALLER}\n{LARGE}"), &calls(leaf))), "");
    }

    #[test]
    fn few_samples_at_calls_count_unless_one_instruction_has_the_rest() {
        // 1020: imul eax, esi; imul edx, edi; add eax, edx; ret
        let codes = format!("{CALLER}\ncode get @0x1020 0fafc6 0fafd7 01d0 c3");
        let [one, other] = ["3) @0x1023", "4) @0x1028"]
            .map(|at| format!("get (b.c:{at} <- loop (a.c:7) @0x100a <- main (a.c:20)"));
        let spread = |calls: u64, first: u64| {
            let stacks = [
                (calls, "loop (a.c:7) @0x100b <- main (a.c:20)"),
                (first, one.as_str()),
                (500 - first, other.as_str()),
                (500 - calls, "main (a.c:20)"),
            ];
            found(&text(&codes, &stacks))
        };
        for [calls, first] in [[10, 250], [40, 250], [60, 490]] {
            let said = spread(calls, first);
            assert!(said.starts_with("missed-inlining"), "{calls} {first}: {said}");
        }
        for [calls, first] in [[10, 490], [40, 490]] {
            assert_eq!(spread(calls, first), "", "{calls} {first}");
        }
    }

    // 1020: mov rax, [rdi]; mov [rax], sil; inc qword ptr [rdi]; ret
    const WRITER: &str = "code get @0x1020 488b07 408830 48ff07 c3";

    #[test]
    fn a_byte_written_through_a_pointer_leaves_the_saving_at_the_calls() {
        let leaf = "get (b.c:3) @0x1026 <- loop (a.c:7) @0x100a <- main (a.c:20)";
        let text = text(&format!("{CALLER}\n{WRITER}"), &calls(leaf));
        expect![[r#"
            missed-inlining 39 % (0..57) @ loop:7: app spent 29.9 µs of its 100 µs calling get and returning from it (30 %), and 19.9 µs inside it.
        "#]].assert_eq(&found(&text));
    }

    // 1020: add [rdi], rsi; ret
    const ADDS: &str = "code get @0x1020 480137 c3";

    #[test]
    fn a_sum_in_memory_may_stay_there() {
        let leaf = "get (b.c:3) @0x1023 <- loop (a.c:7) @0x100a <- main (a.c:20)";
        let text = text(&format!("{CALLER}\n{ADDS}"), &calls(leaf));
        expect![[r#"
            missed-inlining 56 % (0..62) @ loop:7: app spent 29.9 µs of its 100 µs calling get and returning from it (30 %), and 19.9 µs inside it.
        "#]].assert_eq(&found(&text));
        let evidence = weighed(&text).findings[0].evidence.join("\n");
        assert!(evidence.contains("get changes a value in memory"), "{evidence}");
    }

    // 1020: mov rax, [rdi]; cmp rax, [rdi+8]; je 1032; lea rdx, [rax+1]; mov [rdi], rdx; ret; nop
    // 1032: call 1000; jmp 1029
    const REFILLS: &str =
        "code get @0x1020 488b07 483b4708 7409 488d5001 488917 c3 90 e8c9ffffff ebf0";

    #[test]
    fn calls_in_a_rare_case_do_not_make_a_function_large() {
        let codes = format!("{CALLER}\n{REFILLS}");
        let leaf = "get (b.c:3) @0x1027 <- loop (a.c:7) @0x100a <- main (a.c:20)";
        assert!(found(&text(&codes, &calls(leaf))).starts_with("missed-inlining"));
        let mut seen = calls(leaf);
        seen.push((
            1,
            "fill (b.c:9) <- get (b.c:4) @0x1036 <- loop (a.c:7) @0x100a <- main (a.c:20)",
        ));
        assert!(found(&text(&codes, &seen)).starts_with("missed-inlining"));
        seen[4].0 = 8;
        assert_eq!(found(&text(&codes, &seen)), "");
        // The kernel's time in the rare case does not show how often the case happens.
        let waits = format!("kernel {} : ksys_read", seen[4].1);
        seen[4] = (8, &waits);
        assert!(found(&text(&codes, &seen)).starts_with("missed-inlining"));
        // 102d: mov [rdi], dl; nop
        let writes_bytes = codes.replace("488d5001 488917", "488d5001 881790");
        assert_eq!(found(&text(&writes_bytes, &calls(leaf))), "");
    }

    #[test]
    fn recursion_and_callbacks_of_libraries_are_refused() {
        // 1020: push rbx; call 1020; pop rbx; ret
        let recursive = "code fib @0x1020 53 e8faffffff 5b c3";
        let stack = "fib (a.c:3) @0x1026 <- fib (a.c:3) @0x1025 <- main (a.c:20)";
        assert_eq!(found(&text(recursive, &[(80, stack), (20, "main (a.c:20)")])), "");
        // 1020: push rbx; mov eax, [rdi]; sub eax, [rsi]; pop rbx; ret
        let compare = "code order @0x1020 53 8b07 2b06 5b c3";
        let stack = "order (a.c:3) @0x1021 <- qsort @libc.so.6+0x99 <- main (a.c:20) @0x1500";
        assert_eq!(found(&text(compare, &[(80, stack), (20, "main (a.c:20)")])), "");
    }
}
