//! Hits and misses of each judgement, on the fewest lines of a report that show it.

use super::super::file::Tolerance;
use super::*;

/// A report of 100 ns with these findings and this note.
fn report(findings: &str, note: &str) -> Value {
    let checks = ["tiny-reads", "gc", "wait-disk"].map(|class| format!(r#"{{"class":"{class}"}}"#));
    serde_json::from_str::<Value>(&format!(
        r#"{{"wall_ns":100,"net_ns":80,"ledger":[
            {{"account":"tiny-reads","ns":60,"low_ns":50,"high_ns":60,"note":"{note}"}},
            {{"account":"net-work","ns":40,"low_ns":40,"high_ns":40,"note":""}}],
            "checks":[{}],"findings":[{findings}]}}"#,
        checks.join(",")
    ))
    .unwrap()
}

fn finding(class: &str, saving: u32) -> String {
    format!(
        r#"{{"class":"{class}","amount_ns":60,"saving_ns":{saving},"saving_share":0.5,"low":0.4,"high":0.6,
            "text":"it reads","sites":[{{"function":"main","file":"src/main.c","line":7}}]}}"#
    )
}

fn kinds(report: &Value, truths: &Truths) -> Vec<Kind> {
    judge(report, truths, &[]).into_iter().map(|complaint| complaint.kind).collect()
}

fn first_is(wanted: &str) -> Truths {
    Truths { first: Some(wanted.to_owned()), ..Truths::default() }
}

#[test]
fn a_known_bottleneck_is_found_at_its_place_or_missed() {
    let report = report(&finding("tiny-reads", 50), "");
    assert_eq!(first(&report).as_deref(), Some("tiny-reads @ main.c:7"));
    for wanted in ["tiny-reads", "tiny-reads @ main", "tiny-reads @ main.c"] {
        assert_eq!(kinds(&report, &first_is(wanted)), [], "{wanted}");
    }
    for wanted in ["gc", "tiny-reads @ other.c"] {
        assert_eq!(kinds(&report, &first_is(wanted)), [Kind::Missed], "{wanted}");
    }
}

#[test]
fn a_finding_is_missed_in_a_silent_report() {
    let silent = report("", "");
    assert_eq!(kinds(&silent, &first_is("gc")), [Kind::Missed]);
    assert_eq!(kinds(&silent, &Truths { silent: true, ..Truths::default() }), []);
}

#[test]
fn what_must_not_be_found_is_an_accusation() {
    let report = report(&[finding("tiny-reads", 50), finding("gc", 50)].join(","), "");
    let never = |class: &str| Truths { never: vec![class.to_owned()], ..Truths::default() };
    assert_eq!(kinds(&report, &never("gc")), [Kind::WrongAccusation]);
    assert_eq!(kinds(&report, &never("wait-disk")), []);
    let silent = Truths { silent: true, ..Truths::default() };
    assert_eq!(kinds(&report, &silent), [Kind::WrongAccusation; 2]);
    let only = |classes: &[&str]| {
        let only = classes.iter().map(|c| (*c).to_owned()).collect();
        Truths { only: Some(only), ..first_is("tiny-reads") }
    };
    assert_eq!(kinds(&report, &only(&["gc"])), []);
    assert_eq!(kinds(&report, &only(&[])), [Kind::WrongAccusation]);
}

#[test]
fn a_class_that_does_not_exist_is_named() {
    let truths = Truths { never: vec!["gc".into(), "g".into()], ..first_is("tiny @ x") };
    assert_eq!(unknown_classes(&report("", ""), &truths), ["g", "tiny"]);
}

#[test]
fn a_saving_is_at_most_the_undisturbed_time() {
    let truths = Truths::default();
    assert_eq!(kinds(&report(&finding("gc", 80), ""), &truths), []);
    assert_eq!(kinds(&report(&finding("gc", 81), ""), &truths), [Kind::Impossible]);
}

#[test]
fn rows_sum_to_the_wall_time() {
    let text =
        |ns: u32| format!(r#"{{"wall_ns":100,"ledger":[{{"ns":{ns},"low_ns":0,"high_ns":200}}]}}"#);
    let of =
        |ns: u32| kinds(&serde_json::from_str::<Value>(&text(ns)).unwrap(), &Truths::default());
    assert_eq!(of(100), []);
    assert_eq!(of(98), [Kind::Impossible]);
}

#[test]
fn numbers_that_were_never_computed_are_impossible() {
    let of = |text: &str| kinds(&serde_json::from_str::<Value>(text).unwrap(), &Truths::default());
    assert_eq!(of(r#"{"runs":{"lost":18446744073709551615}}"#), [Kind::Impossible]);
    assert_eq!(of(r#"{"runs":{"lost":-1}}"#), [Kind::Impossible]);
    assert_eq!(of(r#"{"runs":{"lost":3},"exit":{"code":-1}}"#), []);
    assert_eq!(of(r#"{"text":"4 calls, 0 bytes in all"}"#), [Kind::Impossible]);
    assert_eq!(of(r#"{"text":"4 calls, 10 bytes in all, NaNs, 2026-01-05, -0.5"}"#), []);
    assert_eq!(of(r#"{"function":"NaN"}"#), []);
}

#[test]
fn calls_are_counted_in_the_notes_and_compared() {
    let report = report("", "read ×4 003, 1 byte each, pread ×5; read ×2");
    assert_eq!(
        (calls(&report, "read"), calls(&report, "pread"), calls(&report, "w")),
        (Some(4005), Some(5), None)
    );
    let truths = |call: &str| Truths {
        counts: vec![(call.to_owned(), Tolerance::Calls(5.0))],
        ..Truths::default()
    };
    assert_eq!(judge(&report, &truths("read"), &[4010]), []);
    let wrong = judge(&report, &truths("read"), &[4011]);
    assert_eq!(
        wrong[0].to_string(),
        "MISCOUNTED: read: strace counts 4011, the report counts 4005"
    );
    assert_eq!(judge(&report, &truths("w"), &[1])[0].kind, Kind::WrongCount);
}

#[test]
fn of_calls_beside_the_path_all_are_counted() {
    assert_eq!(times("write ×1 215 of 2 000, 97 bytes each, pwrite64 ×3", "write"), [2000]);
    assert_eq!(times("read ×300 000, write ×7", "read"), [300_000]);
}
