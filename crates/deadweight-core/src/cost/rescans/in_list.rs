//! A list that is searched from its start for one value after the other, where a table would know the answer.
//!
//! The machine code shows that a loop searches, or the name of the function that it was inlined from; registers show that it
//! is the same list again and again, and how far a search goes (see `facts::hot_loops::searches`). Short lists are left
//! alone: to look there takes no longer than to compute a hash.

use super::CLASS;
use crate::facts::Facts;
use crate::facts::call_site::is_interpreted;
use crate::facts::hot_loops::searches::{Searched, by_accesses, searched};
use crate::facts::hot_loops::{self, HotLoop, WithRegisters};
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::shares::{Chosen, sampled_sites, samples_of};
use crate::inspect::{Draft, Inspection};
use deadweight_code::{Found, Search};
use deadweight_report::report::How;
use deadweight_report::wording::{bytes, percent, things, time};
use deadweight_trace::ids::{LocationId, NameId, StackId, TaskId};
use std::collections::{BTreeMap, BTreeSet};

/// Below this share of the wall time it does not matter.
const LARGE: f64 = 0.1;
/// A search of fewer turns, or in less memory, is short.
const TURNS: f64 = 32.0;
const BYTES: f64 = 1024.0;
/// A cycle in ns, at 2.5 GHz: a turn whose time no register shows takes as long as its instructions need, at least.
const CYCLE: f64 = 0.4;
/// What a look into a table takes instead, in ns: typical, and with a slow hash and a table beyond the caches.
const TABLE: (f64, f64) = (20.0, 80.0);
/// The least part that is saved of what a search takes more than that.
const LEAST: f64 = 0.7;
/// Parts of the names of functions that search a list.
const LOOKUPS: &[&str] = &[
    "SliceContains>::slice_contains",
    "core::slice::<impl [T]>::contains",
    "_Iter_equals_val<",
    "std::find<",
    "std::__1::find<",
    "::__find_impl<",
    "slices.Contains[",
    "slices.Index[",
    "#includes?",
    "mem.indexOfScalar",
];
/// Parts of the names of functions that compare two values.
const COMPARES: &[&str] = &["memcmp", "bcmp", "strcmp", "strncmp", "strcasecmp", "memeq"];
/// A loop has this part of the samples of its process, at least: with what it calls that may be most.
const PART: f64 = 0.03;
/// So many of the innermost calls of a sample may lead to the loop.
const CALLS: usize = 4;

/// Searches of one loop, or of functions known by name.
struct Lookup {
    /// Where their samples are.
    stacks: BTreeSet<StackId>,
    list: Searched,
    /// The time of a search in ns, at least.
    each: f64,
}

pub(super) fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let language = facts.processes.get(process).language.as_str();
    if is_interpreted(language) {
        return None;
    }
    let lookups = lookups(found, process);
    let stacks: BTreeSet<StackId> = lookups.iter().flat_map(|of| &of.stacks).copied().collect();
    let chosen = Chosen::of(found, process, |stack| stacks.contains(&stack));
    let main = lookups.iter().max_by_key(|of| of.list.samples)?;
    let (net, ns) = (found.wall.net(), chosen.ns);
    let left = |table: f64| 1.0 - (table / main.each).min(1.0);
    let (least, saving) = (ns.part(LEAST * left(TABLE.1)), ns.part(left(TABLE.0)));
    (saving.share_of(net) >= LARGE).then(|| Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "one list searched from its start again and again".into(),
        text: format!(
            "{} spent {} of its {} ({}) looking for one value after the other in a list of {}.",
            facts.name(process),
            time(ns),
            time(net),
            percent(ns, net),
            length(main.list.bytes),
        ),
        amount: ns,
        saving,
        range: (least, ns),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &chosen.places),
        evidence: evidence(main),
        remedy: remedy(language).into(),
    })
}

