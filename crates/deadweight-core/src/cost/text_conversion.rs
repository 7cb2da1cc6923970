//! Text conversion.
//!
//! # What it is
//! Numbers become text or text becomes numbers by a way that does much more than that: a stream with its
//! locale is built for each number, a format string is read again for each item, a regular
//! expression is compiled for each line, a new string is made where a buffer would do. A locale is asked for each
//! character; `std::cin` stays in step with C's `stdin`, and reads one character at a time.
//!
//! # How deadweight knows
//! Samples under the standard libraries' functions for text: the families of printf, scanf, iostream
//! and locale, strtod, regular expressions while they are compiled, `core::fmt`, Go's `fmt` and
//! `strconv`, Crystal's `to_s`. The row is all of this time. A finding needs an indirect way, and is
//! silent about the direct ones (`strtod`, `to_chars`, `strconv.AppendInt`): these are what is to
//! be done. All that an indirect way allocates, clears and copies belongs to it. What part of the time the direct way saves is an estimate by the kind of way.
//!
//! # What it is mistaken for
//! A program whose work is text and that does it the direct way: a row, and no finding. Memory for
//! its strings is *allocation*, and so is what the program itself frees. Writing them one by one is *tiny-writes*.
//!
//! # What to do
//! Convert by the direct function into a buffer that is kept; compile an expression once; keep the
//! stream outside the loop; take a locale's facet once; `std::ios::sync_with_stdio(false)`.
//!
//! # Seen in
//! A weather bulletin that builds an `ostringstream` for each number.
//! In `tests/programs`: `stream_per_number.cpp`, `formatted_keys.go`, `numbers_from_cin.cpp`.

mod way;

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::call_site::{CallSite, Weights, add, amount};
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::shares::{Share, sampled_sites, samples_of};
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;
use way::Way;

