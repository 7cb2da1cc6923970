//! A change of a history in words, for terminal and page.
//!
//! Judges nothing.

use crate::render::archive::{COMMIT, short};
use crate::render::quantity::{fine_time, percent};
use deadweight_report::account::row_name;
use deadweight_report::change_points::events::{Kind, RowChange};
use deadweight_report::history::{Change, History, Point};

/// Rows of a change without an effect on the total that are named.
const NAMED: usize = 3;
/// From this share of the total's change on, a row is said to have most of it.
const MOST: f64 = 0.5;

/// A change: `5.2 % slower, mostly allocation (+48.0 µs of +52.0 µs)`.
pub(crate) fn sentence(change: &Change) -> String {
    let event = &change.event;
    let percent = event.total.map_or(0.0, |total| total.relative_change().abs());
    match &event.kind {
        Kind::Slower => format!("{} slower{}", self::percent(percent), because(change)),
        Kind::Faster => format!("{} faster{}", self::percent(percent), because(change)),
        Kind::Moved { from, to } => {
            let gained = event.rows.iter().find(|row| row.row == *to);
            let ns = gained.map_or(0.0, |row| row.difference_ns);
            let [from, to] = [from, to].map(|account| row_name(account, account));
            format!("moved: {} from {from} to {to}; the total shows no change", size(ns))
        }
        Kind::RowsOnly => {
            let rows: Vec<String> = event.rows.iter().take(NAMED).map(row).collect();
            format!("{}; the total shows no change", rows.join(", "))
        }
    }
}

/// What a reader sees first: `slower`, `faster`, `moved`, `a row`.
pub(crate) fn word(change: &Change) -> &'static str {
    match change.event.kind {
        Kind::Slower => "slower",
        Kind::Faster => "faster",
        Kind::Moved { .. } => "moved",
        Kind::RowsOnly => "rows",
    }
}

/// A row's change: `allocation +40 % (+12.0 µs)`.
fn row(row: &RowChange) -> String {
    let name = row_name(&row.row, &row.row);
    let grown = match row.point.before.mean > 0.0 {
        true => signed_percent(row.point.relative_change()),
        false => "new".to_owned(),
    };
    format!("{name} {grown} ({})", signed(row.difference_ns))
}

/// The row that explains a change of the total.
fn because(change: &Change) -> String {
    let event = &change.event;
    let total = event.total_ns.unwrap_or(0.0);
    let found = event.reason.as_ref().and_then(|reason| {
        event.rows.iter().find(|row| row.row == reason.row).map(|row| row.difference_ns)
    });
    match (&event.reason, found, &change.apparent) {
        (Some(reason), Some(ns), _) => {
            let name = row_name(&reason.row, &reason.row);
            let most = if reason.share.unwrap_or(0.0) >= MOST { "mostly" } else { "in part" };
            format!(", {most} {name} ({} of {})", signed(ns), signed(total))
        }
        (_, _, Some((account, ns))) => {
            let name = row_name(account, account);
            format!(
                " ({}); no row changed clearly, {name} seems to have most of it ({})",
                signed(total),
                signed(*ns)
            )
        }
        _ => format!(" ({})", signed(total)),
    }
}

/// Where else the change may be; empty if its place is certain.
pub(crate) fn place(change: &Change, history: &History) -> String {
    let event = &change.event;
    let count = event.latest.saturating_sub(event.earliest) + 1;
    if count < 2 {
        return String::new();
    }
    let last = history.points.get(event.latest).map(commit).unwrap_or_default();
    let after = short(&change.last_before, COMMIT);
    format!("it may be at any of {count} measured commits, after {after} and up to {last}")
}

/// The short name of a point's commit, with a plus if its source was changed.
pub(crate) fn commit(point: &Point) -> String {
    match point.commit.as_str() {
        "" => "-".to_owned(),
        commit => format!("{}{}", short(commit, COMMIT), if point.dirty { "+" } else { "" }),
    }
}

/// A time with a sign.
pub(crate) fn signed(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { "−" } else { "+" }, size(ns))
}

/// A growth as a percentage with a sign.
pub(crate) fn signed_percent(share: f64) -> String {
    let text = percent(share.abs());
    let sign = if text == "0 %" {
        ""
    } else if share < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{text}")
}

fn size(ns: f64) -> String {
    fine_time(ns.abs())
}
