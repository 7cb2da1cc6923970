//! The change points of a series are those that Apache Otava 0.8 finds: in its own test series, and in random ones.
//!
//! `tests/change_points/generate.py` made the expected values with Otava. Not for whether these points are right: see
//! `planted_changes`.

use deadweight_report::change_points::{ChangePoint, Options, find};
use serde::Deserialize;

/// A series, Otava's options for it, and what Otava found.
#[derive(Deserialize)]
struct Case {
    kind: String,
    series: Vec<f64>,
    /// Window, p value, least magnitude.
    options: (usize, f64, f64),
    points: Vec<Expected>,
}

/// Index, p value, means and deviations before and after, relative change.
#[derive(Deserialize)]
struct Expected(usize, f64, f64, f64, f64, f64, f64);

/// Expected values have ten digits.
fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected.abs() * 1e-6
}

fn agrees(found: &ChangePoint, expected: &Expected) -> bool {
    let Expected(index, p, before, after, deviation_before, deviation_after, change) = expected;
    found.index == *index
        && is_near(found.p, *p)
        && is_near(found.before.mean, *before)
        && is_near(found.after.mean, *after)
        && is_near(found.before.deviation, *deviation_before)
        && is_near(found.after.deviation, *deviation_after)
        && is_near(found.relative_change(), *change)
}

#[test]
fn points_are_those_of_otava() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("change_points/expected.json")).unwrap();
    assert!(cases.len() > 250);
    for (number, Case { kind, series, options, points }) in cases.iter().enumerate() {
        let (window, max_p, min_magnitude) = *options;
        let found = find(series, &Options { window, max_p, min_magnitude });
        assert_eq!(
            found.iter().map(|point| point.index).collect::<Vec<_>>(),
            points.iter().map(|point| point.0).collect::<Vec<_>>(),
            "case {number}, {kind}"
        );
        for (found, expected) in found.iter().zip(points) {
            assert!(
                agrees(found, expected),
                "case {number}, {kind}: {found:?}, p {:e}",
                expected.1
            );
        }
    }
}
