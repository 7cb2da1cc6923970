//! Functions of the C library that are called for each character: they cannot be inlined, because each takes the stream's lock.

use super::CLASS;
use crate::facts::call_site::is_interpreted;
use crate::facts::processes::ProcessId;
use crate::inspect::shares::{Chosen, sampled_sites};
use crate::inspect::{Draft, Inspection};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};

/// Below this share of the wall time it does not matter.
const LARGE: f64 = 0.15;
/// The part of the time that goes away, least and typical: a program that counts words spent 88 % there, and saved 71 % with
/// `getc_unlocked`.
const LEAST: f64 = 0.4;
const TYPICAL: f64 = 0.75;
/// Those functions, and the names that they have in the library.
const EACH: &[&str] = &[
    "fgetc",
    "getc",
    "_IO_getc",
    "getchar",
    "fputc",
    "putc",
    "_IO_putc",
    "putchar",
    "fgetc@plt",
    "getc@plt",
    "fputc@plt",
    "putc@plt",
];

pub(super) fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    if is_interpreted(&facts.processes.get(process).language) {
        return None;
    }
    let chosen = Chosen::of(found, process, |stack| {
        let sample = found.facts.sample(stack);
        // The one that the program calls: others call these for a whole line.
        let called = sample.library().last();
        sample.own.is_some() && called.is_some_and(|(name, _)| EACH.contains(&name))
    });
    let (net, ns) = (found.wall.net(), chosen.ns);
    if ns.share_of(net) < LARGE {
        return None;
    }
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "a call of the C library for each character".into(),
        text: format!(
            "{} spent {} of its {} ({}) in functions like getc and putc, which take the stream's lock for each character.",
            facts.name(process),
            time(ns),
            time(net),
            percent(ns, net),
        ),
        amount: ns,
        saving: ns.part(TYPICAL),
        range: (ns.part(LEAST), ns),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &chosen.places),
        evidence: vec![format!("{} in these functions", things(chosen.samples, "sample"))],
        remedy: "getc_unlocked and putc_unlocked are expanded in place, with flockfile around the loop where several threads use the \
                 stream; or read and write blocks (fread, fwrite, getline) and go through them."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{computing, found};
    use expect_test::expect;

    #[test]
    fn a_call_for_each_character_is_found() {
        let each = "getc @libc.so.6 <- main (w.c:4)";
        let text = computing("C", &[(80, each), (20, "main (w.c:5)")]);
        expect![[r#"
            missed-inlining 60 % (29..83) @ main:4: app spent 79.6 µs of its 100 µs (80 %) in functions like getc and putc, which take the stream's lock for each character.
        "#]]
        .assert_eq(&found(&text));
    }

    #[test]
    fn a_few_characters_and_whole_lines_are_refused() {
        let each = "getc @libc.so.6 <- main (w.c:4)";
        assert_eq!(found(&computing("C", &[(10, each), (90, "main (w.c:5)")])), "");
        let line = "getc @libc.so.6 <- fgets @libc.so.6 <- main (w.c:4)";
        assert_eq!(found(&computing("C", &[(80, line), (20, "main (w.c:5)")])), "");
    }
}
