//! Histories of workloads as text: a list of all, one commit by commit, the commands of a bisection.
//!
//! Finds no changes; see `deadweight_report::history`.

pub mod bisection;
mod list;
mod sentence;
mod sparkline;

pub use list::list;
pub(crate) use sentence::{commit, place, sentence, signed, signed_percent, word};

use super::archive::moment;
use super::page::{Ink, Line, Page, Sheet, fitted, shortened};
use super::quantity::{fine_time, percent};
use deadweight_report::change_points::events::Kind;
use deadweight_report::history::{Change, Dirty, History, LASTING, Point, SEARCHED};
use deadweight_report::wording::{count, things};
use sparkline::sparkline;
use std::collections::BTreeSet;

/// The shortest time, in ns, that something is a share of.
const LEAST: f64 = 1e-3;
/// Columns of the names of rows.
const NAMES: usize = 20;
/// Columns that the values beside a sparkline take.
const VALUES: usize = 26;
/// The longest sparkline.
const LONGEST: usize = 60;
/// Rows that are shown without being asked for.
const ROWS: usize = 8;
/// Rows with less than this share of the newest commit's time are shown if they changed.
const SMALL: f64 = 0.02;
/// Columns of a commit's date, its time, what is beside it, and the end of its change.
const DATE: usize = 13;
const TIME: usize = 25;
const BESIDE: usize = 36;
const CHANGE: usize = 52;
/// Changes that are listed.
const LISTED: usize = 20;

/// What of a history to show.
#[derive(Copy, Clone, Debug, Default)]
pub struct Shown<'a> {
    /// This row instead of the total.
    pub row: Option<&'a str>,
    /// This many commits at most; 0 is all.
    pub last: usize,
}

/// The history of a workload as text.
#[must_use]
pub fn render(history: &History, shown: Shown<'_>, page: Page) -> String {
    let mut sheet = Sheet::new(page);
    head(&mut sheet, history);
    sheet.gap();
    graphs(&mut sheet, history, shown, page.unicode);
    sheet.gap();
    let table = Table::new(history, shown);
    table.write(&mut sheet);
    sheet.gap();
    changes(&mut sheet, history, shown);
    sheet.into_text()
}

fn head(sheet: &mut Sheet, history: &History) {
    let runs: u64 = history.points.iter().map(|point| u64::from(point.runs)).sum();
    let days = |point: Option<&Point>| point.map(|point| day(point.moment)).unwrap_or_default();
    let (first, last) = (days(history.points.first()), days(history.points.last()));
    let mut line = Line::default();
    line.push(Ink::Strong, &shortened(&history.workload, 200));
    let commits = things(history.points.len() as u64, "commit");
    let text = format!(": {commits} in {}, {first} to {last}", things(runs, "run"));
    sheet.paragraph(line, 2, Ink::Plain, &text);
    let number = history.machine;
    let machine = history.machines.get(number.saturating_sub(1));
    let mut text = match machine.map_or("", |machine| machine.fingerprint.as_str()) {
        "" => "an unknown machine".to_owned(),
        known => known.to_owned(),
    };
    if history.machines.len() > 1 {
        let other = if number == 1 { 2 } else { 1 };
        text.push_str(&format!(
            " (machine {number} of {}; the others: --machine {other}{})",
            history.machines.len(),
            if history.machines.len() > 2 { " and so on" } else { "" }
        ));
    }
    sheet.paragraph(Line::default(), 2, Ink::Faint, &text);
    let names = history.points.iter().map(|point| point.branch.as_str());
    let branches: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let different: BTreeSet<&str> = branches.iter().copied().collect();
    if let (true, Some(last)) = (different.len() > 1, branches.last()) {
        let text = format!("{} branches; one alone: --branch '{last}'", different.len());
        sheet.paragraph(Line::default(), 2, Ink::Faint, &text);
    }
}

/// The total and each row that matters, each as a sparkline.
fn graphs(sheet: &mut Sheet, history: &History, shown: Shown<'_>, unicode: bool) {
    let width = sheet.width().saturating_sub(NAMES + 2 + VALUES).clamp(8, LONGEST);
    let mut graph = |name: &str, ink: Ink, values: &[f64]| {
        let mut line = Line::default();
        line.push(ink, &fitted(name, NAMES)).pad_to(NAMES + 2);
        line.push(Ink::Place, &sparkline(values, width, unicode));
        let least = values.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let most = values.iter().copied().reduce(f64::max).unwrap_or(0.0);
        line.push(Ink::Faint, &format!("  {} to {}", fine_time(least), fine_time(most)));
        sheet.line(&line);
    };
    if shown.row.is_none() {
        let values: Vec<f64> = history.points.iter().map(|point| point.ns).collect();
        graph("total", Ink::Strong, &values);
    }
    for place in rows_that_matter(history, shown) {
        let ns = |point: &Point| point.rows_ns.get(place).map(|ns| *ns as f64);
        let values: Vec<f64> = history.points.iter().filter_map(ns).collect();
        graph(&history.rows[place].name, Ink::Plain, &values);
    }
}

