//! The page of a history: the chart, its changes, and each commit in a table.
//!
//! Complete without the script, which only adds rows to choose, ranges and hover.

use super::text::{long, shown};
use super::{Kind, data, document, ledger};
use crate::render::drawing::history::drawing;
use crate::render::history::{
    Shown, commit, day, place, precision, rows_that_matter, sentence, signed, signed_percent, word,
};
use crate::render::quantity::fine_time;
use deadweight_report::account::row_name;
use deadweight_report::history::{Change, History, LASTING, Point};
use maud::{Markup, html};
use serde::Serialize;

const PAGE: Kind = Kind {
    skip: ["#commits", "To the commits"],
    script: include_str!("history.js"),
    style: include_str!("history.css"),
};

/// The page of a history.
#[must_use]
pub fn render(history: &History) -> String {
    let title = format!("{} · deadweight", shown(&history.workload));
    let machine = history.machines.get(history.machine.saturating_sub(1));
    let fingerprint = machine.map_or("", |machine| machine.fingerprint.as_str());
    let body = html! {
        header {
            p.brand { "deadweight · history" }
            h1 { code { (long(&history.workload)) } }
            p.verdict { (verdict(history)) }
            p.aside {
                (history.commits) " commits measured on "
                @if fingerprint.is_empty() { "an unknown machine" } @else { (long(fingerprint)) }
                @if history.machines.len() > 1 {
                    ", one of " (history.machines.len()) " machines: those of others are not compared with these"
                }
                ". "
                @if history.commits > history.points.len() { "The last " (history.points.len()) " are shown." }
            }
        }
        main {
            (chart(history))
            (changes(history))
            (commits(history))
        }
        (data("history", &Data::of(history)))
    };
    document(&title, &body, &PAGE)
}

fn verdict(history: &History) -> Markup {
    let Some(last) = history.events.last() else {
        return html! {
            @if history.comparable < 2 * LASTING {
                "Too few commits to find changes: " (2 * LASTING) " are needed, " (LASTING) " before a change and " (LASTING) " after it."
            } @else { "No change found." }
        };
    };
    let at = history.points.get(last.event.index).map(commit).unwrap_or_default();
    html! { "Last change, at " code { (shown(&at)) } " (" (day(last.moment)) "): " (sentence(last)) "." }
}

fn chart(history: &History) -> Markup {
    html! {
        section #chart aria-labelledby="chart-head" {
            h2 #chart-head { "Time of each commit" }
            p.aside {
                "The band is the 95 % interval of the median; dotted lines are the levels between changes, which have numbers."
            }
            div.controls hidden {
                label { "Show " select name="row" {
                    option value="-1" { "total" }
                    @for (place, row) in history.rows.iter().enumerate() { option value=(place) { (shown(&row.name)) } }
                } }
                label { "Commits " select name="range" {
                    option value="0" { "all" }
                    @for last in [20, 50, 200, 1000] {
                        @if last < history.points.len() { option value=(last) { "the last " (last) } }
                    }
                } }
                span.aside { "Arrow keys go from commit to commit." }
            }
            div.scroll.drawing tabindex="0" role="region" aria-label="Drawing: time of each commit" {
                (drawing(history).element_with_links())
            }
            p.readout aria-live="polite" {}
        }
    }
}

fn changes(history: &History) -> Markup {
    html! {
        section #changes aria-labelledby="changes-head" {
            h2 #changes-head { "What changed" }
            @if history.events.is_empty() { p { (verdict(history)) } }
            ol.changes {
                @for (number, change) in (1..).zip(&history.events) {
                    li id={ "change-" (number) } class=(word(change)) { (one(history, change)) }
                }
            }
        }
    }
}

fn one(history: &History, change: &Change) -> Markup {
    let at = history.points.get(change.event.index).map(commit).unwrap_or_default();
    let place = place(change, history);
    html! {
        p {
            "at " code title=(shown(&change.commit)) { (shown(&at)) } " (" (day(change.moment)) "): "
            strong { (sentence(change)) }
        }
        @if !place.is_empty() { p.aside { (shown(&place)) "." } }
        @if !change.event.rows.is_empty() {
            div.scroll tabindex="0" role="region" aria-label={ "Table: rows that changed at " (shown(&at)) } {
                table {
                    thead { tr {
                        th scope="col" { "row" } th.n scope="col" { "before" } th.n scope="col" { "after" }
                        th.n scope="col" { "difference" } th.n scope="col" { "of itself" }
                    } }
                    tbody { @for row in &change.event.rows {
                        tr {
                            th scope="row" {
                                span class={ "key a-" (ledger::class(&row.row)) } {}
                                (shown(row_name(&row.row, &row.row)))
                            }
                            td.n { (fine_time(row.point.before.mean.round())) }
                            td.n { (fine_time(row.point.after.mean.round())) }
                            td.n { (signed(row.difference_ns)) }
                            td.n { @if row.point.before.mean > 0.0 { (signed_percent(row.point.relative_change())) } @else { "new" } }
                        }
                    } }
                }
            }
        }
    }
}

