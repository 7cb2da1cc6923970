//! Source lines with their CPU time, and system calls with their rates.

use super::text::long;
use crate::render::page::fitted_path;
use crate::render::picture::{Picture, SourceLine};
use crate::render::quantity::{count, percent, time};
use deadweight_report::account::row_name;
use deadweight_report::wording::{bytes, things};
use maud::{Markup, html};

/// Lines that the table shows at once.
const LISTED: usize = 15;
/// If the lines of less of the CPU time are known, there is no table.
const KNOWN: f64 = 0.01;

pub(super) fn lines(picture: &Picture) -> Markup {
    let all = picture.on_cpu.total.max(1) as f64;
    let known = picture.lines_ns as f64 / all;
    let (first, more) = picture.lines.split_at(picture.lines.len().min(LISTED));
    html! {
        @if !picture.lines.is_empty() {
            section aria-labelledby="lines-head" {
                h2 #lines-head { "Source lines" }
                @if known < KNOWN {
                    p.aside { "Nearly all CPU time (" (percent(1.0 - known)) ") is in code whose source lines are not known." }
                } @else {
                    p.aside {
                        "CPU time of all threads by source line. Code without lines counts for the line that calls it. For "
                        (percent(known)) " of the CPU time the line is known."
                    }
                    (line_table(first, all))
                    @if !more.is_empty() {
                        details { summary { (things(more.len() as u64, "line")) " with less time" } (line_table(more, all)) }
                    }
                }
            }
        }
    }
}

fn line_table(lines: &[SourceLine], all: f64) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Table: source lines from " (lines.first().map_or("", |line| &line.file)) } {
            table {
                thead { tr {
                    th.n scope="col" { "time" } th.n scope="col" { "share" } th scope="col" { "row" }
                    th scope="col" { "line" } th scope="col" { "function" } th scope="col" { "text" }
                } }
                tbody {
                    @for line in lines {
                        tr {
                            td.n { (time(line.ns)) }
                            td.n { (percent(line.ns as f64 / all)) }
                            td.row { span class={ "key a-" (line.account) } {} (row_name(line.account, line.account)) }
                            td { code { (place(&line.file)) ":" (line.line) } }
                            td { code { (long(&line.function)) } }
                            td { code { (long(&line.text)) } }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn calls(picture: &Picture) -> Markup {
    html! {
        @if !picture.calls.is_empty() {
            section aria-labelledby="calls-head" {
                h2 #calls-head { "System calls, with their rates" }
                p.aside {
                    "Calls of all tasks, on the path or not. Rates are per second of the wall time. Not blocked: the task was on a \
                     CPU, or ready for one; the cost of recording is in it."
                }
                div.scroll tabindex="0" role="region" aria-label="Table: system calls" {
                    table {
                        thead { tr {
                            th scope="col" { "call" } th scope="col" { "process" } th.n scope="col" { "calls" }
                            th.n scope="col" { "calls/s" } th.n scope="col" { "bytes" } th.n scope="col" { "bytes/s" }
                            th.n scope="col" { "bytes each" } th.n scope="col" { "time" } th.n scope="col" { "not blocked" }
                            th.n scope="col" { "each, not blocked" }
                        } }
                        tbody {
                            @for call in &picture.calls {
                                tr {
                                    th scope="row" { (long(&call.name)) }
                                    td { (long(&call.process)) }
                                    td.n { (count(call.calls)) }
                                    td.n { (count(per_second(call.calls, picture.wall_ns))) }
                                    td.n { @if let Some(n) = call.bytes { (bytes(n)) } }
                                    td.n { @if let Some(n) = call.bytes { (bytes(per_second(n, picture.wall_ns))) } }
                                    td.n { @if let Some(n) = call.bytes { (bytes(n / call.calls.max(1))) } }
                                    td.n { (time(call.ns)) }
                                    td.n { (time(call.busy_ns)) }
                                    td.n { (time(call.busy_ns / call.calls.max(1))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The end of a path, which says more than its start; all of it on hover.
fn place(file: &str) -> Markup {
    const WIDTH: usize = 48;
    let short = fitted_path(file, WIDTH);
    html! { @if short == file { (file) } @else { span title=(file) { (short) } } }
}

fn per_second(amount: u64, wall_ns: u64) -> u64 {
    let wall = u128::from(wall_ns.max(1));
    let rate = (u128::from(amount) * 1_000_000_000 + wall / 2) / wall;
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::per_second;

    #[test]
    fn rates_are_of_the_wall_time() {
        assert_eq!(per_second(3, 1_000_000), 3000);
        assert_eq!(per_second(2, 2_590_000_000), 1);
        assert_eq!(per_second(u64::MAX, 1), u64::MAX);
        assert_eq!(per_second(1, 0), 1_000_000_000);
    }
}