/// The rows to show: the one that was asked for, or those that are large or changed.
pub(crate) fn rows_that_matter(history: &History, shown: Shown<'_>) -> Vec<usize> {
    if let Some(row) = shown.row {
        return history.place(row).into_iter().collect();
    }
    let newest = history.points.iter().rev().find(|point| !point.rows_ns.is_empty());
    let matters = |place: &usize| {
        let large = newest.is_some_and(|point| {
            let ns = point.rows_ns.get(*place).copied().unwrap_or(0);
            ns as f64 >= SMALL * point.ns
        });
        large || changed(history, &history.rows[*place].account)
    };
    let mut rows: Vec<usize> = (0..history.rows.len()).filter(matters).collect();
    // Those that changed come first where not all can be shown; then the order is that of their size again.
    rows.sort_by_key(|place| !changed(history, &history.rows[*place].account));
    rows.truncate(ROWS);
    rows.sort_unstable();
    rows
}

fn changed(history: &History, account: &str) -> bool {
    history.events.iter().any(|change| change.event.rows.iter().any(|row| row.row == account))
}

/// The commits, newest last.
struct Table<'h> {
    history: &'h History,
    shown: Shown<'h>,
    place: Option<usize>,
    first: usize,
}

impl<'h> Table<'h> {
    fn new(history: &'h History, shown: Shown<'h>) -> Self {
        let count = history.points.len();
        let first = if shown.last > 0 { count.saturating_sub(shown.last) } else { 0 };
        Self { history, shown, place: shown.row.and_then(|row| history.place(row)), first }
    }

    fn write(&self, sheet: &mut Sheet) {
        let mut head = Line::default();
        head.push(Ink::Faint, "commit").pad_to(DATE).push(Ink::Faint, "date").pad_to(TIME);
        let what = self.place.map_or("total", |place| self.history.rows[place].name.as_str());
        head.push(Ink::Faint, &fitted(what, CHANGE - TIME - 8));
        if self.place.is_some() {
            head.pad_to(BESIDE).push(Ink::Faint, "share");
        }
        head.right(CHANGE, Ink::Faint, "change");
        sheet.line(&head);
        for index in self.first..self.history.points.len() {
            let methods = self.history.new_series.iter().find(|series| series.index == index);
            if let Some(series) = methods {
                let text = format!(
                    "new series: another method ({}); not compared with what is above",
                    series.method
                );
                sheet.line(Line::indented(2).push(Ink::Doubt, &text));
            }
            self.commit(sheet, index);
        }
        if self.first > 0 {
            let text =
                format!("{} earlier: --last N, --since DATE", things(self.first as u64, "commit"));
            sheet.line(Line::indented(0).push(Ink::Faint, &text));
        }
    }

    /// The time of a point that is shown.
    fn ns(&self, point: &Point) -> Option<f64> {
        let of_row = |place: usize| point.rows_ns.get(place).map(|ns| *ns as f64);
        self.place.map_or(Some(point.ns), of_row)
    }

    fn commit(&self, sheet: &mut Sheet, index: usize) {
        let point = &self.history.points[index];
        let change = self.change(index);
        let mut line = Line::default();
        line.push(if change.is_some() { Ink::Strong } else { Ink::Plain }, &commit(point));
        line.pad_to(DATE).push(Ink::Faint, &day(point.moment)).pad_to(TIME);
        match self.ns(point) {
            Some(ns) => line.push(Ink::Plain, &fine_time(ns)),
            None => line.push(Ink::Faint, "no ledger"),
        };
        match (self.place, self.ns(point)) {
            (None, _) => {
                line.pad_to(BESIDE).push(
                    Ink::Faint,
                    &precision(point.ns, point.low_ns, point.high_ns, point.clean_runs),
                );
            }
            (Some(_), Some(ns)) => {
                line.pad_to(BESIDE).push(Ink::Faint, &percent(ns / point.ns.max(LEAST)));
            }
            _ => {}
        }
        let before = self.history.previous(index).and_then(|before| self.ns(before));
        if let (Some(before), Some(ns)) = (before.filter(|ns| *ns > 0.0), self.ns(point)) {
            let grown = signed_percent(ns / before - 1.0);
            line.right(CHANGE, if change.is_some() { Ink::Strong } else { Ink::Faint }, &grown);
        }
        if let Some(change) = change {
            line.push(ink(change), &format!("  ← {}", self.mark(change)));
        } else if point.dirty && index + 1 == self.history.points.len() {
            line.push(Ink::Faint, "  +: changes that are in no commit");
        }
        sheet.line(&line);
        self.remarks(sheet, point);
    }

