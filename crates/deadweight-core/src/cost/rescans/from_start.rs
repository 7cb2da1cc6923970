//! Searches that begin at the start of the same memory again and again, while what they go over grows: the next marker
//! searched from the start, lines counted up to each place. And those that go up to its end, while their start moves on.
//!
//! Registers at the samples show it, see `facts::growing`. Not for functions that look for the end of a text: these
//! have an account. Those that count characters have it too, and are looked at here.

use super::{AccountId, CLASS};
use crate::facts::call_site::Weights;
use crate::facts::growing::{ADDRESS, Growing, Values, growing};
use crate::facts::hot_loops::{WithRegisters, with_registers};
use crate::facts::processes::ProcessId;
use crate::inspect::shares::{Own, sampled_sites, samples_of};
use crate::inspect::{Draft, Inspection};
use deadweight_code::machine_code::FunctionId;
use deadweight_report::account::NET_WORK;
use deadweight_report::report::How;
use deadweight_report::wording::{bytes, percent, things, time};
use deadweight_trace::ids::{NameId, StackId, TaskId};
use deadweight_trace::units::{FileAddr, Ns};
use std::collections::{BTreeMap, BTreeSet};

/// Below this share of the wall time it does not matter.
const LARGE: f64 = 0.1;
/// The part of the time that goes away, least and typical: of each text one search remains.
const LEAST: f64 = 0.5;
const TYPICAL: f64 = 0.95;
/// Parts of the names of functions that search a text or count in it.
const SEARCHES: &[&str] = &[
    "memchr",
    "memrchr",
    "memmem",
    "strchr",
    "strrchr",
    "strstr",
    "strspn",
    "strcspn",
    "strpbrk",
    "internal/bytealg.",
    "indexbytebody",
    "countbody",
    "countGeneric",
    "core::str::pattern::",
    "core::str::count::",
    "unicode/utf8.RuneCount",
    "mem.indexOf",
    "mem.count",
    "mem.findScalar",
    "mem.find",
    "::find(",
    "::find_first_of",
    "::find_first_not_of",
    "String#index",
    "String#byte_index",
    "String#count",
    "Slice(UInt8)#index",
];

/// Searches of one of the program's own functions in one thread.
#[derive(Default)]
struct Search {
    /// Where their samples are.
    stacks: BTreeSet<StackId>,
    /// The registers at these and what they accessed, in order of time ...
    values: Vec<Values>,
    /// ... and the loop around each, with the instruction that made the access.
    accessed: Vec<(Code, Code)>,
}

/// An instruction, or a loop by its first one; none where that is not known.
type Code = Option<(FunctionId, FileAddr)>;

pub(super) fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let searches = searches(found, process);
    let grown = |(of, search)| -> Option<(_, &Search, Growing)> {
        let (_, function): &(TaskId, NameId) = of;
        Some((*function, search, growing(&search.values)?))
    };
    let all: Vec<_> = searches.iter().filter_map(grown).collect();
    let (_, largest, main) = all.iter().max_by_key(|(_, search, _)| search.values.len())?;
    let stacks: BTreeSet<StackId> =
        all.iter().flat_map(|(_, search, _)| search.stacks.iter().copied()).collect();
    let functions: BTreeSet<NameId> = all.iter().map(|(function, ..)| *function).collect();
    let (mut samples, mut around, mut places) = (0, 0, Weights::new());
    for (account, site, amount) in samples_of(found, process) {
        let of_search = [NET_WORK, AccountId::of_class(CLASS.id)].contains(&account);
        let Some(stack) = site.stack().filter(|_| of_search) else { continue };
        if stacks.contains(&stack) {
            samples += amount;
            places.entry(site).or_default().amount += amount;
        } else if found.facts.sample(stack).own_function().is_some_and(|of| functions.contains(&of))
        {
            around += amount;
        }
    }
    let [ns, around] = [samples, around].map(|of| Own::of(found.wall, process).part(of as f64));
    let spent = Spent { ns, around, places, samples: largest.values.len() };
    (ns.share_of(found.wall.net()) >= LARGE).then(|| finding(found, process, *main, &spent))
}

/// What searches from the start took.
struct Spent {
    /// Their time.
    ns: Ns,
    /// The other time of the functions that make them: each search has its share of it.
    around: Ns,
    /// Where.
    places: Weights,
    /// The samples with registers of the search that is described.
    samples: usize,
}

