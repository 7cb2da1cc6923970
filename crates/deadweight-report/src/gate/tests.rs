//! The meaning of conditions, and the errors of invalid ones. Not for conditions on benchmarks.

use super::*;
use crate::report::{Hazard, Row, Site};

fn report(wall_ns: u64, rows: &[(&str, u64)]) -> Report {
    let row =
        |(account, ns): &(&str, u64)| Row { account: (*account).into(), ns: *ns, ..Row::default() };
    Report { wall_ns, ledger: rows.iter().map(row).collect(), ..Report::default() }
}

fn ask(condition: &str) -> Outcome {
    let mut slow = report(2_000_000, &[("tiny-reads", 1_700_000), ("net-work", 300_000)]);
    slow.findings.push(Finding {
        class: "tiny-reads".into(),
        saving_share: 0.9,
        sites: vec![Site {
            function: "ns::next".into(),
            file: "/src/app/main.zig".into(),
            line: 14,
            ..Site::default()
        }],
        ..Finding::default()
    });
    slow.hazards.push(Hazard { id: "timed-the-producer".into(), text: String::new() });
    let fast = report(100_000, &[("net-work", 100_000)]);
    let reports = Reports::from([("slow", &slow), ("fast", &fast)]);
    condition.parse::<Condition>().unwrap().evaluate(&reports).unwrap()
}

#[test]
fn conditions_hold_as_they_should() {
    for (condition, holds) in [
        ("slow.tiny-reads > 60%", true),
        ("slow.tiny-reads > 90 %", false),
        ("fast.tiny-reads < 2 %", true),
        ("fast.wall < 3 ms", true),
        ("fast < 0.05 ms", false),
        ("fast > slow * 1.05", false),
        ("slow > fast * 15", true),
        ("slow.net-work > slow.tiny-reads", false),
        ("slow.finding = \"tiny-reads\"", true),
        ("slow.finding = \"tiny-reads @ main.zig:14\"", true),
        ("slow.finding = \"tiny-reads @ app/main.zig\"", true),
        ("slow.finding = \"tiny-reads @ ns::next\"", true),
        ("slow.finding = \"tiny-reads @ ain.zig:14\"", false),
        ("slow.finding = \"tiny-reads @ main.zig:15\"", false),
        ("slow.finding = \"wait-input\"", false),
        ("slow.finding = none", false),
        ("fast.finding = none", true),
        ("slow.hazard = \"timed-the-producer\"", true),
        ("slow.hazard = \"noisy\"", false),
        ("fast.hazard = \"noisy\"", false),
        ("blame(slow, fast) = \"tiny-reads\" > 70 %", true),
        ("blame(slow, fast) = \"net-work\" > 70 %", false),
        ("blame(slow, fast) = \"net-work + tiny-reads\" > 70 %", true),
        ("saving(slow, fast) within 10 points", true),
        ("saving(slow, fast) within 4 points", false),
    ] {
        assert_eq!(ask(condition).holds, holds, "{condition}: {:?}", ask(condition));
    }
}

#[test]
fn the_values_are_reported() {
    assert_eq!(ask("slow.tiny-reads > 90 %").seen, "85.0 %, compared with 90.0 %");
    assert_eq!(ask("slow.finding = none").seen, "tiny-reads @ main.zig:14");
    let saving = ask("saving(slow, fast) within 4 points").seen;
    assert_eq!(saving, "predicted 90.0 %, real 95.0 %: -5.0 points");
}

#[test]
fn invalid_conditions_are_refused_with_a_sentence() {
    for condition in [
        "",
        "slow",
        "slow >",
        "slow > 3",
        "slow > 3 parsecs",
        "slow.finding = ",
        "slow.finding = \"\"",
        "slow.finding = \"x",
        "slow.wall = 3 ms",
        "blame(slow) = \"x\" > 1 %",
        "blame(slow, fast) = \"net-work + x\" > 1 %",
        "blame(slow, fast) = \"net-work +\" > 1 %",
        "saving(slow, fast) within 10",
        "praise(slow, fast)",
        "slow > 3 ms ms",
        "1.2.3 ms > slow",
        "slow & fast",
    ] {
        let error = condition.parse::<Condition>().unwrap_err();
        assert!(matches!(error, GateError::Syntax { .. }), "{condition}");
        assert!(error.to_string().starts_with("cannot read the condition"), "{error}");
    }
    let reports = Reports::new();
    let unknown: Condition = "slow > 3 ms".parse().unwrap();
    assert_eq!(unknown.evaluate(&reports), Err(GateError::Unknown("slow".into())));
    let units: Condition = "3 ms > 4 %".parse().unwrap();
    assert_eq!(units.evaluate(&reports), Err(GateError::Units));
}
