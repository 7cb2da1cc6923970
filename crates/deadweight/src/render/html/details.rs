//! What surrounds the ledger: the runs, hazards, stages, functions, limits, and facts of machine and build.

use super::text::{long, shown};
use crate::render::picture::Picture;
use crate::render::quantity::{count, percent, time};
use crate::render::terminal::{ending, header_parts};
use deadweight_report::report::{LoopReading, Loops, Report, TopFunction};
use maud::{Markup, html};

/// Functions that are listed.
const FUNCTIONS: usize = 25;
/// A turn that took longer, in ns, was not measured.
const LONGEST: f64 = 1e9;

/// The runs and the build, as in the head of the terminal's report.
pub(super) fn runs(report: &Report) -> Markup {
    let parts: Vec<String> = header_parts(report).iter().map(|part| shown(part)).collect();
    html! {
        @if !parts.is_empty() { p.aside { (parts.join(" · ")) } }
        @if let Some(text) = ending(report) { p.hazard { (shown(&text)) } }
    }
}

pub(super) fn hazards(report: &Report) -> Markup {
    html! {
        @if !report.hazards.is_empty() {
            section aria-labelledby="hazards-head" {
                h2 #hazards-head { "What may mislead" }
                @for hazard in &report.hazards {
                    p.hazard { strong { (shown(&hazard.id.replace('-', " "))) } ": " (shown(&hazard.text)) }
                }
            }
        }
    }
}