pub(super) const CLASS: Class = Class {
    id: "text-conversion",
    source: include_str!("text_conversion.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// What goes on for this part of a process's life happens again and again.
const GOES_ON: f64 = 0.5;

fn claim(sample: &UserSample<'_>) -> bool {
    sample.own.is_some()
        && sample.under(SymbolRole::Convert)
        && (!is_for_memory(sample) || Way::of(sample).is_indirect() && !copies_text(sample))
}

/// Rust's integers. Their `to_string` is one function without a format.
#[rustfmt::skip]
const NUMBERS: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
];

/// Whether `to_string` was called for what is text already: that allocates and copies.
fn copies_text(sample: &UserSample<'_>) -> bool {
    const OF_ANY: [&str; 2] = ["SpecToString>", "as alloc::string::ToString>"];
    let of_any = |name: &str| {
        let number = name.strip_prefix('<').and_then(|name| name.split_once(" as "));
        OF_ANY.iter().any(|part| name.contains(part))
            && !number.is_some_and(|(of, _)| NUMBERS.contains(&of))
    };
    let mut converts = sample.library().filter(|(_, role)| *role == SymbolRole::Convert);
    converts.all(|(name, _)| of_any(name))
}

/// Whether the conversion was allocating, or collected garbage.
fn is_for_memory(sample: &UserSample<'_>) -> bool {
    use SymbolRole::{Allocate, Collect, Grow, Release};
    sample.under(Collect) || matches!(sample.symbol_role(), Some(Allocate | Grow | Release))
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

/// The samples of each way; those of a stream's own conversions belong to the stream that is built for them.
fn ways(found: &Inspection<'_, '_>, share: &Share) -> Vec<(Way, Weights)> {
    let mut ways: Vec<(Way, Weights)> = Vec::new();
    for (site, weight) in &share.places {
        let Some(stack) = site.stack() else { continue };
        let way = Way::of(&found.facts.sample(stack));
        let at = ways.iter().position(|(known, _)| *known == way).unwrap_or(ways.len());
        if at == ways.len() {
            ways.push((way, Weights::new()));
        }
        ways[at].1.entry(*site).or_default().amount += weight.amount;
    }
    for way in [Way::Stream, Way::Console] {
        join(found, &mut ways, way);
    }
    ways
}

/// Where one of the program's functions builds a stream, what it puts into a stream goes into that one; where it reads from one
/// without a buffer, all that it reads comes from there.
fn join(found: &Inspection<'_, '_>, ways: &mut [(Way, Weights)], into: Way) {
    let sample = |site: &CallSite| Some(found.facts.sample(site.stack()?));
    let owner = |site: &CallSite| sample(site)?.own_function();
    let at = |way| ways.iter().position(|(known, _)| *known == way);
    let (Some(first), Some(put)) = (at(into), at(Way::Put)) else { return };
    let owners: BTreeSet<_> = ways[first].1.keys().filter_map(owner).collect();
    let joins = |site: &CallSite| {
        owner(site).is_some_and(|own| owners.contains(&own))
            && sample(site).is_some_and(|sample| into.takes(&sample))
    };
    let (joined, other) =
        std::mem::take(&mut ways[put].1).into_iter().partition(|(site, _)| joins(site));
    ways[put].1 = other;
    add(&mut ways[first].1, &joined);
}

/// Whether these samples are spread over the life of the process, after its initialisers: what is compiled once, at
/// the start, is not.
fn goes_on(found: &Inspection<'_, '_>, process: ProcessId, places: &Weights) -> bool {
    let timeline = found.facts.timeline;
    let process = found.facts.processes.get(process);
    let initialised = process.initialisers.as_ref().map_or(Ns::ZERO, |ran| ran.to);
    let tasks = process.tasks.iter();
    let samples: Vec<_> = tasks.flat_map(|task| &timeline.task(*task).samples).collect();
    let stacks: BTreeSet<_> = places.keys().filter_map(|site| site.stack()).collect();
    let span = |of: &mut dyn Iterator<Item = Ns>| {
        let (first, last) = of.fold((Ns::MAX, Ns::ZERO), |(a, z), at| (a.min(at), z.max(at)));
        last.max(first) - first
    };
    let all = span(&mut samples.iter().map(|sample| sample.at));
    let after = samples.iter().filter(|sample| sample.at >= initialised);
    let inside = after.filter(|sample| stacks.contains(&sample.stack));
    span(&mut inside.map(|sample| sample.at)).share_of(all) >= GOES_ON
}

/// What the memory costs that is allocated in these places: their part, by samples in the allocator, of collecting, of
/// giving back, and of first touches.
fn memory_for(found: &Inspection<'_, '_>, process: ProcessId, places: &Weights) -> Ns {
    let of_memory = ["gc", "memory-churn", "first-touch"].map(AccountId::of_class);
    let entries = found.wall.in_process(process).filter(|e| of_memory.contains(&e.account));
    entries.map(|entry| entry.ns).sum::<Ns>().part(part_of_memory(found, process, places))
}

/// The part of a process' allocating, by samples, that these places have.
fn part_of_memory(found: &Inspection<'_, '_>, process: ProcessId, places: &Weights) -> f64 {
    let (mut here, mut all) = (0, 0);
    for (of, site, amount) in samples_of(found, process) {
        let inside = places.contains_key(&site);
        if of != AccountId::of_class("allocation") && !inside {
            continue;
        }
        let allocates = site.stack().is_some_and(|stack| is_for_memory(&found.facts.sample(stack)));
        all += if allocates { amount } else { 0 };
        here += if allocates && inside { amount } else { 0 };
    }
    here as f64 / all.max(1) as f64
}

/// The part of a process' allocating that its finding of this class makes; 0 without one. A collector that runs for it
/// is no finding beside.
pub(super) fn garbage(found: &Inspection<'_, '_>, process: ProcessId) -> f64 {
    let share = Share::of(found.wall, AccountId::of_class(CLASS.id), process);
    let chosen = share.and_then(|share| chosen(found, &share, process));
    chosen.map_or(0.0, |(_, places)| part_of_memory(found, process, &places))
}

/// The way that is worth a finding, and its samples.
fn chosen(found: &Inspection<'_, '_>, share: &Share, process: ProcessId) -> Option<(Way, Weights)> {
    let net = found.wall.net();
    ways(found, share)
        .into_iter()
        .filter(|(way, places)| *way != Way::Expression || goes_on(found, process, places))
        .filter(|(way, places)| {
            way.is_indirect() && share.time_of(amount(places)).share_of(net) >= way.large()
        })
        .max_by_key(|(_, places)| amount(places))
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    let (way, places) = chosen(found, &share, process)?;
    let samples = amount(&places);
    let ns = share.time_of(samples);
    let (low, high) = share.interval(ns);
    let (least, typical, most) = way.saved();
    let memory = memory_for(found, process, &places);
    let mut evidence = vec![format!("{} in such conversions", things(samples, "sample"))];
    if memory > Ns::ZERO {
        evidence.push(format!(
            "{} more for the memory that they take: collecting it, giving it back, touching it",
            time(memory)
        ));
    }
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: way.says().into(),
        text: format!(
            "{} spent {} of its {} {} ({}).",
            facts.name(process),
            time(ns),
            time(net),
            match way {
                Way::Locale => "asking a locale about characters",
                Way::Console => "reading from standard input by a C++ stream without a buffer",
                _ => "in conversions between values and text",
            },
            percent(ns, net),
        ),
        amount: ns,
        // Other allocations would still make the collector run.
        saving: ns.part(typical) + memory.part(least),
        range: (low.part(least), (high + memory).part(most)),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &places),
        evidence,
        remedy: remedy(way, &facts.processes.get(process).language).into(),
    })
}

