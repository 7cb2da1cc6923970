//! The ledger as one bar and a table. Each row has its time in nanoseconds too: they add up to the wall time.

use super::text::shown;
pub(super) use crate::render::drawing::ledger::class;
use crate::render::quantity::{Scale, count, time};
use deadweight_report::account::{OBSERVER, row_name};
use deadweight_report::report::{Basis, Report, Row};
use deadweight_report::stats::apportion::apportion;
use maud::{Markup, html};

/// Steps of a percentage: tenths.
const TENTHS: u64 = 1000;
/// Widths of the bar's parts, in parts of the whole.
const PARTS: u64 = 100_000;

pub(super) fn section(report: &Report) -> Markup {
    let of = if report.inside.is_some() { "wall time under it" } else { "wall time" };
    html! {
        section #ledger aria-labelledby="ledger-head" {
            h2 #ledger-head { "Where the " (of) " went" }
            (bar(&report.ledger, report.wall_ns))
            (table(&report.ledger, report.wall_ns, of))
            @if !report.cpu_ledger.is_empty() {
                details.beside {
                    summary { "CPU time of all threads, by the same rows: " (time(report.cpu_ns)) }
                    (bar(&report.cpu_ledger, report.cpu_ns))
                    (table(&report.cpu_ledger, report.cpu_ns, "CPU time of all threads"))
                }
            }
        }
    }
}

/// The rows beside each other, in proportion. The table below says the same in words.
pub(super) fn bar(rows: &[Row], total: u64) -> Markup {
    let weights: Vec<u64> = rows.iter().map(|row| row.ns).collect();
    let widths = apportion(PARTS, &weights);
    html! {
        div.bar aria-hidden="true" {
            @for (row, width) in rows.iter().zip(widths) {
                @if width > 0 {
                    span class={ "part a-" (class(&row.account)) }
                        style={ "width:" (width / 1000) "." (format!("{:03}", width % 1000)) "%" }
                        title={ (name(row)) ": " (time(row.ns)) " of " (time(total)) } {
                        @if width >= PARTS / 8 { span { (name(row)) } }
                    }
                }
            }
        }
    }
}

pub(super) fn table(rows: &[Row], total: u64, of: &str) -> Markup {
    let scale = Scale::for_table(total);
    let weights: Vec<u64> = rows.iter().map(|row| row.ns).collect();
    let times = apportion(scale.steps(total), &weights);
    let shares = apportion(TENTHS, &weights);
    let unit = scale.unit();
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Table: " (of) } {
            table.ledger data-total=(total) {
                thead { tr {
                    th scope="col" { "row" }
                    th.n scope="col" { "time, " (unit) }
                    th.n scope="col" { "share" }
                    th.n.wide scope="col" { "95 % interval" }
                    th.wide scope="col" { "what" }
                } }
                tbody {
                    @for ((row, steps), tenths) in rows.iter().zip(times).zip(shares) {
                        tr data-ns=(row.ns) data-account=(shown(&row.account)) {
                            th scope="row" {
                                span class={ "key a-" (class(&row.account)) } {}
                                (name(row))
                                @if !row.note.is_empty() { span.note { (shown(&row.note)) } }
                            }
                            td.n title={ (count(row.ns)) " ns" } { (scale.digits(steps)) }
                            td.n { (tenths / 10) "." (tenths % 10) " %" }
                            td.n.wide { (interval(row, scale)) }
                            td.what.wide { (shown(&row.note)) }
                        }
                    }
                }
                tfoot { tr {
                    th scope="row" { (of) }
                    td.n title={ (count(total)) " ns" } { (scale.digits(scale.steps(total))) }
                    td.n { "100.0 %" }
                    td.wide {}
                    td.what.wide { (count(total)) " ns: the rows add up to it exactly" }
                } }
            }
        }
    }
}

fn interval(row: &Row, scale: Scale) -> String {
    match row.basis {
        // Its cost per event is calibrated.
        Basis::Exact if row.account == OBSERVER.id() => "estimate".into(),
        Basis::Exact => "exact".into(),
        Basis::Sampled => {
            let end = |ns| scale.digits(scale.steps(ns));
            format!("{} to {}", end(row.low_ns), end(row.high_ns))
        }
    }
}

fn name(row: &Row) -> String {
    shown(row_name(&row.account, &row.group))
}
