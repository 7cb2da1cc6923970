//! Rescans.
//!
//! # What it is
//! The same text is searched for its end again and again: `strcat` walks over all that was written so
//! far, `sscanf` looks for the end of the whole rest before it reads one number, `strlen` stands in
//! the condition of a loop, a character is taken by its number. The cost grows with the square of the text's length: twice the input
//! takes four times as long. Or a search begins at the start of the text each time, though the last one got
//! further: the next marker, the number of lines up to a place. Or a list is searched for one value after the other, where
//! a table would know the answer; the environment is searched for one variable (`getenv`).
//!
//! # How deadweight knows
//! Samples in `strlen` and its like, called by the program's own line or by `strcat` and `sscanf`. These
//! functions read many bytes per cycle: where they take much of the time, they read far more
//! bytes than the rest of the program does. The row is all time in such searches. A finding under
//! `sscanf` needs more time in the search than in the conversion. The saving is an estimate: a single
//! search of each text would remain. Of searches for something else, the registers at the samples show where they are:
//! anywhere from the start of one memory up to an end that moves on with time, or from a start that moves on up to the end.
//! A loop that looks through a list is known by its machine code (it stores nothing, and ends where an element is equal to a
//! value) or by its function's name; registers show that it begins anew in the same list again and again, and how far it goes.
//!
//! # What it is mistaken for
//! Texts that are measured once: this takes a small part of the time. Characters of each text counted once (`chars().count()`, Go's
//! `RuneCount`): only registers tell this from a count of the same text again. Searches inside conversions
//! (`printf` of a text): *text-conversion*. Searches for a byte or a word (`memchr`, `strstr`) are
//! often the program's work: other files in one buffer, other words in one text. They are reported where
//! registers show that what they go over grows from search to search, or shrinks. Short lists, lists that are searched once, and
//! searches that go on where the last one ended are no rescans.
//!
//! # What to do
//! Keep the end: a pointer, a length, `stpcpy`. End a line with a zero byte before `sscanf`, or convert
//! by `strtol` and `strtod`, which stop where the number ends. Go on where the last search ended: the second argument of
//! `find`, a slice of the rest, a count that is kept. Keep a set or a map beside a list, or sort it once.
//!
//! # Seen in
//! A milling programme of 1.3 MB, read line by line by `sscanf`.
//! In `tests/programs`: `appended_by_strcat.c`, `scanned_rest.c`, `marker_from_start.cpp`, `list_lookups.cpp`.

mod environment;
mod from_start;
mod in_list;

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::shares::{Share, samples_of};
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};

