//! Differences of the columns from the first one: how large, how likely by chance, and a verdict for each row.
//!
//! Not for laying out rows and columns; see `grid`.

use super::{Cell, Change, Mean, Row, Verdict};
use crate::benchmarks::sample;
use crate::benchmarks::units::{Better, UnitProperties};
use crate::compare::{ALPHA, MATERIAL};
use crate::stats::rank_tests::{holm, independent};

/// Compares a column with the first one; the rows of the column are one family of tests.
pub(super) fn compare_column(
    rows: &mut [Row],
    column: usize,
    facts: UnitProperties,
    (better, is_time): (Option<Better>, bool),
) {
    let pairs: Vec<(usize, Cell, Cell)> = rows
        .iter()
        .enumerate()
        .filter_map(|(at, row)| {
            let cell = |column: usize| row.cells.get(column).cloned().flatten();
            Some((at, cell(0)?, cell(column)?))
        })
        .collect();
    let strict: Vec<f64> = pairs
        .iter()
        .map(|(_, a, b)| if facts.exact { 0.0 } else { independent(&a.measured, &b.measured) })
        .collect();
    let family = pairs.len();
    for ((at, a, b), p_of_all) in pairs.into_iter().zip(holm(&strict)) {
        let counts = (a.measured.len(), b.measured.len());
        let difference = if facts.exact {
            sample::Difference::default()
        } else {
            sample::difference(&sorted(&a.measured), &sorted(&b.measured))
        };
        let least = sample::least_p(counts.0, counts.1) * family as f64;
        // A time of 0 was not measured.
        let nothing = is_time && a.measured.iter().chain(&b.measured).any(|v| *v <= 0.0);
        let verdict = if nothing || !facts.exact && least >= ALPHA {
            Verdict::CannotTell
        } else {
            judge(a.value, b.value, p_of_all, better)
        };
        let printed = if difference.p > sample::ALPHA {
            "~".to_owned()
        } else {
            percentage(a.value, b.value)
        };
        let notes = difference.note.into_iter().collect();
        let change = Change { printed, p: difference.p, p_of_all, counts, notes, verdict };
        if let Some(Some(cell)) = rows[at].cells.get_mut(column) {
            cell.change = Some(change);
        }
    }
}

fn judge(a: f64, b: f64, p: f64, better: Option<Better>) -> Verdict {
    let immaterial = (b - a).abs() < MATERIAL * a.abs() || a.total_cmp(&b).is_eq();
    if p >= ALPHA || immaterial {
        return Verdict::NoDifference;
    }
    match (better, b < a) {
        (None, true) => Verdict::Lower,
        (None, false) => Verdict::Higher,
        (Some(better), lower) if (better == Better::Lower) == lower => Verdict::Better,
        (Some(_), _) => Verdict::Worse,
    }
}

fn percentage(old: f64, new: f64) -> String {
    match () {
        () if old.total_cmp(&new).is_eq() => "0.00%".into(),
        () if old == 0.0 => "?".into(),
        () => format!("{:+.2}%", (new / old - 1.0) * 100.0),
    }
}

/// The mean of a column's values, and the mean of its rows' factors: the latter is right even if some rows are missing
/// in a column.
pub(super) fn mean(rows: &[Row], column: usize) -> Mean {
    let of = |row: &Row, column: usize| row.cells.get(column).cloned().flatten();
    let cells: Vec<(Option<Cell>, Cell)> =
        rows.iter().filter_map(|row| Some((of(row, 0), of(row, column)?))).collect();
    let values: Vec<f64> = cells.iter().map(|(_, cell)| cell.value).collect();
    let value = sample::geometric_mean(&values);
    let none = value.is_none().then(|| "summaries must be >0 to compute geomean".to_owned());
    if column == 0 {
        return Mean { value, ratio: None, notes: none.into_iter().collect() };
    }
    let in_first = rows.iter().filter(|row| of(row, 0).is_some()).count();
    let pairs: Vec<(f64, f64)> =
        cells.iter().filter_map(|(a, b)| Some((a.as_ref()?.value, b.value))).collect();
    let differs = (pairs.len() != in_first)
        .then(|| "benchmark set differs from baseline; geomeans may not be comparable".to_owned());
    let equal = |a: f64, b: f64| a.total_cmp(&b).is_eq();
    let impossible = pairs.iter().any(|(a, b)| *a == 0.0 && !equal(*a, *b));
    let factors: Vec<f64> =
        pairs.iter().map(|(a, b)| if equal(*a, *b) { 1.0 } else { b / a }).collect();
    let ratio = sample::geometric_mean(&factors).filter(|_| !impossible);
    let no_ratio =
        (ratio.is_none() && !impossible).then(|| "ratios must be >0 to compute geomean".to_owned());
    Mean { value, ratio, notes: differs.into_iter().chain(none).chain(no_ratio).collect() }
}

pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}