fn remedy(way: Way, language: &str) -> &'static str {
    match (way, language) {
        (Way::Expression, _) => {
            "Compile the expression once, before the loop (a static, a package variable, OnceLock)."
        }
        (Way::Stream, _) => {
            "std::to_chars into a small array, std::from_chars from the text; or one stream outside the \
             loop, emptied by str(\"\")."
        }
        (Way::Locale, _) => {
            "Take the facet once, outside the loop (const auto &letters = std::use_facet<std::ctype<char>>(locale)), or the \
             functions of <cctype>; for ASCII, a comparison."
        }
        (Way::Console, _) => {
            "std::ios::sync_with_stdio(false) and std::cin.tie(nullptr) before the first input: then the stream has a buffer. \
             Do not mix it with scanf and getchar afterwards."
        }
        (Way::Scan, "Go") => {
            "strconv.Atoi and strconv.ParseFloat on the fields (bufio.Scanner, strings.Cut)."
        }
        (Way::Scan, _) => {
            "strtol and strtod, or std::from_chars: they read no format and stop behind the number."
        }
        (_, "Go") => {
            "strconv.AppendInt, AppendFloat and append into a buffer that is kept; for a map's key, a struct \
             of the values instead of a formatted string."
        }
        (_, "Rust") => {
            "write!(buffer, ...) into a String that is kept and cleared, or the crates itoa and ryu; for a \
             map's key, a tuple of the values instead of format!."
        }
        (_, "C" | "C++") => {
            "std::to_chars, or a conversion of your own, into a buffer that is kept; for a key, the values \
             themselves instead of their text."
        }
        (_, "Crystal") => {
            "value.to_s(io) into an IO or a String.build that is kept, instead of a new String."
        }
        _ => {
            "Convert into a buffer that is kept, by the function for that type; use the values themselves as keys."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{computing, found, rows};
    use expect_test::expect;

    const BUILT: &str = "\"std::ctype<char> const& std::use_facet<std::ctype<char> >(std::locale const&)\" @libstdc++.so.6 <- \"std::basic_ios<char, std::char_traits<char> >::init(std::basic_streambuf<char>*)\" @libstdc++.so.6 <- std::__cxx11::basic_ostringstream<char> (/usr/include/c++/12/sstream:80) in decimal (b.cpp:99) <- main (b.cpp:120)";
    const PUT: &str = "__printf_fp_l @libc.so.6 <- __vfprintf_internal @libc.so.6 <- \"std::ostream::_M_insert<double>(double)\" @libstdc++.so.6 <- std::ostream::operator<< (/usr/include/c++/12/ostream:221) in decimal (b.cpp:100) <- main (b.cpp:120)";

    #[test]
    fn a_stream_per_number_is_found_with_its_conversions() {
        let text = computing("C++", &[(40, BUILT), (45, PUT), (15, "main (b.cpp:121)")]);
        expect![[r#"
            text-conversion 74 % (41..92) @ decimal:100: app spent 84.6 µs of its 100 µs in conversions between values and text (85 %).
        "#]].assert_eq(&found(&text));
        expect![[r#"
            text-conversion 84575
            net-work 14925
        "#]]
        .assert_eq(&rows(&text, 2));
    }

    #[test]
    fn a_locale_that_is_asked_for_each_character_is_no_stream() {
        let facet = "__dynamic_cast @libstdc++.so.6 <- \"std::use_facet<std::ctype<char> >\" @libstdc++.so.6 <- std::toupper<char> (/usr/include/c++/12/bits/locale_facets.h:2654) in up (u.cpp:8) <- main (u.cpp:11)";
        let said = found(&computing("C++", &[(80, facet), (20, "main (u.cpp:12)")]));
        expect![[r#"
            text-conversion 68 % (32..88) @ up:8: app spent 79.6 µs of its 100 µs asking a locale about characters (80 %).
        "#]]
        .assert_eq(&said);
    }

    #[test]
    fn input_in_step_with_c_is_found_and_a_stream_with_a_buffer_refused() {
        let read = |inner: &str| {
            format!(
                "{inner}\"std::num_get<char, std::istreambuf_iterator<char, std::char_traits<char> > >::_M_extract_int<long>\" @libstdc++.so.6 <- \"std::basic_istream<char, std::char_traits<char> >::_M_extract<long>\" @libstdc++.so.6 <- main (r.cpp:9)"
            )
        };
        let (digits, back) = (read(""), read("ungetc @libc.so.6 <- "));
        let text = computing("C++", &[(40, &digits), (40, &back), (20, "main (r.cpp:12)")]);
        expect![[r#"
            text-conversion 68 % (32..88) @ main:9: app spent 79.6 µs of its 100 µs reading from standard input by a C++ stream without a buffer (80 %).
        "#]]
        .assert_eq(&found(&text));
        assert_eq!(found(&computing("C++", &[(80, &digits), (20, "main (r.cpp:12)")])), "");
    }

    #[test]
    fn a_stream_that_is_kept_and_tests_of_its_state_are_refused() {
        const STREAM: &str = "std::__cxx11::basic_ostringstream<char, std::char_traits<char>, std::allocator<char> >";
        let of = "basic_ostringstream (/usr/include/c++/12/sstream:80) in decimal (b.cpp:99) <- main (b.cpp:120)";
        let emptied =
            format!("\"{STREAM}::str\" @libstdc++.so.6 <- decimal (b.cpp:99) <- main (b.cpp:120)");
        let state = "\"std::basic_ios<char, std::char_traits<char> >::operator bool\" (/usr/include/c++/12/bits/basic_ios.h:117) in decimal (b.cpp:99) <- main (b.cpp:120)";
        let facet =
            "std::locale::id::_M_id @libstdc++.so.6 <- decimal (b.cpp:99) <- main (b.cpp:120)";
        let text = |first: &str| {
            computing(
                "C++",
                &[(30, first), (20, state), (10, facet), (30, PUT), (10, "main (b.cpp:121)")],
            )
        };
        assert_eq!(found(&text(&emptied)), "");
        let built = found(&text(
            &format!("\"{STREAM}::{of}")
                .replace("basic_ostringstream (", "basic_ostringstream\" ("),
        ));
        assert!(built.starts_with("text-conversion"), "{built}");
    }

    #[test]
    fn a_format_of_a_library_that_is_linked_in_is_found_at_the_programs_line() {
        let digits = "__mpn_divrem <- hack_digit <- __printf_fp_l <- __vfprintf_internal <- snprintf <- put (j.c:22) <- main (j.c:40)";
        let text = computing("C", &[(60, digits), (40, "main (j.c:41)")]);
        let said = found(&text);
        assert!(said.starts_with("text-conversion") && said.contains("@ put:22"), "{said}");
        assert_eq!(rows(&text, 1), "text-conversion 59700\n");
        let own = "hack_digit <- digits <- put (j.c:22) <- main (j.c:40)";
        assert_eq!(found(&computing("C", &[(60, own), (40, "main (j.c:41)")])), "");
    }

    #[test]
    fn numbers_put_into_the_output_are_a_row() {
        let text = computing("C++", &[(85, PUT), (15, "main (b.cpp:121)")]);
        assert_eq!(found(&text), "");
        expect![[r#"
            text-conversion 84575
        "#]]
        .assert_eq(&rows(&text, 1));
    }

    #[test]
    fn formatted_keys_in_go_are_found_and_direct_conversions_are_not() {
        let formatted = "fmt.(*fmt).fmtInteger (/usr/local/go/src/fmt/format.go:200) <- fmt.Sprintf (/usr/local/go/src/fmt/print.go:239) <- main.key (k.go:9) <- main.main (k.go:30)";
        let text = computing("Go", &[(40, formatted), (60, "main.main (k.go:31)")]);
        expect![[r#"
            text-conversion 28 % (6..55) @ main.key:9: app spent 39.8 µs of its 100 µs in conversions between values and text (40 %).
        "#]].assert_eq(&found(&text));
        // Formatted as well, but straight into the log.
        let logged = "fmt.(*fmt).fmtInteger (/usr/local/go/src/fmt/format.go:200) <- fmt.Appendf (/usr/local/go/src/fmt/print.go:249) <- log.(*Logger).Printf (/usr/local/go/src/log/log.go:278) <- main.serve (k.go:9) <- main.main (k.go:30)";
        assert_eq!(found(&computing("Go", &[(60, logged), (40, "main.main (k.go:31)")])), "");
        let direct = "strconv.ParseFloat (/usr/local/go/src/strconv/atof.go:700) <- main.read (k.go:9) <- main.main (k.go:30)";
        assert_eq!(found(&computing("Go", &[(60, direct), (40, "main.main (k.go:31)")])), "");
    }

    #[test]
    fn expressions_compiled_all_the_time_are_found_and_those_at_the_start_are_not() {
        let compile = "regexp/syntax.parse (/usr/local/go/src/regexp/syntax/parse.go:9) <- regexp.MustCompile (/usr/local/go/src/regexp/regexp.go:9) <- main.match (k.go:9) <- main.main (k.go:30)";
        let (some, rest) = ((20, compile), (30, "main.main (k.go:31)"));
        let said = found(&computing("Go", &[some, rest, some, rest]));
        assert!(said.starts_with("text-conversion 39 %"), "{said}");
        assert_eq!(found(&computing("Go", &[some, some, rest, rest])), "");
    }

    #[test]
    fn memory_of_an_indirect_way_is_found_with_it_and_that_of_a_direct_way_is_not() {
        let compile = "regex::builders::string::RegexBuilder::build (/cargo/registry/regex/builders.rs:9) <- hits (r.rs:9) <- main (r.rs:30)";
        let inside = format!("malloc @libc.so.6 <- {compile}");
        let rest = "main (r.rs:31)";
        let text = computing(
            "Rust",
            &[(20, compile), (15, &inside), (30, rest), (20, compile), (15, &inside)],
        );
        assert_eq!(rows(&text, 1), "text-conversion 69650\n");
        let copy = "malloc @libc.so.6 <- \"<str as alloc::string::ToString>::to_string\" (/rustc/string.rs:9) <- field (r.rs:9) <- main (r.rs:30)";
        let text = computing("Rust", &[(50, copy), (50, rest)]);
        assert!(rows(&text, 2).contains("allocation 497"), "{}", rows(&text, 2));
        let number = "malloc @libc.so.6 <- \"<u32 as alloc::string::SpecToString>::spec_to_string\" (/rustc/string.rs:9) in \"<T as alloc::string::ToString>::to_string\" (/rustc/string.rs:30) in digits (r.rs:9) <- main (r.rs:30)";
        let text = computing("Rust", &[(50, number), (50, rest)]);
        assert!(rows(&text, 1).starts_with("text-conversion 497"), "{}", rows(&text, 2));
        let read = "strtod @libc.so.6 <- read (r.c:9) <- main (r.c:30)";
        let inside = format!("malloc @libc.so.6 <- {read}");
        let text = computing("C", &[(20, read), (50, &inside)]);
        expect![[r#"
            allocation 49643
            text-conversion 19857
        "#]]
        .assert_eq(&rows(&text, 2));
    }

    #[test]
    fn a_little_formatting_and_a_program_that_prints_are_refused() {
        let key =
            "__vfprintf_internal @libc.so.6 <- snprintf @libc.so.6 <- key (k.c:9) <- main (k.c:30)";
        assert_eq!(found(&computing("C", &[(10, key), (90, "main (k.c:31)")])), "");
        let print =
            "__vfprintf_internal @libc.so.6 <- printf @libc.so.6 <- show (k.c:9) <- main (k.c:30)";
        assert_eq!(found(&computing("C", &[(80, print), (20, "main (k.c:31)")])), "");
    }
}