fn commits(history: &History) -> Markup {
    let rows = rows_that_matter(history, Shown::default());
    let at =
        |index: usize| (1..).zip(&history.events).find(|(_, change)| change.event.index == index);
    html! {
        section #commits aria-labelledby="commits-head" {
            h2 #commits-head { "Commits, newest first" }
            div.scroll tabindex="0" role="region" aria-label="Table: commits" {
                table.commits data-history=(history.points.len()) {
                    thead { tr {
                        th scope="col" { "commit" } th scope="col" { "date" } th.n scope="col" { "total" } th.n scope="col" { "interval" }
                        th.n scope="col" { "change" } th scope="col" { "found" }
                        @for place in &rows { th.n scope="col" { (shown(&history.rows[*place].name)) } }
                        th.n scope="col" { "runs" }
                    } }
                    tbody { @for (index, point) in history.points.iter().enumerate().rev() {
                        tr data-ns=(point.ns) {
                            th scope="row" { code title=(shown(&point.commit)) { (shown(&commit(point))) } }
                            td.row { (day(point.moment)) }
                            td.n { (fine_time(point.ns)) }
                            td.n { (precision(point.ns, point.low_ns, point.high_ns, point.clean_runs)) }
                            td.n { (grown(history, index)) }
                            td.row { @if let Some((number, change)) = at(index) {
                                a href={ "#change-" (number) } { (number) ": " (word(change)) }
                            } }
                            @for place in &rows { td.n { (point.rows_ns.get(*place).map(|ns| fine_time(*ns as f64)).unwrap_or_default()) } }
                            td.n { (runs(point)) }
                        }
                    } }
                }
            }
            p.aside {
                "A plus after a commit: its source had changes that are in no commit. Runs in brackets do not count: they are of such a \
                 source where there are others, or measured with an older method."
            }
        }
    }
}

fn grown(history: &History, index: usize) -> String {
    match history.previous(index) {
        Some(before) if before.ns > 0.0 => {
            signed_percent(history.points[index].ns / before.ns - 1.0)
        }
        Some(_) => String::new(),
        None if index == 0 => String::new(),
        None => "new series".to_owned(),
    }
}

fn runs(point: &Point) -> String {
    let uncounted = point.dirty_runs.len() as u64 + u64::from(point.other_method_runs);
    match uncounted {
        0 => point.runs.to_string(),
        n => format!("{} ({n})", point.runs),
    }
}

/// What the script draws, a list for each kind of value: as objects it would be four times as long.
#[derive(Serialize)]
struct Data<'h> {
    commits: Vec<String>,
    days: Vec<String>,
    ns: Vec<f64>,
    low_ns: Vec<f64>,
    high_ns: Vec<f64>,
    precision: Vec<String>,
    names: Vec<&'h str>,
    /// For each row its times, -1 where there is no ledger.
    rows: Vec<Vec<i64>>,
    cuts: Vec<usize>,
    changes: Vec<DataChange<'h>>,
}

#[derive(Serialize)]
struct DataChange<'h> {
    index: usize,
    word: &'static str,
    text: String,
    total: bool,
    rows: Vec<&'h str>,
}

impl<'h> Data<'h> {
    fn of(history: &'h History) -> Self {
        let points = &history.points;
        let row = |place: usize| {
            let ns = |point: &Point| {
                point.rows_ns.get(place).map_or(-1, |ns| i64::try_from(*ns).unwrap_or(i64::MAX))
            };
            points.iter().map(ns).collect()
        };
        let change = |change: &'h Change| DataChange {
            index: change.event.index,
            word: word(change),
            text: sentence(change),
            total: change.event.total.is_some(),
            rows: change.event.rows.iter().map(|row| row_name(&row.row, &row.row)).collect(),
        };
        Self {
            commits: points.iter().map(|point| shown(&commit(point))).collect(),
            days: points.iter().map(|point| day(point.moment)).collect(),
            ns: points.iter().map(|point| point.ns).collect(),
            low_ns: points.iter().map(|point| point.low_ns).collect(),
            high_ns: points.iter().map(|point| point.high_ns).collect(),
            precision: points
                .iter()
                .map(|p| precision(p.ns, p.low_ns, p.high_ns, p.clean_runs))
                .collect(),
            names: history.rows.iter().map(|row| row.name.as_str()).collect(),
            rows: (0..history.rows.len()).map(row).collect(),
            cuts: history.new_series.iter().map(|series| series.index).collect(),
            changes: history.events.iter().map(change).collect(),
        }
    }
}
