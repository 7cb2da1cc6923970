//! The ledger as a table: CSV for spreadsheets, Markdown for issues.
//!
//! Rows are the report's, in its order, and the wall time is the last one. Not for findings.

use crate::names::plain;
use deadweight_report::account::row_name;
use deadweight_report::report::{Basis, Report, Row};
use deadweight_report::wording::{percent, time};
use deadweight_trace::units::Ns;

/// A line for each row: account, name, ns, share, basis, interval, note.
#[must_use]
pub fn csv(report: &Report) -> String {
    let mut text = String::from("account,row,ns,share,basis,low_ns,high_ns,note\n");
    for row in &report.ledger {
        let Row { ns, share, low_ns, high_ns, .. } = row;
        let (account, name, note) = (quoted(&row.account), quoted(shown(row)), quoted(&row.note));
        let basis = basis(row);
        text += &format!("{account},{name},{ns},{share},{basis},{low_ns},{high_ns},{note}\n");
    }
    let wall = report.wall_ns;
    text + &format!("wall,wall time,{wall},1,exact,{wall},{wall},\n")
}

/// A table of rows with time, share, interval and note.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = String::from("| row | time | share | 95 % | note |\n|---|---:|---:|---:|---|\n");
    let wall = Ns(report.wall_ns);
    for row in &report.ledger {
        let interval = match row.basis {
            Basis::Exact => String::new(),
            Basis::Sampled => {
                format!("{} to {}", percent(Ns(row.low_ns), wall), percent(Ns(row.high_ns), wall))
            }
        };
        let (name, note) = (cell(shown(row)), cell(&row.note));
        let (time, share) = (time(Ns(row.ns)), percent(Ns(row.ns), wall));
        text += &format!("| {name} | {time} | {share} | {interval} | {note} |\n");
    }
    text + &format!("| **wall time** | **{}** | **100 %** | | |\n", time(wall))
}

fn shown(row: &Row) -> &str {
    row_name(&row.account, &row.group)
}

fn basis(row: &Row) -> &'static str {
    match row.basis {
        Basis::Exact => "exact",
        Basis::Sampled => "sampled",
    }
}

/// A field, in quotes where it needs them.
fn quoted(field: &str) -> String {
    let field = plain(field);
    // A field that begins like this is a formula in a spreadsheet.
    let field = match field.chars().next() {
        Some('=' | '+' | '-' | '@') => format!("'{field}"),
        _ => field.into_owned(),
    };
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

/// Text of a cell: what Markdown or HTML would obey is escaped.
fn cell(text: &str) -> String {
    let mut cell = String::new();
    for c in plain(text).chars() {
        match c {
            '<' => cell.push_str("&lt;"),
            '&' => cell.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => cell.extend(['\\', c]),
            _ => cell.push(c),
        }
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::{csv, markdown};
    use crate::tests::{TWO_THREADS, of_golden, of_text};
    use deadweight_report::report::{Report, Row};
    use expect_test::expect;

    #[test]
    fn tables_of_a_run() {
        let (csv, markdown) = of_text(TWO_THREADS, |report, _| (csv(report), markdown(report)));
        expect![[r#"
            account,row,ns,share,basis,low_ns,high_ns,note
            net-work,net work,858,0.858,sampled,294,858,
            exit,exit,100,0.1,exact,100,100,freeing memory
            system-calls,system calls,22,0.022,exact,22,22,"read ×1, 0 bytes each"
            start-up,start-up,20,0.02,exact,20,20,"exec, linking and initialising"
            wall,wall time,1000,1,exact,1000,1000,
        "#]]
        .assert_eq(&csv);
        expect![[r#"
            | row | time | share | 95 % | note |
            |---|---:|---:|---:|---|
            | net work | 858 ns | 86 % | 29 % to 86 % |  |
            | exit | 100 ns | 10 % |  | freeing memory |
            | system calls | 22 ns | 2 % |  | read ×1, 0 bytes each |
            | start-up | 20 ns | 2 % |  | exec, linking and initialising |
            | **wall time** | **1.00 µs** | **100 %** | | |
        "#]]
        .assert_eq(&markdown);
    }

    #[test]
    fn the_rows_add_up_to_the_last_one() {
        of_golden(|name, report, _| {
            let text = csv(report).replace("\"kernel, other\"", "kernel");
            let ns = |line: &str| line.split(',').nth(2).and_then(|ns| ns.parse::<u64>().ok());
            let mut rows: Vec<u64> = text.lines().filter_map(ns).collect();
            assert_eq!(rows.pop(), Some(rows.iter().sum()), "{name}");
        });
    }

    #[test]
    fn hostile_notes_stay_in_their_cell() {
        let note = "a\n| <b>*x*\u{1b}[31m,\"".to_owned();
        let row = Row { account: "net-work".into(), note, ..Row::default() };
        let sum = Row { account: "=1+1".into(), group: "=1+1".into(), ..Row::default() };
        let report = Report { ledger: vec![row, sum], ..Report::default() };
        let (csv, markdown) = (csv(&report), markdown(&report));
        assert_eq!((csv.lines().count(), markdown.lines().count()), (4, 5), "{csv}{markdown}");
        assert!(csv.contains("\n'=1+1,'=1+1,0,") && csv.contains(",\"\"\"\n"), "{csv}");
        assert!(markdown.contains(r"\| &lt;b>\*x\*"), "{markdown}");
    }
}