/// What a process searches: loops that show it, and where none does, functions by their names.
fn lookups(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Lookup> {
    let facts = found.facts;
    let all: BTreeSet<StackId> =
        samples_of(found, process).filter_map(|(_, site, _)| site.stack()).collect();
    let (_, loops) = hot_loops::within(facts, process, (PART, hot_loops::is_of_loops), |_| true);
    let loops = loops.iter().filter_map(|hot| Lookup::of_loop(facts, process, hot, &all));
    let mut lookups: Vec<Lookup> = loops.collect();
    let known: BTreeSet<StackId> = lookups.iter().flat_map(|of| &of.stacks).copied().collect();
    let is_named = |stack: &StackId| names(&facts.sample(*stack), LOOKUPS);
    let named: BTreeSet<StackId> = all.difference(&known).copied().filter(is_named).collect();
    let mut by_function: BTreeMap<(TaskId, Option<NameId>), Vec<WithRegisters>> = BTreeMap::new();
    for sample in hot_loops::with_registers(facts, process, |stack| named.contains(&stack)) {
        let function = facts.sample(sample.stack).own_function();
        by_function.entry((sample.task, function)).or_default().push(sample);
    }
    lookups.extend(by_function.values().filter_map(|samples| Lookup::by_name(samples)));
    lookups
}

impl Lookup {
    fn of_loop(
        facts: &Facts<'_>,
        process: ProcessId,
        hot: &HotLoop,
        all: &BTreeSet<StackId>,
    ) -> Option<Self> {
        let cycle = hot.cycle(facts)?;
        let search = cycle.search()?;
        let machine = &facts.machine;
        let in_loop = |at: &LocationId| {
            let within = machine.place(*at).is_some_and(|addr| cycle.holds(addr));
            within && machine.function_at(*at) == Some(hot.function)
        };
        let stack_of = |stack: StackId| facts.symbols().stack(stack);
        // Comparisons that it calls count too.
        let passes = |stack: &StackId| stack_of(*stack).iter().take(CALLS).any(in_loop);
        let stacks: BTreeSet<StackId> = all.iter().copied().filter(passes).collect();
        let shows = |stack| {
            let [inner, caller] = [0, 1].map(|at| stack_of(stack).get(at).is_some_and(in_loop));
            stacks.contains(&stack) && (inner || caller && compares(&facts.sample(stack)))
        };
        let list = searched(&search, &hot_loops::with_registers(facts, process, shows))?;
        let turn = hot.speed.map_or(cycle.begun_cycles() * CYCLE, |speed| speed.turn);
        let each = list.turns * turn;
        let is_own = is_search(facts, hot, &search, &stacks);
        (is_own && is_long(&list)).then_some(Self { stacks, list, each })
    }

    fn by_name(samples: &[WithRegisters]) -> Option<Self> {
        let list = by_accesses(samples).filter(is_long)?;
        let stacks = samples.iter().map(|sample| sample.stack).collect();
        Some(Self { stacks, list, each: list.turns * 2.0 * CYCLE })
    }
}

fn is_long(list: &Searched) -> bool {
    list.turns >= TURNS && list.bytes >= BYTES
}

/// Whether one of the library functions of a sample has such a name.
fn names(sample: &UserSample<'_>, parts: &[&str]) -> bool {
    sample.library().any(|(name, _)| parts.iter().any(|part| name.contains(part)))
}

/// A length in whole KiB, in words.
fn length(of: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
    let of = of as u64;
    bytes(of.next_multiple_of(1024))
}

fn evidence(main: &Lookup) -> Vec<String> {
    vec![format!(
        "the registers at {} show where in the list a search was: each begins at the list's start, and goes over about {} \
         of it",
        things(main.list.samples as u64, "sample"),
        length(main.list.way),
    )]
}

/// Whether a sample was taken in a comparison.
fn compares(sample: &UserSample<'_>) -> bool {
    let leaf = sample.library().next();
    leaf.is_some_and(|(name, _)| COMPARES.iter().any(|part| name.contains(part)))
}

/// Whether a loop searches the program's own list for a value: by its code, or by the functions that it was inlined from.
fn is_search(
    facts: &Facts<'_>,
    hot: &HotLoop,
    search: &Search,
    stacks: &BTreeSet<StackId>,
) -> bool {
    let part = |meets: &dyn Fn(&UserSample<'_>) -> bool| {
        hot.part(|sample| meets(&facts.sample(sample.stack)))
    };
    let by_name = part(&|sample| names(sample, LOOKUPS)) > 0.5;
    let is_own = || {
        let of_loop = |sample: &UserSample<'_>| {
            let function = sample.own.and_then(|own| facts.machine.function_at(own));
            function == Some(hot.function)
        };
        part(&of_loop) > 0.5
    };
    let calls_comparison = || stacks.iter().any(|stack| compares(&facts.sample(*stack)));
    by_name
        || is_own()
            && match search.found {
                Found::Value => true,
                Found::Call => calls_comparison(),
                Found::Other => false,
            }
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Rust" => {
            "Keep the values in a HashSet or HashMap beside the list (or sort it once and use binary_search): one \
             look instead of a walk."
        }
        "C++" => {
            "Keep the values in an unordered_set or unordered_map beside the list (or sort it once and use \
             lower_bound): one look instead of a walk."
        }
        "Go" => {
            "Keep the values in a map beside the slice (or sort it once and use slices.BinarySearch): one look \
             instead of a walk."
        }
        "Crystal" => {
            "Keep the values in a Set or Hash beside the array (or sort it once and use bsearch)."
        }
        "Zig" => {
            "Keep the values in a hash map beside the slice (std.AutoHashMap, std.StringHashMap), or sort it once and \
             use a binary search."
        }
        _ => {
            "Keep the values in a hash table beside the list, or sort it once and use bsearch: one look instead of a walk."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{found, looping, scattered};
    use expect_test::expect;

    /// The list.
    const LIST: u64 = 0x7f00_0000_0000;
    // 0: cmp [rdi], rdx; 3: je e; 5: add rdi, 8; 9: cmp rdi, rsi; c: jne 0; e: ret
    const FIND: &str = "code seek @0x1000 483917 7409 4883c708 4839f7 75f2 c3";

    /// A loop with this code: at each sample rdi and rsi, from the start of the list.
    fn searching(code: &str, place: impl Fn(u64) -> (u64, u64)) -> String {
        looping(code, 200, |i| {
            let (at, end) = place(i);
            let stack = "seek (f.c:5) @0x1009 <- main (f.c:9) @0x2000".to_owned();
            (stack, vec![(7, LIST + at), (6, LIST + end), (2, 77)])
        })
    }

    #[test]
    fn a_list_that_is_searched_for_one_value_after_the_other_is_found() {
        let text = searching(FIND, |i| (8 * scattered(i, 4000), 32_000));
        expect![[r#"
            rescans 98 % (59..100) @ seek:5: app spent 2.00 ms of its 2.00 ms (100 %) looking for one value after the other in a list of 32 KiB.
        "#]]
        .assert_eq(&found(&text));
    }

    #[test]
    fn a_list_that_grows_between_searches_is_found() {
        let text = searching(FIND, |i| (8 * scattered(i, 1000 + 20 * i), 8000 + 160 * i));
        assert!(found(&text).starts_with("rescans"), "{}", found(&text));
    }

    #[test]
    fn short_lists_single_passes_and_other_lists_each_time_are_refused() {
        // Twenty values; one pass; searches that mostly end at the first values; many lists.
        assert_eq!(found(&searching(FIND, |i| (8 * scattered(i, 20), 160))), "");
        assert_eq!(found(&searching(FIND, |i| (80_000 * i, 160_000_000))), "");
        assert_eq!(found(&searching(FIND, |i| (8 * scattered(i, 12), 32_000))), "");
        let rows = |i: u64| 64_000 * scattered(i, 10_000);
        assert_eq!(
            found(&searching(FIND, |i| (rows(i) + 8 * scattered(i, 400), rows(i) + 3200))),
            ""
        );
    }

    #[test]
    fn a_loop_that_checks_whether_all_are_equal_is_refused() {
        // The same, but left where a value differs (jne).
        let all = FIND.replace("7409", "7509");
        assert_eq!(found(&searching(&all, |i| (8 * scattered(i, 4000), 32_000))), "");
    }
}
