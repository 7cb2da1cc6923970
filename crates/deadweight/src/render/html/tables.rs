//! Source lines with their CPU time, and system calls with their rates.

use super::text::long;
use crate::render::page::fitted_path;
use crate::render::picture::Picture;
use crate::render::quantity::{count, percent, time};
use deadweight_report::account::row_name;
use deadweight_report::wording::bytes;
use maud::{Markup, html};

pub(super) fn lines(picture: &Picture) -> Markup {
    let all = picture.on_cpu.total.max(1) as f64;
    html! {
        @if !picture.lines.is_empty() {
            section aria-labelledby="lines-head" {
                h2 #lines-head { "Source lines" }
                p.aside {
                    "CPU time of all threads in a line, and in code without lines that it calls; " (percent(picture.lines_ns as f64 / all))
                    " of it is in lines that are known."
                }
                div.scroll tabindex="0" role="region" aria-label="Table: source lines" {
                    table {
                        thead { tr {
                            th.n scope="col" { "time" } th.n scope="col" { "share" } th scope="col" { "row" }
                            th scope="col" { "line" } th scope="col" { "function" } th scope="col" { "text" }
                        } }
                        tbody {
                            @for line in &picture.lines {
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
    }
}

pub(super) fn calls(picture: &Picture) -> Markup {
    html! {
        @if !picture.calls.is_empty() {
            section aria-labelledby="calls-head" {
                h2 #calls-head { "System calls, with their rates" }
                p.aside { "Of all tasks, on the path or not. Rates are per second of the wall time." }
                div.scroll tabindex="0" role="region" aria-label="Table: system calls" {
                    table {
                        thead { tr {
                            th scope="col" { "call" } th scope="col" { "process" } th.n scope="col" { "calls" }
                            th.n scope="col" { "calls/s" } th.n scope="col" { "bytes" } th.n scope="col" { "bytes/s" }
                            th.n scope="col" { "bytes each" } th.n scope="col" { "time" } th.n scope="col" { "without waits" }
                            th.n scope="col" { "each, without waits" }
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
    let rate = u128::from(amount) * 1_000_000_000 / u128::from(wall_ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::per_second;

    #[test]
    fn rates_are_of_the_wall_time() {
        assert_eq!(per_second(3, 1_000_000), 3000);
        assert_eq!(per_second(u64::MAX, 1), u64::MAX);
        assert_eq!(per_second(1, 0), 1_000_000_000);
    }
}
