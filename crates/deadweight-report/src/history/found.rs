//! What changed in a history: the change points of the total and of each row, joined to events.
//!
//! Not for statistics (`change_points`), nor for which values are compared.

use super::{Change, Point, Series};
use crate::change_points::events::{self, Event};
use crate::change_points::{ChangePoint, Options, find_refined};
use std::collections::BTreeMap;

/// A row's change counts from this part of the total on: a row of some microseconds may double without meaning anything.
const LEAST_OF_TOTAL: f64 = 0.005;

/// The events of all series, in order.
pub(super) fn events(points: &[Point], rows: &[String], series: &[Series]) -> Vec<Change> {
    let mut changes: Vec<Change> =
        series.iter().flat_map(|series| of_series(points, rows, &series.indices)).collect();
    changes.sort_by_key(|change| change.event.index);
    changes
}

fn of_series(points: &[Point], rows: &[String], indices: &[usize]) -> Vec<Change> {
    let values: Vec<f64> = indices.iter().map(|index| points[*index].ns).collect();
    let total = find_refined(&values, &Options::refined());
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    // Not every run has a ledger.
    let with_rows: Vec<usize> =
        (0..indices.len()).filter(|at| !points[indices[*at]].rows_ns.is_empty()).collect();
    let mut of_rows: BTreeMap<String, Vec<ChangePoint>> = BTreeMap::new();
    for (place, account) in rows.iter().enumerate() {
        let ns = |at: &usize| points[indices[*at]].rows_ns[place] as f64;
        let values: Vec<f64> = with_rows.iter().map(ns).collect();
        // A change cannot be larger than the largest value.
        if values.iter().all(|ns| *ns < LEAST_OF_TOTAL * mean) {
            continue;
        }
        let found = find_refined(&values, &Options::refined()).into_iter();
        let found = found.filter(|p| p.difference().abs() >= LEAST_OF_TOTAL * mean);
        of_rows.insert(account.clone(), found.map(|p| moved(p, &with_rows)).collect());
    }
    let found = events::events(&total, &of_rows);
    let splits: Vec<usize> = found.iter().map(|event| event.index).collect();
    let change = |(number, event): (usize, Event)| {
        let from = number.checked_sub(1).map_or(0, |previous| splits[previous]);
        let to = splits.get(number + 1).copied().unwrap_or(indices.len());
        let sides = [&indices[from..event.index], &indices[event.index..to]];
        let apparent = event.reason.is_none().then(|| apparent(points, rows, sides, &event));
        let before = indices[event.earliest.saturating_sub(1)];
        let last_before = points[before].commit.clone();
        let event = in_history(event, indices);
        let at = &points[event.index];
        Change {
            commit: at.commit.clone(),
            moment: at.moment,
            event,
            last_before,
            apparent: apparent.flatten(),
        }
    };
    found.into_iter().enumerate().map(change).collect()
}

/// A point whose places are numbers of `indices`, with the indices instead.
fn moved(point: ChangePoint, indices: &[usize]) -> ChangePoint {
    let of = |at: usize| indices.get(at).or(indices.last()).copied().unwrap_or(at);
    ChangePoint {
        index: of(point.index),
        earliest: of(point.earliest),
        latest: of(point.latest),
        ..point
    }
}

fn in_history(mut event: Event, indices: &[usize]) -> Event {
    let of = |at: usize| indices.get(at).or(indices.last()).copied().unwrap_or(at);
    event.index = of(event.index);
    event.earliest = of(event.earliest);
    event.latest = of(event.latest);
    event.total = event.total.map(|point| moved(point, indices));
    event.rows.iter_mut().for_each(|row| row.point = moved(row.point, indices));
    event
}

/// The row whose mean changed most in the direction of the total, from the points of one side to those of the other.
fn apparent(
    points: &[Point],
    rows: &[String],
    sides: [&[usize]; 2],
    event: &Event,
) -> Option<(String, f64)> {
    let mean = |side: &[usize], place: usize| {
        let values: Vec<u64> =
            side.iter().filter_map(|at| points[*at].rows_ns.get(place).copied()).collect();
        (!values.is_empty())
            .then(|| values.iter().map(|ns| *ns as f64).sum::<f64>() / values.len() as f64)
    };
    let total = event.total_ns?;
    let difference = |place: usize| Some((place, mean(sides[1], place)? - mean(sides[0], place)?));
    let (place, ns) = (0..rows.len())
        .filter_map(difference)
        .filter(|(_, ns)| ns * total > 0.0)
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    Some((rows[place].clone(), ns))
}
