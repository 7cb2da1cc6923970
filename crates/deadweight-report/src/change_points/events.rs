//! Change points of a workload's rows as events: what changed together, and the row that explains it.
//!
//! Not for finding change points, nor for how an event is worded.

use super::ChangePoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Time has moved from one row to another if what one gains differs from what the other loses by this share at most.
const ALIKE: f64 = 0.2;

/// Rows of one workload that changed at the same commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The first value after the change, by the most precise of its points.
    pub index: usize,
    /// The first value that may also be it.
    pub earliest: usize,
    /// The last value that may also be it.
    pub latest: usize,
    /// What the event means for the workload.
    pub kind: Kind,
    /// The change of the total in ns, if it has a change point here.
    pub total_ns: Option<f64>,
    /// That change point.
    pub total: Option<ChangePoint>,
    /// The rows that changed, largest change first.
    pub rows: Vec<RowChange>,
    /// The row that explains the event: of those that changed in the total's direction, the largest. If the total did
    /// not change, the row that changed most; of time that moved, the row that grew.
    pub reason: Option<Reason>,
}

/// What an event means for the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The total grew.
    Slower,
    /// The total shrank.
    Faster,
    /// Some rows shrank, others grew by about as much, and the total shows no change.
    Moved {
        /// The row that lost most.
        from: String,
        /// The row that gained most.
        to: String,
    },
    /// Rows changed, and the total shows no change: theirs is too small for it.
    RowsOnly,
}

/// The change of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowChange {
    /// Its name.
    pub row: String,
    /// Its own change point.
    pub point: ChangePoint,
    /// Mean after less mean before, in ns: above 0 the row grew.
    pub difference_ns: f64,
}

/// The row that explains an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// Its name.
    pub row: String,
    /// Its change as a share of the total's; above 1 if other rows changed in the opposite direction. None if the total
    /// has no change point here.
    pub share: Option<f64>,
}

/// The events of a workload, in order. Given are the change points of its total and of each row, by its name, all of the
/// same commits and in ns.
///
/// The most precise point begins an event, and the others join it if their spans overlap with its span, or are
/// neighbours. So a vague point cannot make one event of two.
#[must_use]
pub fn events(total: &[ChangePoint], rows: &BTreeMap<String, Vec<ChangePoint>>) -> Vec<Event> {
    let of_rows = rows.iter().flat_map(|(row, points)| points.iter().map(|p| (Some(&**row), p)));
    let mut points: Vec<Member> = total.iter().map(|p| (None, p)).chain(of_rows).collect();
    let precision = |(_, point): &Member| point.latest.saturating_sub(point.earliest);
    points.sort_by(|a, b| {
        precision(a)
            .cmp(&precision(b))
            .then(a.1.p.total_cmp(&b.1.p))
            .then(a.1.index.cmp(&b.1.index))
    });
    let mut groups: Vec<Vec<Member>> = Vec::new();
    for member in points {
        // A row has one change in an event.
        let fitting = groups.iter_mut().filter(|group| {
            are_near(group[0].1, member.1) && group.iter().all(|other| other.0 != member.0)
        });
        match fitting.min_by_key(|group| group[0].1.index.abs_diff(member.1.index)) {
            Some(group) => group.push(member),
            None => groups.push(vec![member]),
        }
    }
    let mut events: Vec<Event> = groups.iter().map(|group| event(group)).collect();
    events.sort_by_key(|event| event.index);
    events
}

/// The name of a row, none for the total, and its change point.
type Member<'a> = (Option<&'a str>, &'a ChangePoint);

/// Whether spans overlap, or have no value between.
fn are_near(a: &ChangePoint, b: &ChangePoint) -> bool {
    a.earliest <= b.latest + 1 && b.earliest <= a.latest + 1
}

/// The event of points, of which there is at least one.
fn event(members: &[Member]) -> Event {
    let most_precise = members[0].1;
    let total = members.iter().find(|(row, _)| row.is_none()).map(|(_, point)| **point);
    let total_ns = total.map(|point| point.difference());
    let change = |(row, point): &Member| {
        row.map(|row| RowChange {
            row: row.to_owned(),
            point: **point,
            difference_ns: point.difference(),
        })
    };
    let mut rows: Vec<RowChange> = members.iter().filter_map(change).collect();
    rows.sort_by(|a, b| b.difference_ns.abs().total_cmp(&a.difference_ns.abs()));
    let kind = match total_ns {
        Some(ns) if ns > 0.0 => Kind::Slower,
        Some(_) => Kind::Faster,
        None => moved(&rows).unwrap_or(Kind::RowsOnly),
    };
    Event {
        index: most_precise.index,
        earliest: most_precise.earliest,
        latest: most_precise.latest,
        reason: reason(&kind, total_ns, &rows),
        kind,
        total_ns,
        total,
        rows,
    }
}