/// The searches of a process.
fn searches(found: &Inspection<'_, '_>, process: ProcessId) -> BTreeMap<(TaskId, NameId), Search> {
    let facts = found.facts;
    let mut known: BTreeMap<StackId, Option<NameId>> = BTreeMap::new();
    let of_search = |stack| {
        let sample = facts.sample(stack);
        let searches = |name: &str| SEARCHES.iter().any(|part| name.contains(part));
        let is_search = sample.library().any(|(name, _)| searches(name));
        sample.own_function().filter(|_| is_search)
    };
    let wanted = |stack| known.entry(stack).or_insert_with(|| of_search(stack)).is_some();
    let sampled = with_registers(facts, process, wanted);
    let mut searches: BTreeMap<(TaskId, NameId), Search> = BTreeMap::new();
    for WithRegisters { task, at, stack, general, access, within } in sampled {
        let Some(function) = known.get(&stack).copied().flatten() else { continue };
        let search = searches.entry((task, function)).or_default();
        search.stacks.insert(stack);
        let mut values = [0; ADDRESS + 1];
        values[..ADDRESS].copy_from_slice(&general);
        values[ADDRESS] = access.map_or(0, |access| access.address);
        search.values.push((at, values));
        search.accessed.push((within, access.map(|access| access.by)));
    }
    searches.values_mut().for_each(Search::keep_addresses_of_one_loop);
    searches
}

impl Search {
    /// Leaves only the addresses that its largest loop accessed, without those of variables: which an instruction
    /// accesses in most of its samples.
    fn keep_addresses_of_one_loop(&mut self) {
        let addresses = self.values.iter().map(|(_, values)| values[ADDRESS]);
        let (mut loops, mut same) = (BTreeMap::<Code, usize>::new(), BTreeMap::new());
        for ((within, by), address) in self.accessed.iter().zip(addresses) {
            if address != 0 {
                *loops.entry(*within).or_default() += 1;
                let of_instruction: &mut BTreeMap<u64, usize> = same.entry(*by).or_default();
                *of_instruction.entry(address).or_default() += 1;
            }
        }
        let largest = loops.into_iter().max_by_key(|(_, count)| *count).map(|(of, _)| of);
        let is_variable = |by: &Code, address: u64| {
            let of_instruction: &BTreeMap<u64, usize> = &same[by];
            2 * of_instruction[&address] > of_instruction.values().sum()
        };
        for ((_, values), (within, by)) in self.values.iter_mut().zip(&self.accessed) {
            let address = values[ADDRESS];
            if address != 0 && (Some(*within) != largest || is_variable(by, address)) {
                values[ADDRESS] = 0;
            }
        }
    }
}

