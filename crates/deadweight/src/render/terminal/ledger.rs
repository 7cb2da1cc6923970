//! The ledger: a row per account, with its time, its share, a bar, its name and a note.
//!
//! Times and shares are shown in whole steps that add up to the total exactly. Small rows are shown as
//! one; none is left out of the sum. Attributes no time.

use crate::render::page::{Ink, Line, Sheet, columns};
use crate::render::quantity::Scale;
use deadweight_report::account::row_name;
use deadweight_report::report::{Basis, Report, Row};
use deadweight_report::stats::apportion::apportion;

/// Rows below this share of the whole are folded into one.
const SMALL: f64 = 0.005;
/// Columns of the longest bar.
const LONGEST_BAR: usize = 32;
/// Steps of a percentage: tenths.
const TENTHS: u64 = 1000;
/// A note that has fewer columns than this beside the name of its row is shown under it, and bars are left out.
const NARROWEST_NOTE: usize = 16;
/// Half widths of an interval below this share are not shown.
const NOTABLE: f64 = 0.000_5;

/// A ledger: the divided time, its name and its rows.
pub(super) struct Table<'a> {
    title: &'static str,
    of: &'static str,
    total: u64,
    rows: &'a [Row],
}

impl<'a> Table<'a> {
    /// The wall time.
    pub(super) fn wall(report: &'a Report) -> Self {
        let of = if report.inside.is_some() { "wall time under it" } else { "wall time" };
        Self { title: "wall", of, total: report.wall_ns, rows: &report.ledger }
    }

    /// All tasks' CPU time.
    pub(super) fn cpu(report: &'a Report) -> Self {
        let of = match report.inside {
            Some(_) => "CPU time of all threads under it",
            None => "CPU time of all threads",
        };
        Self { title: "cpu", of, total: report.cpu_ns, rows: &report.cpu_ledger }
    }
}

/// A row as it is shown.
struct Entry {
    ns: u64,
    group: String,
    note: String,
    account: String,
}

/// Where the columns start.
struct Columns {
    time: usize,
    bar: usize,
    bar_width: usize,
    group: usize,
    note: usize,
    note_below: bool,
}

pub(super) fn write(sheet: &mut Sheet, table: Table<'_>) {
    let entries = entries(&table);
    if entries.is_empty() {
        return;
    }
    let scale = Scale::for_table(table.total);
    let weights: Vec<u64> = entries.iter().map(|e| e.ns).collect();
    let times = apportion(scale.steps(table.total), &weights);
    let shares = apportion(TENTHS, &weights);
    let longest = entries.iter().map(|e| columns(&e.group)).max().unwrap_or(0);
    let total = shown_time(scale, scale.steps(table.total));
    let note = entries.iter().map(|e| columns(&e.note)).max().unwrap_or(0);
    let at = layout(sheet.width(), columns(&total), longest, note);

    let mut head = Line::indented(2);
    head.push(Ink::Faint, table.title).pad_to(at.group).push(Ink::Faint, "ledger");
    sheet.line(&head);
    let most = weights.iter().copied().max().unwrap_or(0);
    for ((entry, steps), tenths) in entries.iter().zip(times).zip(shares) {
        let mut line = Line::default();
        line.right(at.time, Ink::Plain, &shown_time(scale, steps));
        line.right(at.bar - 2, Ink::Plain, &shown_share(tenths)).pad_to(at.bar);
        line.push(ink(&entry.account), &bar(entry.ns, most, at.bar_width)).pad_to(at.group);
        line.push(Ink::Strong, &entry.group);
        if at.note_below && !entry.note.is_empty() {
            sheet.line(&line);
            line = Line::default();
        }
        line.pad_to(at.note);
        sheet.paragraph(line, at.note, Ink::Plain, &entry.note);
    }
    let mut rule = Line::indented(2);
    rule.push(Ink::Faint, &"─".repeat(at.bar - 4));
    sheet.line(&rule);
    let mut sum = Line::default();
    sum.right(at.time, Ink::Strong, &total);
    sum.right(at.bar - 2, Ink::Strong, "100.0 %").pad_to(at.group).push(Ink::Faint, table.of);
    sheet.line(&sum);
    sheet.gap();
}

