//! Findings: the cost, the saving as a bar, the places, the evidence and the advice; descriptions of their classes below.

use super::text::{brief, long, shown};
use crate::render::quantity::{count, percent, time};
use crate::render::terminal::saving;
use deadweight_report::report::{CheckOutcome, Finding, How, Report, Site};
use maud::{Markup, html};

/// Places of one finding that are shown.
const SITES: usize = 5;

pub(super) fn section(report: &Report) -> Markup {
    html! {
        section #findings aria-labelledby="findings-head" {
            h2 #findings-head { "Hidden costs" }
            @if report.findings.is_empty() {
                @let unchecked = report.checks.iter().filter(|check| check.outcome == CheckOutcome::NotCheckable).count();
                p {
                    "None was found"
                    @if unchecked > 0 { " among the " (report.checks.len() - unchecked) " kinds that this run can show" }
                    "."
                }
            } @else {
                p.aside { "A saving is a prediction for the whole run. Findings may overlap; the rows above never do." }
            }
            @for (index, finding) in report.findings.iter().enumerate() {
                (one(report, index + 1, finding, None))
            }
            @for finding in &report.withdrawn {
                article.finding.withdrawn {
                    h3 { "Withdrawn: " (shown(&finding.title)) }
                    @for proof in &finding.proofs { p { (shown(&proof.text)) } }
                }
            }
        }
    }
}

/// One finding; of a comparison, of this `side`. Else its class is explained in the same page.
pub(super) fn one(report: &Report, number: usize, finding: &Finding, side: Option<char>) -> Markup {
    let of = side.map_or(String::new(), |letter| format!(" of {letter}"));
    html! {
        article.finding {
            h3 { span.number { (number) } " " (shown(&finding.title)) }
            p.saving { (saving(report, finding)) " " span.how { (how(finding.how)) } }
            (bar(finding))
            p { (shown(&finding.text)) }
            @if !finding.sites.is_empty() { (places(finding)) }
            @for (at, line) in (1..).zip(&finding.evidence) {
                (evidence(line, &format!("Listing {at} of finding {number}{of}")))
            }
            @if !finding.remedy.is_empty() { p.do { strong { "Do: " } (shown(&finding.remedy)) } }
            @if side.is_none() {
                p.more { a href={ "#explain-" (super::ledger::class(&finding.class)) } { "What " (shown(&finding.class)) " means" } }
            } @else {
                p.more { "more: deadweight explain " (shown(&finding.class)) }
            }
        }
    }
}

fn how(how: How) -> &'static str {
    match how {
        How::Exact => "Both ends of this time are in the recording.",
        How::Estimate => "It is predicted from this run.",
        How::Candidate => "A possible cause: --prove would try the program without it.",
        How::Measured => "Measured: the program was run without it.",
    }
}

/// The predicted saving as a part of the whole, with its range.
fn bar(finding: &Finding) -> Markup {
    let part = |share: f64| share.clamp(0.0, 1.0) * 100.0;
    let (low, high) = (part(finding.low), part(finding.high).max(part(finding.saving_share)));
    let words = format!("saving between {low:.0} and {high:.0} percent of the run");
    html! {
        div.save role="img" aria-label=(words) {
            span.least style={ "width:" (format!("{low:.2}")) "%" } {}
            span.range style={ "width:" (format!("{:.2}", (high - low).max(0.0))) "%" } {}
        }
    }
}

fn places(finding: &Finding) -> Markup {
    html! {
        ul.places {
            @for site in finding.sites.iter().take(SITES) {
                li {
                    code.place { (long(&place(site))) }
                    " " span.amount { (amount(finding, site)) }
                    @if !site.source.trim().is_empty() { pre.line { (shown(site.source.trim())) } }
                    @if !site.chain.is_empty() {
                        details {
                            summary { "called from " (brief(&site.chain[0])) }
                            ol.chain { @for caller in &site.chain { li { (brief(caller)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn place(site: &Site) -> String {
    match (site.file.as_str(), site.line) {
        ("", _) => {
            let image = site.image.rsplit('/').next().unwrap_or_default();
            if image.is_empty() {
                site.function.clone()
            } else {
                format!("{} in {image}", site.function)
            }
        }
        (file, 0) => format!("{file} · {}", site.function),
        (file, line) => format!("{file}:{line} · {}", site.function),
    }
}

fn amount(finding: &Finding, site: &Site) -> String {
    let ns = finding.time_at(site);
    let share = percent(site.share);
    match site.count {
        0 | 1 => format!("{} ({share} of it)", time(ns)),
        n => format!("{} times, {} each ({share} of it)", count(n), time(ns / n)),
    }
}

/// A sentence, and the code below it with its columns kept, which has this `name`.
fn evidence(text: &str, name: &str) -> Markup {
    let (said, code) = text.split_once('\n').unwrap_or((text, ""));
    html! {
        p.evidence { (shown(said)) }
        @if !code.is_empty() {
            pre tabindex="0" role="region" aria-label=(name) {
                @for line in code.lines() { (shown(line)) "\n" }
            }
        }
    }
}

/// The descriptions of the classes that were found.
pub(super) fn explained(report: &Report, explain: &dyn Fn(&str) -> Option<String>) -> Markup {
    let mut classes: Vec<&str> = report.findings.iter().map(|f| f.class.as_str()).collect();
    classes.sort_unstable();
    classes.dedup();
    html! {
        @if !classes.is_empty() {
            section aria-labelledby="explain-head" {
                h2 #explain-head { "What the findings mean" }
                @for class in classes {
                    @if let Some(text) = explain(class) {
                        details id={ "explain-" (super::ledger::class(class)) } {
                            summary { (shown(class)) }
                            (markdown(&text))
                        }
                    }
                }
            }
        }
    }
}

/// The Markdown that descriptions use: headings, paragraphs, lists and code.
fn markdown(text: &str) -> Markup {
    let mut blocks: Vec<Markup> = Vec::new();
    let (mut open, mut item, mut code) = (String::new(), false, None::<String>);
    let close = |open: &mut String, item: bool, blocks: &mut Vec<Markup>| {
        let said = std::mem::take(open).replace('`', "");
        match (said.trim().is_empty(), item) {
            (true, _) => {}
            (false, true) => blocks.push(html! { p.item { "• " (said.trim()) } }),
            (false, false) => blocks.push(html! { p { (said.trim()) } }),
        }
    };
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            close(&mut open, item, &mut blocks);
            match code.take() {
                Some(lines) => blocks.push(html! { pre { (lines) } }),
                None => code = Some(String::new()),
            }
        } else if let Some(lines) = &mut code {
            lines.push_str(line);
            lines.push('\n');
        } else if line.starts_with('#') {
            close(&mut open, item, &mut blocks);
            item = false;
            blocks.push(html! { h3 { (line.trim_start_matches('#').trim()) } });
        } else if let Some(said) = line.trim_start().strip_prefix("- ") {
            close(&mut open, item, &mut blocks);
            (open, item) = (said.to_owned(), true);
        } else if line.trim().is_empty() {
            close(&mut open, item, &mut blocks);
            item = false;
        } else {
            open.push(' ');
            open.push_str(line);
        }
    }
    close(&mut open, item, &mut blocks);
    html! { @for block in blocks { (block) } }
}