fn finding(found: &Inspection<'_, '_>, process: ProcessId, main: Growing, spent: &Spent) -> Draft {
    let (facts, net, ns) = (found.facts, found.wall.net(), spent.ns);
    let [first, last] = [main.first, main.last].map(|way| bytes(way.next_multiple_of(1024)));
    let (over, advice) = if main.to_the_end {
        (
            format!("up to the end of the same text: over {first} at first and {last} at last"),
            "Do not search the rest for each item: search once and keep what was found, or limit the search to what \
             the item can reach.",
        )
    } else {
        (
            format!("from the start of the same text: over {first} at first and {last} at last"),
            "Go on where the last search ended (the second argument of find; a slice of the rest), or keep what was \
             counted and add only what is new.",
        )
    };
    Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "the same text searched again and again".into(),
        text: format!(
            "{} spent {} of its {} ({}) on searches {over}. If each part of the text is searched for, twice the text takes four times as long.",
            facts.name(process),
            time(ns),
            time(net),
            percent(ns, net),
        ),
        amount: ns,
        saving: (ns + spent.around.part(0.5)).part(TYPICAL),
        range: (ns.part(LEAST), ns + spent.around),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &spent.places),
        evidence: vec![format!(
            "the registers at {} show where a search was: anywhere in that range, so each part of it is read many times",
            things(spent.samples as u64, "sample")
        )],
        remedy: advice.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{found, sampled, scattered};
    use super::*;
    use expect_test::expect;
    use std::fmt::Write;

    const SEARCH: &str = "__memchr_avx2 @libc.so.6 <- next (m.c:27) <- main (m.c:49)";
    const MEMORY: u64 = 0x7f00_0000_0000;

    /// A program that searches, in so many of twenty samples: how far in its memory at the sample with this number of 2000.
    fn searching(stack: &str, of_twenty: u64, way: impl Fn(u64) -> u64) -> String {
        let mut text = String::from(
            "image app path /bin/app\nimage libc.so.6 path /lib/libc.so.6\nsample-period 1000\n\
             task 1 app\n0 on\n0 exec /bin/app\n0 main\n",
        );
        for i in 0..2000 {
            let sample = match i % 20 < of_twenty {
                true => (stack.to_owned(), vec![(7, MEMORY + way(i))]),
                false => ("main (m.c:50)".to_owned(), Vec::new()),
            };
            write!(text, "{}", sampled(500 + i * 1000, &sample)).unwrap();
        }
        text + "2000000 exit\n2000000 off dead"
    }

    #[test]
    fn a_search_from_the_start_is_found() {
        let text = searching(SEARCH, 18, |i| scattered(i, (2000 * i).isqrt() * 400 + 1));
        expect![[r#"
            rescans 85 % (40..91) @ next:27: app spent 1.80 ms of its 2.00 ms (90 %) on searches from the start of the same text: over 279 KiB at first and 721 KiB at last. If each part of the text is searched for, twice the text takes four times as long.
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn a_search_of_the_rest_is_found() {
        let text = searching(SEARCH, 18, |i| {
            800_000 - scattered(i, (2000 * (2000 - i)).isqrt() * 400 + 1)
        });
        expect![[r#"
            rescans 85 % (40..91) @ next:27: app spent 1.80 ms of its 2.00 ms (90 %) on searches up to the end of the same text: over 748 KiB at first and 294 KiB at last. If each part of the text is searched for, twice the text takes four times as long.
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn characters_counted_from_the_start_are_found_and_those_of_each_text_are_refused() {
        let count = "unicode/utf8.RuneCountInString (/usr/local/go/src/unicode/utf8/utf8.go:448) <- main.column (m.go:27) <- main.main (m.go:49)";
        let said = found(&searching(count, 18, |i| scattered(i, (2000 * i).isqrt() * 400 + 1)));
        assert!(said.starts_with("rescans") && said.contains("@ main.column:27"), "{said}");
        assert_eq!(found(&searching(count, 18, |i| i * 400 + scattered(i, 400))), "");
    }

    #[test]
    fn searches_in_the_same_text_and_in_other_texts_are_refused() {
        // Different words in the same text; each text once; a small part of the time; what is no search.
        assert_eq!(found(&searching(SEARCH, 18, |i| scattered(i, 800_000))), "");
        assert_eq!(found(&searching(SEARCH, 18, |i| i * 400 + scattered(i, 400))), "");
        let from_start = |i: u64| scattered(i, (2000 * i).isqrt() * 400 + 1);
        assert_eq!(found(&searching(SEARCH, 1, from_start)), "");
        let sum = "total (m.c:27) <- main (m.c:49)";
        assert_eq!(found(&searching(sum, 18, from_start)), "");
    }

    #[test]
    fn variables_of_the_loop_and_what_is_accessed_around_it_are_not_where_the_search_is() {
        let at = |addr| Some((FunctionId::default(), FileAddr(addr)));
        let mut search = Search::default();
        for i in 0..600 {
            let place = MEMORY + scattered(i, (600 * i).isqrt() * 400 + 1);
            let (within, by, address) = match i % 6 {
                0 => (at(8), at(20), MEMORY - 400_000),
                1 => (at(4), at(24), MEMORY + 40_000_000 + 64 * i),
                _ => (at(8), at(12), place),
            };
            let mut values = [0; ADDRESS + 1];
            values[ADDRESS] = address;
            search.values.push((Ns(1000 * i), values));
            search.accessed.push((within, by));
        }
        assert_eq!(growing(&search.values), None);
        search.keep_addresses_of_one_loop();
        let grows = growing(&search.values).unwrap();
        assert!(!grows.to_the_end && grows.last > 2 * grows.first, "{grows:?}");
    }
}
