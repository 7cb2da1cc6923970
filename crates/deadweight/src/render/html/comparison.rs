//! The page of a comparison: the verdict, both ledgers row by row on one scale, CPU use under each other, what differs in
//! the flame graphs, and each side by itself. Judges nothing: everything here is a value of [`Comparison`].

use super::ledger::bar;
use super::text::{long, shown};
use super::{LEDGER, data, details, document, findings, ledger};
use crate::render::comparison::sentence;
use crate::render::drawing::{difference, usage};
use crate::render::picture::Picture;
use crate::render::quantity::{Scale, percent};
use deadweight_report::account::row_name;
use deadweight_report::compare::{Comparison, RowDifference};
use deadweight_report::report::Report;
use maud::{Markup, html};

/// One side.
#[derive(Copy, Clone)]
pub struct Compared<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its report.
    pub report: &'a Report,
    /// Its drawings' data, if its recording is at hand.
    pub picture: Option<&'a Picture>,
}

/// The page of a comparison of these sides, the first with each other one.
#[must_use]
pub fn render(sides: &[Compared<'_>], comparisons: &[Comparison]) -> String {
    let letters: Vec<char> = ('A'..).take(sides.len()).collect();
    let names: Vec<String> = sides.iter().map(|side| shown(side.name)).collect();
    let body = html! {
        header {
            p.brand { "deadweight · comparison" }
            h1 { @for (letter, side) in letters.iter().zip(sides) {
                span.side { (letter) "  " code { (long(side.name)) } }
            } }
            @for (comparison, letter) in comparisons.iter().zip(&letters[1..]) {
                p.verdict { (shown(&sentence(comparison, *letter))) }
                @for text in comparison.unlike.iter().chain(&comparison.warnings) { p.hazard { (shown(text)) } }
            }
        }
        main {
            (ledgers(sides, &letters))
            @for (comparison, letter) in comparisons.iter().zip(&letters[1..]) { (rows(comparison, *letter)) }
            (cpu(sides, &letters))
            @for (side, letter) in sides.iter().zip(&letters).skip(1) { (flames(sides[0], *side, *letter)) }
            @for (side, letter) in sides.iter().zip(&letters) { (alone(side, *letter)) }
        }
        (data("comparison", &comparisons))
    };
    let title = format!("{} · deadweight", names.join(" and "));
    document(&title, &body, &LEDGER)
}

/// The bars of all ledgers on one scale.
fn ledgers(sides: &[Compared<'_>], letters: &[char]) -> Markup {
    let most = sides.iter().map(|side| side.report.wall_ns).max().unwrap_or(1).max(1) as f64;
    let scale = Scale::for_table(sides.iter().map(|side| side.report.wall_ns).max().unwrap_or(0));
    html! {
        section #ledger aria-labelledby="ledger-head" {
            h2 #ledger-head { "Where the wall time went" }
            @for (side, letter) in sides.iter().zip(letters) {
                @let wall = side.report.wall_ns;
                p.aside { strong { (letter) } " " (scale.digits(scale.steps(wall))) " " (scale.unit()) }
                div style={ "width:" (format!("{:.3}", wall as f64 / most * 100.0)) "%" } {
                    (bar(&side.report.ledger, wall))
                }
            }
        }
    }
}

/// The difference row by row.
fn rows(comparison: &Comparison, letter: char) -> Markup {
    if comparison.rows.is_empty() {
        return html! {};
    }
    let head = format!("rows-{}", letter.to_ascii_lowercase());
    let scale = Scale::for_table(comparison.a.wall_ns.median.max(comparison.b.wall_ns.median));
    let signed = |ns: i64| {
        if scale.steps(ns.unsigned_abs()) == 0 {
            return "0".to_owned();
        }
        let sign = if ns < 0 { "−" } else { "+" };
        format!("{sign}{}", scale.digits(scale.steps(ns.unsigned_abs())))
    };
    let interval = |row: &RowDifference| match (row.is_chance(), row.interval_ns) {
        (true, _) => "may be chance".to_owned(),
        (false, Some([low, high])) => format!("{} to {}", signed(low), signed(high)),
        (false, None) => String::new(),
    };
    let unit = scale.unit();
    html! {
        section aria-labelledby=(head) {
            h2 id=(head) { "What differs between A and " (letter) }
            div.scroll tabindex="0" role="region" aria-label={ "Table: A and " (letter) } {
                table.rows data-difference=(comparison.difference_ns) {
                    thead { tr {
                        th scope="col" { "row" } th.n scope="col" { "A, " (unit) } th.n scope="col" { (letter) ", " (unit) }
                        th.n scope="col" { "difference" } th.n scope="col" { "of it" }
                        th.n scope="col" { "95 % interval" } th scope="col" { "A" } th scope="col" { (letter) }
                    } }
                    tbody { @for row in &comparison.rows {
                        tr data-difference=(row.difference_ns) {
                            th scope="row" {
                                span class={ "key a-" (ledger::class(&row.account)) } {}
                                (shown(row_name(&row.account, &row.group)))
                            }
                            td.n { (scale.digits(scale.steps(row.a_ns))) }
                            td.n { (scale.digits(scale.steps(row.b_ns))) }
                            td.n { (signed(row.difference_ns)) }
                            td.n { @if row.share.abs() >= 0.005 { (percent(row.share).replace('-', "−")) } }
                            td.n { (interval(row)) }
                            td { (long(&row.a_note)) }
                            td { (long(&row.b_note)) }
                        }
                    } }
                    tfoot { tr {
                        th scope="row" { "all" }
                        td.n { (scale.digits(scale.steps(comparison.rows.iter().map(|row| row.a_ns).sum()))) }
                        td.n { (scale.digits(scale.steps(comparison.rows.iter().map(|row| row.b_ns).sum()))) }
                        td.n { (signed(comparison.difference_ns)) }
                        td.n { "100 %" } td {} td {} td {}
                    } }
                }
            }
        }
    }
}

/// CPU use of all sides, under each other on one scale.
fn cpu(sides: &[Compared<'_>], letters: &[char]) -> Markup {
    let pictures = || sides.iter().filter_map(|side| side.picture);
    let scales = pictures().map(usage::Scales::of).reduce(usage::Scales::both);
    let Some(scales) = scales else { return html! {} };
    html! {
        section #usage aria-labelledby="usage-head" {
            h2 #usage-head { "CPU use over time" }
            p.aside { "One traced run of each, on one scale. The dashed line is the CPUs that there were." }
            @for (side, letter) in sides.iter().zip(letters) {
                @if let Some(picture) = side.picture {
                    @let id = format!("usage-{}", letter.to_ascii_lowercase());
                    @let drawing = usage::drawing(picture, &id, scales);
                    p { strong { (letter) } " " (drawing.text) "." }
                    div.scroll.drawing tabindex="0" role="region" aria-label={ "Drawing: CPU use of " (letter) } {
                        (drawing.element())
                    }
                }
            }
        }
    }
}

/// The flame graph of both, coloured by what differs.
fn flames(a: Compared<'_>, b: Compared<'_>, letter: char) -> Markup {
    let (Some(of_a), Some(of_b)) = (a.picture, b.picture) else { return html! {} };
    let id = format!("flame-{}", letter.to_ascii_lowercase());
    let drawing = difference::drawing(&of_a.on_path, &of_b.on_path, &id);
    html! {
        section aria-labelledby={ (id) "-head" } {
            h2 id={ (id) "-head" } { "Flame graph: A and " (letter) }
            p.aside {
                "The width is the time of both together. Red: " (letter) " takes longer there. Blue: A does. Pale: about as long \
                 in both."
            }
            div.scroll.drawing tabindex="0" role="region" aria-label={ "Drawing: flame graph of A and " (letter) } {
                (drawing.element())
            }
        }
    }
}

/// A side by itself.
fn alone(side: &Compared<'_>, letter: char) -> Markup {
    let head = format!("side-{}", letter.to_ascii_lowercase());
    html! {
        section aria-labelledby=(head) {
            h2 id=(head) { (letter) " by itself" }
            (details::runs(side.report))
            @for (index, finding) in side.report.findings.iter().enumerate() {
                (findings::one(side.report, index + 1, finding, Some(letter)))
            }
            @if side.report.findings.is_empty() {
                p { "No hidden cost was found." }
            } @else {
                p.aside { "Findings may overlap: their savings do not add up." }
            }
            details {
                summary { "Ledger of " (letter) }
                (ledger::table(&side.report.ledger, side.report.wall_ns, &format!("wall time of {letter}")))
            }
        }
    }
}