    /// What follows a change in the table.
    fn mark(&self, change: &Change) -> String {
        let row = self.shown.row.and_then(|row| change.event.rows.iter().find(|r| r.row == row));
        match (row, change.event.total) {
            (Some(row), _) => signed(row.difference_ns),
            (None, Some(total)) => {
                format!("{} {}", percent(total.relative_change().abs()), word(change))
            }
            _ => word(change).to_owned(),
        }
    }

    /// Runs that do not count.
    fn remarks(&self, sheet: &mut Sheet, point: &Point) {
        let mut remark = |text: String| sheet.paragraph(Line::indented(2), 4, Ink::Faint, &text);
        if let (Some(last), None) = (point.dirty_runs.last(), self.place) {
            let Dirty { ns, low_ns, high_ns, clean_runs, .. } = last;
            let more = match point.dirty_runs.len() {
                1 => String::new(),
                n => format!(", the last of {n}"),
            };
            let spread = precision(*ns, *low_ns, *high_ns, *clean_runs);
            remark(format!(
                "{}+: {} {spread}, not counted: with changes that are in no commit{more}",
                commit(point),
                fine_time(*ns)
            ));
        }
        if point.other_method_runs > 0 {
            let runs = things(u64::from(point.other_method_runs), "run");
            remark(format!("{runs} of this commit measured with an older method are not counted"));
        }
    }

    /// The change at a point that concerns what is shown.
    fn change(&self, index: usize) -> Option<&'h Change> {
        let concerns = |change: &&Change| {
            change.event.index == index && self::concerns(change, self.shown.row)
        };
        self.history.events.iter().find(concerns)
    }
}

fn concerns(change: &Change, row: Option<&str>) -> bool {
    row.is_none_or(|row| change.event.rows.iter().any(|changed| changed.row == row))
}

fn changes(sheet: &mut Sheet, history: &History, shown: Shown<'_>) {
    let all: Vec<&Change> =
        history.events.iter().filter(|change| concerns(change, shown.row)).collect();
    if history.comparable < 2 * LASTING {
        let of = if history.comparable < history.commits { " of one method" } else { "" };
        let text = format!(
            "too few commits to find changes: {}{of} where {} are needed, {LASTING} before a change and {LASTING} after it",
            history.comparable,
            2 * LASTING
        );
        sheet.paragraph(Line::default(), 0, Ink::Faint, &text);
        return;
    }
    if all.is_empty() {
        let all = history.points.len() == history.commits;
        let text = if all { "no change found" } else { "no change found among these commits" };
        let mut line = Line::default();
        line.push(Ink::Plain, text);
        let text = format!("; one in the last {} commits would not show yet", LASTING - 1);
        sheet.paragraph(line, 0, Ink::Faint, &text);
    }
    if all.len() > LISTED {
        let text = format!("{} changes, of which the last {LISTED}:", count(all.len() as u64));
        sheet.line(Line::default().push(Ink::Faint, &text));
    }
    for change in &all[all.len().saturating_sub(LISTED)..] {
        let mut line = Line::default();
        let at = history.points.get(change.event.index).map(commit).unwrap_or_default();
        line.push(Ink::Strong, &format!("at {at}"));
        line.push(Ink::Faint, &format!(" ({}): ", day(change.moment)));
        let place = place(change, history);
        let text = [sentence(change), place].into_iter().filter(|text| !text.is_empty());
        sheet.paragraph(line, 3, ink(change), &text.collect::<Vec<_>>().join("; "));
    }
    if history.commits > SEARCHED {
        let text =
            format!("changes were looked for in the last {} commits", count(SEARCHED as u64));
        sheet.line(Line::default().push(Ink::Faint, &text));
    }
    if all.iter().any(|change| change.event.kind == Kind::Slower) {
        let mut line = Line::default();
        line.push(Ink::Faint, "to find the commit of the last slowdown: ");
        sheet.line(line.push(Ink::Command, "deadweight history ... --bisect"));
    }
}

fn ink(change: &Change) -> Ink {
    match change.event.kind {
        Kind::Slower => Ink::Cost,
        Kind::Faster => Ink::Command,
        Kind::Moved { .. } | Kind::RowsOnly => Ink::Doubt,
    }
}

/// Half of the interval as a part of the time; of traced runs alone there is none.
pub(crate) fn precision(ns: f64, low: f64, high: f64, clean_runs: u32) -> String {
    match clean_runs {
        0 => "traced".to_owned(),
        _ => format!("± {}", percent((high - low).max(0.0) / 2.0 / ns.max(LEAST))),
    }
}

/// The date of a moment, in UTC.
pub(crate) fn day(seconds: i64) -> String {
    let text = moment(seconds);
    text.split(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
