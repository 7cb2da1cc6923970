//! Screens from stored reports: what a change of the rendering changes for the reader.

use super::{Shown, render};
use crate::render::page::Page;
use deadweight_report::report::Report;
use expect_test::{ExpectFile, expect_file};

const PLAIN: Page = Page { width: 80, colour: false, unicode: true };
fn all() -> Shown {
    Shown { cpu: true, top: 10, verbose: true, here: "/src".into() }
}

fn report(json: &str) -> Report {
    serde_json::from_str(json).unwrap()
}

fn tiny_reads() -> Report {
    report(include_str!("../../../tests/reports/tiny-reads.json"))
}

fn pipeline() -> Report {
    report(include_str!("../../../tests/reports/pipeline.json"))
}

fn hostile() -> Report {
    report(include_str!("../../../tests/reports/hostile.json"))
}

fn screen(report: &Report, shown: Shown, page: Page, expected: &ExpectFile) {
    expected.assert_eq(&render(report, &shown, page));
}

#[test]
fn screens_at_several_widths() {
    let wide = Page { width: 120, ..PLAIN };
    let narrow = Page { width: 60, ..PLAIN };
    let file = |name: &str| expect_file![format!("../../../tests/screens/{name}.txt")];
    screen(&tiny_reads(), Shown::default(), PLAIN, &file("tiny-reads"));
    screen(&tiny_reads(), Shown::default(), wide, &file("tiny-reads-120"));
    screen(&tiny_reads(), Shown::default(), narrow, &file("tiny-reads-60"));
    screen(&pipeline(), all(), PLAIN, &file("pipeline"));
    screen(&pipeline(), all(), Page { unicode: false, ..PLAIN }, &file("pipeline-ascii"));
    screen(&hostile(), all(), PLAIN, &file("hostile"));
    screen(&tiny_reads(), Shown::default(), Page { colour: true, ..PLAIN }, &file("coloured"));
}

#[test]
fn no_line_is_wider_than_the_page() {
    for width in [60, 72, 80, 100, 133, 200] {
        for report in [tiny_reads(), pipeline(), hostile()] {
            let text = render(&report, &all(), Page { width, ..PLAIN });
            for line in text.lines() {
                assert!(crate::render::page::columns(line) <= width, "{width}: {line:?}");
            }
        }
    }
}

#[test]
fn nothing_foreign_reaches_the_terminal_raw() {
    let text = render(&hostile(), &all(), PLAIN);
    let foreign = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
    assert_eq!(text.chars().find(foreign), None);
    let ascii = render(&hostile(), &all(), Page { unicode: false, ..PLAIN });
    assert!(ascii.is_ascii());
}

#[test]
fn an_empty_report_is_a_page_too() {
    let text = render(&Report::default(), &all(), PLAIN);
    assert!(text.lines().count() <= 2, "{text}");
}

/// Recorded on a real machine; README shows the first.
#[test]
fn the_examples_of_the_documentation_are_what_is_printed() {
    let shown = Shown { here: "/src/count-bytes".into(), ..Shown::default() };
    let example = |name: &str, json: &str| {
        let file = expect_file![format!("../../../../../docs/example/{name}.txt")];
        screen(&report(json), shown.clone(), PLAIN, &file);
    };
    let count_bytes = include_str!("../../../../../docs/example/count-bytes.json");
    example("count-bytes", count_bytes);
    example("pipeline", include_str!("../../../../../docs/example/pipeline.json"));
    let report = report(count_bytes);
    assert_eq!(report.ledger.iter().map(|row| row.ns).sum::<u64>(), report.wall_ns);
}

#[test]
fn much_tracing_makes_the_undisturbed_time_an_upper_bound() {
    let saves = |tenths: u64, clean: u32| {
        let mut report = pipeline();
        report.runs.clean.count = clean;
        let row = report.ledger.iter_mut().find(|row| row.account == "observer").unwrap();
        row.ns = report.wall_ns * tenths / 10;
        let text = render(&report, &Shown::default(), PLAIN);
        text.lines().find(|line| line.contains("saves ")).unwrap().to_owned()
    };
    assert!(saves(3, 0).contains(" of at most "), "{}", saves(3, 0));
    assert!(saves(1, 0).contains("at most"), "{}", saves(1, 0));
    assert!(!saves(0, 0).contains("at most"), "{}", saves(0, 0));
    assert!(!saves(3, 10).contains("at most"), "{}", saves(3, 10));
}
