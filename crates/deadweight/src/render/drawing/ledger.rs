//! The ledger as one bar with a legend.

use super::{Drawing, WIDTH, fitted, n};
use crate::render::page::{printable, shortened};
use crate::render::quantity::{percent, time};
use crate::render::terminal::command_line;
use deadweight_report::account::row_name;
use deadweight_report::report::{Report, Row};
use maud::html;

const HEIGHT: f64 = 56.0;
const TOP: f64 = 34.0;
const LINE: f64 = 22.0;
/// Columns of the legend.
const COLUMNS: usize = 3;
/// Rows with less than this share are in the legend together.
const SMALL: f64 = 0.005;

/// The drawing of a report's ledger.
#[must_use]
pub fn drawing(report: &Report) -> Drawing {
    on_scale(report, report.wall_ns)
}

/// The same, with a bar that is shorter than the whole width by as much as the wall time is shorter than `longest`.
#[must_use]
pub fn on_scale(report: &Report, longest: u64) -> Drawing {
    let total = report.wall_ns.max(1) as f64;
    let width = WIDTH * total / longest.max(report.wall_ns).max(1) as f64;
    let share = |row: &Row| row.ns as f64 / total;
    let (large, small): (Vec<&Row>, Vec<&Row>) =
        report.ledger.iter().filter(|row| row.ns > 0).partition(|row| share(row) >= SMALL);
    let rest: u64 = small.iter().map(|row| row.ns).sum();
    let mut parts: Vec<(String, String, u64)> =
        large.iter().map(|row| (name(row), class(&row.account), row.ns)).collect();
    if rest > 0 {
        parts.push(("other".to_owned(), "other".to_owned(), rest));
    }
    let mut from = 0.0;
    let placed: Vec<(f64, f64, &(String, String, u64))> = parts
        .iter()
        .map(|part| {
            let (start, width) = (from, part.2 as f64 / total * width);
            from += width;
            (start, width, part)
        })
        .collect();
    let lines = parts.len().div_ceil(COLUMNS) as f64;
    let head = format!("{}: {} wall time", command_line(&report.command), time(report.wall_ns));
    let words: Vec<String> = parts
        .iter()
        .map(|(name, _, ns)| format!("{name} {} ({})", time(*ns), percent(*ns as f64 / total)))
        .collect();
    let body = html! {
        text x="0" y="20" { (fitted(&head, WIDTH)) }
        @for (start, width, (name, class, _)) in &placed {
            rect class={ "edge a-" (class) } x=(n(*start)) y=(n(TOP)) width=(n(*width)) height=(n(HEIGHT)) {}
            text.on x=(n(start + 6.0)) y=(n(TOP + 20.0)) { (fitted(name, width - 10.0)) }
        }
        @for (at, ((_, class, _), said)) in parts.iter().zip(&words).enumerate() {
            @let x = (at % COLUMNS) as f64 * WIDTH / COLUMNS as f64;
            @let y = TOP + HEIGHT + 12.0 + (at / COLUMNS) as f64 * LINE;
            rect class={ "a-" (class) } x=(n(x)) y=(n(y)) width="13" height="13" {}
            text x=(n(x + 20.0)) y=(n(y + 11.0)) { (fitted(said, WIDTH / COLUMNS as f64 - 24.0)) }
        }
    };
    Drawing {
        id: "ledger-drawing".to_owned(),
        height: TOP + HEIGHT + 16.0 + lines * LINE,
        title: format!(
            "Where the wall time of {} went",
            shortened(&printable(&command_line(&report.command)), 200)
        ),
        text: words.join(", "),
        body,
    }
}

fn name(row: &Row) -> String {
    shortened(&printable(row_name(&row.account, &row.group)), 60)
}

/// The account as a part of a class name: those of foreign reports may hold anything.
pub(crate) fn class(account: &str) -> String {
    account.chars().filter(|c| c.is_ascii_lowercase() || *c == '-').take(32).collect()
}
