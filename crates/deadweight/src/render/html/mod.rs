//! The page: one self-contained HTML file with a report as text, tables and drawings.
//!
//! - In: a report, and what else is known of the run: its pictures, the descriptions of costs.
//! - Out: HTML that asks for nothing else: style, script and data are inside, and its own rule forbids requests.
//! - Must not know: traces, files or the environment.
//!
//! Text is complete without the script, which only adds zoom, search and hover. Foreign text passes [`text`].

mod checks;
pub mod comparison;
mod details;
mod drawings;
mod findings;
pub mod history;
mod ledger;
mod tables;
mod text;
mod verdict;

use super::drawing::STYLE;
use super::picture::Picture;
use super::terminal::command_line;
use deadweight_report::report::Report;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use text::shown;

/// The rule that no request leaves the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// Data longer than this, in bytes, has its long texts cut: a page stays below 2 MB.
const LARGEST_DATA: usize = 600_000;

/// What a page shows beside the report.
#[derive(Copy, Clone)]
pub struct Beside<'a> {
    /// The description of a cost class, as Markdown.
    pub explain: &'a dyn Fn(&str) -> Option<String>,
    /// The drawings' data, if the run's recording is at hand.
    pub picture: Option<&'a Picture>,
}

/// The page of one report.
#[must_use]
pub fn render(report: &Report, beside: Beside<'_>) -> String {
    let command = match command_line(&report.command) {
        empty if empty.is_empty() => format!("process {}", report.subject.pid),
        command => command,
    };
    let title = format!("{} · deadweight", shown(&command));
    let body = html! {
        header {
            p.brand { "deadweight · where the wall time went" }
            h1 { code { (text::long(&command)) } }
            (verdict::sentence(report))
            (details::runs(report))
        }
        main {
            (ledger::section(report))
            (details::hazards(report))
            (findings::section(report))
            (checks::section(report))
            @if let Some(picture) = beside.picture {
                (drawings::of_what(report, picture))
                (drawings::timeline(picture))
                (drawings::usage(picture))
                (drawings::flame(picture))
                (tables::lines(picture))
                (tables::calls(picture))
            }
            (details::stages(report))
            (details::functions(report))
            (details::loops(report.loops.as_ref()))
            (details::limits(report))
            (details::facts(report, beside.picture))
            (findings::explained(report, beside.explain))
        }
        (data("report", report))
        @if let Some(picture) = beside.picture { (data("picture", picture)) }
    };
    document(&title, &body, &LEDGER)
}

/// What differs between kinds of pages.
struct Kind {
    /// Where a reader with a keyboard can go at once: a section, and what it is called.
    skip: [&'static str; 2],
    script: &'static str,
    /// Style beside that of all pages.
    style: &'static str,
}

/// Reports and comparisons.
const LEDGER: Kind =
    Kind { skip: ["#ledger", "To the ledger"], script: include_str!("page.js"), style: "" };

/// A whole document.
fn document(title: &str, body: &Markup, kind: &Kind) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(include_str!("page.css"))) (PreEscaped(STYLE)) (PreEscaped(kind.style)) }
            }
            body {
                a.skip href=(kind.skip[0]) { (kind.skip[1]) }
                (body)
                script { (PreEscaped(kind.script)) }
            }
        }
    };
    page.into_string()
}

/// Data for the script and for other programs, as JSON that no HTML parser ends early.
fn data(id: &str, value: &impl serde::Serialize) -> Markup {
    // These types have no maps with other keys than strings: this cannot fail.
    let json = text::bounded(serde_json::to_string(value).unwrap_or_default(), LARGEST_DATA);
    html! { script type="application/json" id=(id) { (PreEscaped(text::in_script(&json))) } }
}

#[cfg(test)]
mod tests;