pub(super) const CLASS: Class = Class {
    id: "rescans",
    source: include_str!("rescans.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time a search is no rescan: under `sscanf` and `strcat` and for a character by its
/// number, and called by the program.
const BY_LIBRARY: f64 = 0.08;
const BY_PROGRAM: f64 = 0.25;
/// The part of the time in them that goes away: least, under `sscanf` and else, and typical. One search of each text
/// remains.
const LEAST_OF_REST: f64 = 0.8;
const LEAST: f64 = 0.5;
const TYPICAL: f64 = 0.97;
/// Which part of the remaining time, per share of the counting, may go with it: in a highlighter 39 to 43 % were
/// spent counting, and 56 % were saved.
const AROUND: f64 = 0.5;

/// What takes a character by its number: it counts from the start of the text, where characters have no index.
const BY_NUMBER: &[&str] = &[
    "core::str::iter::Chars as core::iter::traits::iterator::Iterator>::nth",
    "core::str::iter::Chars as core::iter::traits::iterator::Iterator>::advance_by",
    "char_index_to_byte_index",
    "byte_index_to_char_index",
];

/// What counts the characters of a text: each of many texts once, as far as names tell.
const COUNTS: &[&str] = &[
    "core::str::count::",
    "core::str::iter::Chars as core::iter::traits::iterator::Iterator>::count",
    "unicode/utf8.RuneCount",
];

/// All functions down from the program's own are searches: in a conversion they are a part of it.
fn claim(sample: &UserSample<'_>) -> bool {
    let roles = &sample.symbol_roles;
    sample.own.is_some()
        && (roles.first() == Some(&SymbolRole::Scan)
            || roles.contains(&SymbolRole::Scan) && (is_by_number(sample) || counts(sample)))
        && roles.iter().all(|role| [SymbolRole::Scan, SymbolRole::Library].contains(role))
}

/// Whether the characters of a text are counted, in helpers of that too.
fn counts(sample: &UserSample<'_>) -> bool {
    sample.library().any(|(name, _)| COUNTS.iter().any(|part| name.contains(part)))
}

/// Whether a character is taken by its number, in helpers of that too.
fn is_by_number(sample: &UserSample<'_>) -> bool {
    sample.library().any(|(name, _)| BY_NUMBER.iter().any(|part| name.contains(part)))
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let mut drafts = found.drafts(CLASS.id, draft);
    drafts.extend(found.drafts_of_all(from_start::draft));
    drafts.extend(found.drafts_of_all(environment::draft));
    // What a search from the start is said of is not said again as a list.
    let place = |draft: &Draft| draft.sites.first().map(|site| (site.file.clone(), site.line));
    let known: Vec<_> = drafts.iter().map(place).collect();
    let lists = found.drafts_of_all(in_list::draft);
    drafts.extend(lists.into_iter().filter(|list| !known.contains(&place(list))));
    drafts
}

/// How the program comes to search.
#[derive(Copy, Clone, PartialEq, Eq)]
enum By {
    Append,
    Scanf,
    Number,
    /// It counts characters. Only registers tell whether they are the same ones again.
    Count,
    Itself,
}

impl By {
    fn of(found: &Inspection<'_, '_>, site: CallSite) -> Self {
        let symbols = found.facts.symbols();
        let sample = site.stack().map(|stack| found.facts.sample(stack));
        let is = |of: fn(&UserSample<'_>) -> bool| sample.as_ref().is_some_and(of);
        if is(is_by_number) {
            return Self::Number;
        } else if is(counts) {
            return Self::Count;
        }
        for (_, frame) in site.frames(symbols).take(4) {
            let name = symbols.name(frame.function).trim_start_matches('_');
            if name.contains("scanf") {
                return Self::Scanf;
            } else if name.starts_with("strcat") || name.starts_with("strncat") {
                return Self::Append;
            }
        }
        Self::Itself
    }
}

/// Samples in conversions below `sscanf`.
fn converting(found: &Inspection<'_, '_>, process: ProcessId) -> u64 {
    let scanning = samples_of(found, process).filter(|(_, site, _)| {
        let Some(sample) = site.stack().map(|stack| found.facts.sample(stack)) else {
            return false;
        };
        sample.under(SymbolRole::Scan) && sample.under(SymbolRole::Convert)
    });
    scanning.map(|(_, _, amount)| amount).sum()
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    let amount_by = |by: By| -> u64 {
        let places = share.places.iter().filter(|(site, _)| By::of(found, **site) == by);
        places.map(|(_, weight)| weight.amount).sum()
    };
    let by = [By::Append, By::Scanf, By::Number, By::Count, By::Itself]
        .into_iter()
        .max_by_key(|by| amount_by(*by))?;
    let large = if by == By::Itself { BY_PROGRAM } else { BY_LIBRARY };
    let converts_more = by == By::Scanf && converting(found, process) > amount_by(by);
    if share.ns.share_of(net) < large || converts_more || by == By::Count {
        return None;
    }
    let (low, high) = share.interval(share.ns);
    let high = if by == By::Number { share.with_the_rest(high, AROUND) } else { high };
    let least = if [By::Scanf, By::Number].contains(&by) { LEAST_OF_REST } else { LEAST };
    let language = facts.processes.get(process).language.as_str();
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: if by == By::Number {
            "characters counted from the start again and again".into()
        } else {
            "text searched for its end again and again".into()
        },
        text: format!(
            "{} spent {} of its {} {} ({}){}.",
            facts.name(process),
            time(share.ns),
            time(net),
            if by == By::Number { "counting characters" } else { "looking for the end of text" },
            percent(share.ns, net),
            match by {
                By::Append => ", each time that it appends to it",
                By::Scanf => ": sscanf does this before it converts, over all the rest of the text",
                By::Number => ": a character is taken by its number, so all before it are counted",
                By::Count | By::Itself => "",
            }
        ),
        amount: share.ns,
        saving: share.ns.part(TYPICAL),
        range: (low.part(least), high),
        how: How::Estimate,
        sites: share.sites(facts.symbols()),
        evidence: vec![format!("{} in such searches", things(share.samples, "sample"))],
        remedy: match by {
            By::Append => "Keep a pointer to the end: stpcpy returns it, snprintf returns the length.",
            By::Scanf => {
                "Put a zero byte at the end of each line before sscanf, or convert with strtol and \
                 strtod, which stop behind the number."
            }
            By::Number | By::Count | By::Itself if ["Rust", "Go", "Crystal"].contains(&language) => {
                "Keep the position in bytes instead of counting characters from the start: char_indices, a \
                 slice of the rest, a reader of the text, or an array of characters made once."
            }
            By::Number | By::Count | By::Itself => {
                "Take the length once, outside the loop, and keep it beside the text; append at a kept \
                 end (stpcpy)."
            }
        }
        .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{computing, found, rows};
    use expect_test::expect;

    const REST: &str = "__rawmemchr_avx2 @libc.so.6 <- _IO_str_init_static_internal @libc.so.6 <- __isoc99_sscanf @libc.so.6 <- block (m.c:27) <- main (m.c:49)";
    const CONVERT: &str = "__vfscanf_internal @libc.so.6 <- __isoc99_sscanf @libc.so.6 <- block (m.c:27) <- main (m.c:49)";

    #[test]
    fn sscanf_over_a_long_rest_is_found() {
        let text =
            computing("C", &[(70, REST), (5, CONVERT), (25, "carve (m.c:9) <- main (m.c:49)")]);
        expect![[r#"
            rescans 68 % (43..81) @ block:27: app spent 69.7 µs of its 100 µs looking for the end of text (70 %): sscanf does this before it converts, over all the rest of the text.
        "#]].assert_eq(&found(&text));
        expect![[r#"
            rescans 69650
            net-work 24875
            text-conversion 4975
        "#]]
        .assert_eq(&rows(&text, 3));
    }

    #[test]
    fn sscanf_of_short_lines_is_conversion() {
        let text =
            computing("C", &[(20, REST), (30, CONVERT), (50, "carve (m.c:9) <- main (m.c:49)")]);
        assert!(!found(&text).contains("rescans"));
    }

    #[test]
    fn appending_by_strcat_is_found() {
        let text = computing(
            "C",
            &[
                (60, "__strcat_avx2 @libc.so.6 <- render (p.c:50) <- main (p.c:81)"),
                (40, "cell (p.c:9) <- main (p.c:81)"),
            ],
        );
        assert!(found(&text).contains("rescans 58 %"), "{}", found(&text));
    }

    #[test]
    fn characters_by_their_number_are_found_and_a_few_of_them_are_refused() {
        let nth = "core::str::validations::utf8_char_width (/rustc/str/validations.rs:9) in \"<core::str::iter::Chars as core::iter::traits::iterator::Iterator>::advance_by\" (/rustc/str/iter.rs:9) in core::iter::traits::iterator::Iterator::nth (/rustc/iter.rs:9) in peek (c.rs:15) <- main (c.rs:40)";
        let by_number = |share: u64| {
            found(&computing("Rust", &[(share, nth), (100 - share, "main (c.rs:41)")]))
        };
        expect![[r#"
            rescans 14 % (7..40) @ peek:15: app spent 14.9 µs of its 100 µs counting characters (15 %): a character is taken by its number, so all before it are counted.
        "#]].assert_eq(&by_number(15));
        assert_eq!(by_number(5), "");
        // Crystal's inlined functions have no class before their names.
        let at = "char_bytesize_at (/usr/lib/crystal/lib/string.cr:5051) in char_index_to_byte_index (/usr/lib/crystal/lib/string.cr:5122) in String#[] (/usr/lib/crystal/lib/string.cr:988) <- brace (s.cr:16) <- scan (s.cr:35)";
        let crystal = computing("Crystal", &[(60, at), (40, "scan (s.cr:36)")]);
        assert!(found(&crystal).starts_with("rescans") && found(&crystal).contains("@ brace:16"));
    }

    #[test]
    fn characters_that_are_counted_once_are_refused() {
        let go = "runtime.decoderune (/usr/local/go/src/runtime/utf8.go:60) <- unicode/utf8.RuneCount (/usr/local/go/src/unicode/utf8/utf8.go:448) <- main.widths (w.go:15) <- main.main (w.go:40)";
        let text = computing("Go", &[(60, go), (40, "main.main (w.go:41)")]);
        assert_eq!((found(&text).as_str(), rows(&text, 1).as_str()), ("", "rescans 59700\n"));
        let rust = "core::str::count::char_count_general_case (/rustc/str/count.rs:9) in core::str::count::count_chars (/rustc/str/count.rs:40) <- widths (w.rs:3) <- main (w.rs:40)";
        assert_eq!(found(&computing("Rust", &[(60, rust), (40, "main (w.rs:41)")])), "");
    }

    #[test]
    fn zigs_length_in_the_condition_of_a_loop_is_found_and_of_texts_measured_once_refused() {
        let len = "mem.indexOfSentinel (/opt/zig/lib/std/mem.zig:1149) in mem.len (/opt/zig/lib/std/mem.zig:1075) in words.count (w.zig:6) <- words.main (w.zig:24)";
        let measured = |share: u64| {
            found(&computing("Zig", &[(share, len), (100 - share, "words.main (w.zig:25)")]))
        };
        assert!(measured(80).starts_with("rescans 77 %"), "{}", measured(80));
        assert!(measured(80).contains("@ words.count:6"), "{}", measured(80));
        assert_eq!(measured(15), "");
    }

    #[test]
    fn texts_measured_once_and_searches_in_printf_are_refused() {
        let measured = "__strlen_avx2 @libc.so.6 <- read_all (p.c:50) <- main (p.c:81)";
        let text = computing("C", &[(15, measured), (85, "cell (p.c:9) <- main (p.c:81)")]);
        assert_eq!(found(&text), "");
        let printed = "__strlen_avx2 @libc.so.6 <- __vfprintf_internal @libc.so.6 <- printf @libc.so.6 <- show (p.c:50) <- main (p.c:81)";
        let text = computing("C", &[(60, printed), (40, "cell (p.c:9) <- main (p.c:81)")]);
        assert!(!found(&text).contains("rescans"));
    }
}