/// The bar gets the columns that the notes leave, within bounds: the notes hold the counts.
fn layout(width: usize, time_columns: usize, group_columns: usize, note: usize) -> Columns {
    let time = 2 + time_columns;
    let bar = time + 9 + 2;
    // The shortest bar that still compares rows.
    let least = if width < 72 { 6 } else { 12 };
    let most = (width / 4).clamp(least, LONGEST_BAR);
    let left = width.saturating_sub(bar + 2 + group_columns + 2 + note);
    let bar_width = left.clamp(least, most);
    let group = bar + bar_width + 2;
    let note = group + group_columns + 2;
    if width < note + NARROWEST_NOTE {
        return Columns { time, bar, bar_width: 0, group: bar, note: bar + 2, note_below: true };
    }
    Columns { time, bar, bar_width, group, note, note_below: false }
}

/// The large rows, and one row for the small ones.
fn entries(table: &Table<'_>) -> Vec<Entry> {
    let (small, large): (Vec<&Row>, Vec<&Row>) =
        table.rows.iter().filter(|r| r.ns > 0).partition(|r| share(r.ns, table.total) < SMALL);
    // A group that has a large row is not named again.
    let in_list = |row: &&Row| {
        let repeats = large.iter().any(|other| other.group == row.group);
        if repeats { name(row) } else { first_word(&row.group).to_owned() }
    };
    let mut entries: Vec<Entry> = large.iter().map(|row| entry(row, table.total)).collect();
    match small.as_slice() {
        [] => {}
        [only] => entries.push(entry(only, table.total)),
        several => entries.push(Entry {
            ns: several.iter().map(|r| r.ns).sum(),
            group: "other".into(),
            note: several.iter().map(in_list).fold(String::new(), listed),
            account: String::new(),
        }),
    }
    entries
}

fn entry(row: &Row, total: u64) -> Entry {
    let half = share(row.high_ns.saturating_sub(row.low_ns) / 2, total);
    let margin = match row.basis {
        Basis::Sampled if half >= NOTABLE => format!("± {:.1} %", half * 100.0),
        _ => String::new(),
    };
    let gap = if row.note.is_empty() || margin.is_empty() { "" } else { " · " };
    Entry {
        ns: row.ns,
        group: name(row),
        note: format!("{}{gap}{margin}", row.note),
        account: row.account.clone(),
    }
}

/// The words of a row. Those of an account that this version does not know are its group's.
fn name(row: &Row) -> String {
    row_name(&row.account, &row.group).to_owned()
}

/// `kernel` of `kernel, other`: what is in a list has no comma.
fn first_word(group: &str) -> &str {
    group.split(", ").next().unwrap_or_default()
}

/// `a, b, c` without repetitions.
fn listed(mut list: String, word: String) -> String {
    if !list.split(", ").any(|w| w == word) {
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(&word);
    }
    list
}

fn share(ns: u64, total: u64) -> f64 {
    ns as f64 / total.max(1) as f64
}

fn shown_time(scale: Scale, steps: u64) -> String {
    format!("{} {}", scale.digits(steps), scale.unit())
}

fn shown_share(tenths: u64) -> String {
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// The style of a bar: a calm colour for the program's own work, faint for unknown time.
fn ink(account: &str) -> Ink {
    match account {
        "net-work" => Ink::Command,
        "unexplained" | "unrecorded" | "observer" | "" => Ink::Faint,
        "wait-cpu" => Ink::Doubt,
        _ => Ink::Cost,
    }
}

/// A bar to eighths of a column; the largest row has all of it.
fn bar(ns: u64, most: u64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = u128::from(ns) * (width as u128) * 8 / u128::from(most.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(0);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_adds_up_as_shown() {
        let rows: Vec<Row> = [333, 333, 334]
            .map(|ns| Row { ns: ns * 1_000, account: "net-work".into(), ..Row::default() })
            .into();
        let weights: Vec<u64> = rows.iter().map(|r| r.ns).collect();
        let scale = Scale::for_largest(1_000_000);
        assert_eq!(apportion(scale.steps(1_000_000), &weights).iter().sum::<u64>(), 100);
        assert_eq!(apportion(TENTHS, &weights), [333, 333, 334]);
    }

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(100, 100, 4), "████");
        assert_eq!(bar(50, 100, 4), "██");
        assert_eq!(bar(1, 32, 4), "▏");
        assert_eq!(bar(0, 0, 4), "");
    }

    #[test]
    fn small_rows_fold_into_one_with_their_names() {
        let row = |group: &str, ns| Row { group: group.into(), ns, ..Row::default() };
        let rows = [row("net work", 9_990), row("exit", 4), row("kernel", 3), row("exit", 3)];
        let table = Table { title: "", of: "", total: 10_000, rows: &rows };
        let entries = entries(&table);
        assert_eq!(entries.len(), 2);
        assert_eq!((entries[1].ns, entries[1].note.as_str()), (10, "exit, kernel"));
    }
}
