//! The drawings of a run in the page, each with what it leaves out, and the waits of the path as a table.

use super::text::long;
use crate::render::drawing::{flame, timeline, usage};
use crate::render::picture::{Picture, Wait};
use crate::render::quantity::{count, percent, time};
use deadweight_report::account::row_name;
use deadweight_report::report::Report;
use deadweight_report::wording::things;
use maud::{Markup, html};

/// Waits that the table shows at once.
const LISTED: usize = 12;

/// Which run the drawings show, where the ledger is of something else.
pub(super) fn of_what(report: &Report, picture: &Picture) -> Markup {
    let runs = &report.runs;
    let several = runs.traced.count > 1 || runs.clean.count > 0;
    html! {
        @if several || report.inside.is_some() {
            p.hazard {
                "The drawings and tables below show one traced run, of " (time(picture.wall_ns)) ": the whole of it. The ledger \
                 above is of "
                @if several { "all runs" } @else { "a part of it" }
                "."
            }
        }
    }
}

pub(super) fn timeline(picture: &Picture) -> Markup {
    let states = "Full height: the task was on a CPU, or ready for one. Thin: it was blocked; the colour says by what. The thick \
                  line is the critical path: what the wall time was spent on. An arrow leads from the end of a wait on it to the \
                  task that ended it.";
    html! {
        section #timeline aria-labelledby="timeline-head" {
            h2 #timeline-head { "Timeline" }
            p.aside { (states) }
            div.controls hidden {
                button type="button" data-do="in" { "Zoom in" }
                button type="button" data-do="out" { "Zoom out" }
                button type="button" data-do="left" { "Earlier" }
                button type="button" data-do="right" { "Later" }
                button type="button" data-do="all" { "Whole run" }
                span.aside { "Drag to zoom; arrow keys and + − work too." }
            }
            div.scroll.drawing tabindex="0" role="region" aria-label="Drawing: timeline" {
                (timeline::drawing(picture).element())
            }
            p.readout aria-live="polite" {}
            p.aside {
                "States shorter than " (time(picture.cell_ns)) " are drawn together with their neighbours."
                @if picture.left_out > 0 {
                    " " (things(picture.left_out as u64, "task")) " without a lane: very short ones, and those that matter least."
                }
            }
            (waits(picture))
        }
    }
}

/// The waits on the path, longest first.
fn waits(picture: &Picture) -> Markup {
    let mut waits: Vec<&Wait> = picture.waits.iter().collect();
    waits.sort_by_key(|wait| (wait.filled, std::cmp::Reverse(wait.end - wait.start)));
    if waits.is_empty() {
        return html! {};
    }
    let (first, more) = waits.split_at(waits.len().min(LISTED));
    html! {
        h3 { "The longest waits on the path" }
        p.aside {
            "While a task waits for another one of the command, the path goes on in that one: such a wait has no share of its own."
        }
        (table(picture, first, "waits on the path"))
        @if !more.is_empty() {
            details { summary { (things(more.len() as u64, "more wait")) } (table(picture, more, "more waits on the path")) }
        }
        @if picture.more_waits.0 > 0 {
            p.aside {
                "Not listed: " (things(picture.more_waits.0 as u64, "wait")) ", of " (time(picture.more_waits.1)) " together."
            }
        }
    }
}

fn table(picture: &Picture, waits: &[&Wait], name: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Table: " (name) } {
            table {
                thead { tr {
                    th.n scope="col" { "from" } th.n scope="col" { "time" } th.n scope="col" { "share" }
                    th scope="col" { "task" } th scope="col" { "waited for" } th scope="col" { "what ended it" }
                } }
                tbody {
                    @for wait in waits {
                        tr data-waiter=(wait.tid) data-waker=[wait.waker] {
                            td.n { (time(wait.start)) }
                            td.n { (time(wait.end - wait.start)) }
                            td.n {
                                @if wait.filled { "–" } @else {
                                    (percent((wait.end - wait.start) as f64 / picture.wall_ns.max(1) as f64))
                                }
                            }
                            td { (long(&wait.name)) " " (wait.tid) }
                            td { (long(&wait.what)) }
                            td { (long(&wait.by)) }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn usage(picture: &Picture) -> Markup {
    let drawing = usage::drawing(picture, "usage-drawing", usage::Scales::of(picture));
    html! {
        section #usage aria-labelledby="usage-head" {
            h2 #usage-head { "CPU use over time" }
            p.aside { (drawing.text) "." }
            div.scroll.drawing tabindex="0" role="region" aria-label="Drawing: CPU use over time" { (drawing.element()) }
            p.aside {
                "Each interval is " (time(picture.usage.interval_ns)) " long. Its total is exact; samples tell what the program's \
                 own code did in it. The dashed line is the number of CPUs."
            }
        }
    }
}

pub(super) fn flame(picture: &Picture) -> Markup {
    let drawing = flame::drawing(&picture.on_path, "wall time on the path");
    let mut rows: Vec<&str> =
        picture.on_path.keys.iter().chain(&picture.on_cpu.keys).map(|key| key.0).collect();
    rows.sort_unstable();
    rows.dedup();
    let threads: std::collections::BTreeSet<&str> =
        picture.on_path.keys.iter().chain(&picture.on_cpu.keys).map(|key| key.1.as_str()).collect();
    html! {
        section #flame aria-labelledby="flame-head" {
            h2 #flame-head { "Flame graph" }
            p.aside { "The wall time by call stack, outermost function on top; colours are those of the rows." }
            div.controls hidden {
                label { "Time " select name="data" {
                    option value="on_path" { "wall time on the path" }
                    option value="on_cpu" { "CPU time of all threads" }
                } }
                label { "Row " select name="row" {
                    option value="" { "all" }
                    option value="cpu" { "all that use a CPU" }
                    option value="wait" { "all waits" }
                    @for row in &rows { option value=(row) { (row_name(row, row)) } }
                } }
                label { "Thread " select name="thread" {
                    option value="" { "all" }
                    @for thread in threads.iter().take(200) { option value=(thread) { (thread) } }
                } }
                label { "Search " input type="search" name="search" autocomplete="off"; }
                label { "View " select name="view" {
                    option value="down" { "from the outermost function" }
                    option value="callers" { "callers of the searched function" }
                    option value="callees" { "callees of the searched function" }
                } }
                button type="button" data-do="all" { "Whole graph" }
            }
            div.scroll.drawing tabindex="0" role="region" aria-label="Drawing: flame graph" { (drawing.element()) }
            p.readout aria-live="polite" {}
            @if picture.on_path.left_out > 0 {
                p.aside { (count(picture.on_path.left_out as u64)) " small functions are not drawn: their time is in their callers." }
            }
        }
    }
}