/// Whether the rows that grew have gained what others lost. The largest row is first.
fn moved(rows: &[RowChange]) -> Option<Kind> {
    let sum = |sign: f64| rows.iter().map(|row| (row.difference_ns * sign).max(0.0)).sum::<f64>();
    let (gained, lost) = (sum(1.0), sum(-1.0));
    let to = rows.iter().find(|row| row.difference_ns > 0.0)?;
    let from = rows.iter().find(|row| row.difference_ns < 0.0)?;
    let are_alike = (gained - lost).abs() <= ALIKE * gained.max(lost);
    are_alike.then(|| Kind::Moved { from: from.row.clone(), to: to.row.clone() })
}

fn reason(kind: &Kind, total_ns: Option<f64>, rows: &[RowChange]) -> Option<Reason> {
    let row = match (kind, total_ns) {
        (_, Some(total)) => rows.iter().find(|row| row.difference_ns * total > 0.0),
        (Kind::Moved { to, .. }, None) => rows.iter().find(|row| row.row == *to),
        (_, None) => rows.first(),
    }?;
    Some(Reason { row: row.row.clone(), share: total_ns.map(|total| row.difference_ns / total) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change_points::Level;

    /// A change by `ns` at a span of values around an index.
    fn point([earliest, index, latest]: [usize; 3], ns: f64) -> ChangePoint {
        let level = |mean| Level { mean, deviation: 1.0 };
        ChangePoint {
            index,
            earliest,
            latest,
            p: 1e-9,
            before: level(1000.0),
            after: level(1000.0 + ns),
        }
    }

    fn of_rows(rows: &[(&str, ChangePoint)]) -> BTreeMap<String, Vec<ChangePoint>> {
        let mut map: BTreeMap<String, Vec<ChangePoint>> = BTreeMap::new();
        for (row, point) in rows {
            map.entry((*row).to_owned()).or_default().push(*point);
        }
        map
    }

    #[test]
    fn the_largest_row_in_the_direction_of_the_total_explains_it() {
        let rows = of_rows(&[
            ("copies", point([19, 20, 21], -100.0)),
            ("locks", point([20, 20, 20], 60.0)),
            ("allocation", point([21, 21, 21], 90.0)),
        ]);
        let found = events(&[point([19, 20, 24], 50.0)], &rows);
        assert_eq!(found.len(), 1);
        let event = &found[0];
        assert_eq!((event.earliest, event.index, event.latest), (20, 20, 20));
        assert_eq!((&event.kind, event.total_ns), (&Kind::Slower, Some(50.0)));
        let order: Vec<&str> = event.rows.iter().map(|row| row.row.as_str()).collect();
        assert_eq!(order, ["copies", "allocation", "locks"]);
        let reason = Reason { row: "allocation".into(), share: Some(1.8) };
        assert_eq!(event.reason, Some(reason));
    }

    #[test]
    fn a_vague_point_joins_the_nearer_of_two_events() {
        let rows = of_rows(&[
            ("copies", point([10, 10, 10], 50.0)),
            ("locks", point([14, 14, 14], 50.0)),
            ("allocation", point([9, 13, 16], 20.0)),
        ]);
        let found = events(&[], &rows);
        let names =
            |event: &Event| event.rows.iter().map(|row| row.row.clone()).collect::<Vec<_>>();
        assert_eq!(names(&found[0]), ["copies"]);
        assert_eq!(names(&found[1]), ["locks", "allocation"]);
        assert_eq!((&found[1].kind, found[1].total_ns), (&Kind::RowsOnly, None));
    }

    #[test]
    fn time_moves_if_a_row_gains_what_another_loses_and_the_total_stays() {
        let at = [30, 30, 30];
        let kind = |gained: f64, total: &[ChangePoint]| {
            let rows = of_rows(&[("copies", point(at, -100.0)), ("locks", point(at, gained))]);
            let found = events(total, &rows);
            assert_eq!(found.len(), 1);
            (found[0].kind.clone(), found[0].reason.clone().map(|reason| reason.row))
        };
        let moved = Kind::Moved { from: "copies".into(), to: "locks".into() };
        assert_eq!(kind(85.0, &[]), (moved, Some("locks".into())));
        assert_eq!(kind(75.0, &[]), (Kind::RowsOnly, Some("copies".into())));
        assert_eq!(kind(85.0, &[point(at, -15.0)]), (Kind::Faster, Some("copies".into())));
        assert_eq!(kind(85.0, &[point(at, 40.0)]), (Kind::Slower, Some("locks".into())));
    }

    #[test]
    fn a_row_that_changes_twice_makes_two_events() {
        let rows =
            of_rows(&[("locks", point([5, 5, 5], 50.0)), ("locks", point([6, 6, 6], -50.0))]);
        let indices: Vec<usize> = events(&[], &rows).iter().map(|event| event.index).collect();
        assert_eq!(indices, [5, 6]);
        assert_eq!(events(&[point([7, 7, 7], 5.0)], &BTreeMap::new())[0].reason, None);
    }
}