pub(super) fn stages(report: &Report) -> Markup {
    if report.stages.len() < 2 {
        return html! {};
    }
    let waited = |ns| if ns == 0 { "–".to_owned() } else { time(ns) };
    html! {
        section aria-labelledby="stages-head" {
            h2 #stages-head { "Stages" }
            div.scroll tabindex="0" role="region" aria-label="Table: stages" {
                table {
                    thead { tr {
                        th scope="col" { "process" } th.n scope="col" { "alive" }
                        th.n scope="col" { "on a CPU" } th.n scope="col" { "waited for input" }
                        th scope="col" { "from" } th.n scope="col" { "output was full" }
                    } }
                    tbody {
                        @for stage in &report.stages {
                            tr {
                                th scope="row" { (long(&stage.name)) }
                                td.n { (time(stage.alive_ns)) }
                                td.n { (time(stage.cpu_ns)) }
                                td.n { (waited(stage.input_wait_ns)) }
                                td { (long(&stage.waited_for)) }
                                td.n { (waited(stage.output_wait_ns)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn functions(report: &Report) -> Markup {
    if report.top.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="functions-head" {
            h2 #functions-head { "Functions" }
            p.aside { "CPU time on the path, by samples." }
            div.scroll tabindex="0" role="region" aria-label="Table: functions" {
                table {
                    thead { tr {
                        th.n scope="col" { "time" } th.n scope="col" { "share" }
                        th scope="col" { "function" } th scope="col" { "hottest line" }
                    } }
                    tbody {
                        @for function in report.top.iter().take(FUNCTIONS) {
                            tr {
                                td.n { (time(function.ns)) }
                                td.n { (percent(function.share)) }
                                td { code { (long(&function.function)) } }
                                td { code { (long(&place(function))) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Why hot loops take their time (`--why`).
pub(super) fn loops(loops: Option<&Loops>) -> Markup {
    let Some(loops) = loops else { return html! {} };
    html! {
        section aria-labelledby="loops-head" {
            h2 #loops-head { "Why loops take their time" }
            p.aside { (count(loops.samples)) " samples of own code with registers." }
            @if !loops.cannot.is_empty() { p { (shown(&loops.cannot)) } }
            @for one in &loops.all { (reading(loops, one)) }
        }
    }
}

fn reading(loops: &Loops, one: &LoopReading) -> Markup {
    let share = one.samples as f64 / loops.samples.max(1) as f64;
    let signs = one.signs.iter().map(|sign| format!("{} {}", sign.of, percent(sign.share)));
    let signs: Vec<String> = signs.collect();
    html! {
        h3 { code { (long(&one.function)) } " " (percent(share.clamp(0.0, 1.0))) }
        p {
            code { (long(&at(&one.file, one.line))) } ": " (shown(&one.reason))
            @if !one.class.is_empty() { " (" (shown(&one.class)) ")" } "."
            @if let Some(turn) = one.turn_ns.filter(|turn| *turn < LONGEST) {
                " A turn takes " (format!("{turn:.1}")) " ns."
                @if let Some(least) = one.least_ns { " Its instructions need " (format!("{least:.1}")) " ns." }
            }
            @if !signs.is_empty() { " Signs in its samples: " (shown(&signs.join(", "))) "." }
        }
        @if !one.waits.is_empty() {
            div.scroll tabindex="0" role="region" aria-label="Table: what the samples of a loop wait for" {
                table {
                    thead { tr {
                        th.n scope="col" { "samples" } th scope="col" { "instruction" }
                        th scope="col" { "line" } th scope="col" { "memory" }
                    } }
                    tbody {
                        @for wait in &one.waits {
                            tr {
                                td.n { (percent(wait.share)) }
                                td { code { (long(&wait.instruction)) } }
                                td { code { (long(&at(&wait.file, wait.line))) } }
                                td { (shown(&wait.memory)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn place(function: &TopFunction) -> String {
    match function.file.as_str() {
        "" => function.image.clone(),
        file => at(file, function.line),
    }
}

fn at(file: &str, line: u32) -> String {
    if line == 0 { file.to_owned() } else { format!("{file}:{line}") }
}

/// What was not recorded, and what the reader must know.
pub(super) fn limits(report: &Report) -> Markup {
    let recording = &report.recording;
    if recording.lacks.is_empty() && report.warnings.is_empty() && report.remarks.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="limits-head" {
            h2 #limits-head { "Limits of this recording" }
            @if !recording.lacks.is_empty() {
                p { "Not everything was recorded (" (shown(&recording.why)) "):" }
                ul { @for lack in &recording.lacks { li { (shown(lack)) } } }
            }
            @for warning in &report.warnings { p { (shown(warning)) } }
            @if !report.remarks.is_empty() {
                details {
                    summary { "Details that rarely matter" }
                    @for remark in &report.remarks { p { (shown(remark)) } }
                }
            }
        }
    }
}

pub(super) fn facts(report: &Report, picture: Option<&Picture>) -> Markup {
    let subject = &report.subject;
    let traced = &report.runs.traced;
    let optimised = match subject.optimised {
        Some(true) => "optimised",
        Some(false) => "not optimised",
        None => "not known whether optimised",
    };
    let memory = report.runs.clean.max_rss;
    let rows = [
        ("program", shown(&subject.image)),
        ("process", format!("{} ({})", shown(&subject.name), subject.pid)),
        ("language", shown(&subject.language)),
        ("compiler", shown(&subject.producer)),
        ("build", optimised.to_owned()),
        ("wall time", format!("{} ns", count(report.wall_ns))),
        ("undisturbed", format!("{} ns", count(report.net_ns))),
        ("CPUs", picture.map_or_else(String::new, |picture| picture.cpus.to_string())),
        ("architecture", picture.map_or_else(String::new, |picture| picture.arch.to_owned())),
        ("records", count(traced.records)),
        ("lost records", count(traced.lost)),
        ("samples", count(traced.samples)),
        (
            "largest memory",
            if memory > 0 { format!("{} KiB", count(memory >> 10)) } else { String::new() },
        ),
        ("recorded as", shown(&report.recording.rung)),
        ("deadweight", shown(&report.deadweight)),
    ];
    html! {
        section aria-labelledby="facts-head" {
            h2 #facts-head { "Facts of machine and build" }
            dl.facts {
                @for (name, value) in rows {
                    @if !value.is_empty() { dt { (name) } dd { (long(&value)) } }
                }
            }
        }
    }
}
