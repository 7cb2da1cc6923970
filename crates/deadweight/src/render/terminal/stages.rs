//! The stages of a pipeline: for each its life time, CPU time and waits for its neighbours. Finds no costs.

use crate::render::page::{Ink, Line, Sheet, columns, fitted};
use crate::render::quantity::time;
use deadweight_report::report::{Report, Stage};

/// A wait for input above this share of a stage's life time is emphasised.
const MISLEADING: f64 = 0.1;

pub(super) fn write(sheet: &mut Sheet, report: &Report) {
    let stages = &report.stages;
    if stages.len() < 2 {
        return;
    }
    let longest = stages.iter().map(|s| columns(&s.name)).max().unwrap_or(0);
    let name_width = longest.clamp(5, sheet.width() / 4);
    let (alive, cpu) = (2 + name_width + 11, 2 + name_width + 23);
    let input = cpu + 3;
    let output = input + 26;
    let room = sheet.width() >= output + "output full".len();
    let with_output = room && stages.iter().any(|s| s.output_wait_ns > 0);

    let mut head = Line::indented(2);
    head.push(Ink::Faint, "stage").right(alive, Ink::Faint, "alive");
    head.right(cpu, Ink::Faint, "on cpu").pad_to(input).push(Ink::Faint, "waits for input");
    if with_output {
        head.pad_to(output).push(Ink::Faint, "output full");
    }
    sheet.line(&head);
    for stage in stages {
        let mut line = Line::indented(2);
        line.push(Ink::Strong, &fitted(&stage.name, name_width));
        line.right(alive, Ink::Plain, &time(stage.alive_ns));
        line.right(cpu, Ink::Plain, &time(stage.cpu_ns)).pad_to(input);
        line.push(if misleads(stage) { Ink::Cost } else { Ink::Plain }, &input_wait(stage));
        if with_output {
            line.pad_to(output).push(Ink::Plain, &waited(stage.output_wait_ns));
        }
        sheet.line(&line);
    }
    sheet.gap();
}

fn misleads(stage: &Stage) -> bool {
    !stage.waited_for.is_empty() && stage.input_wait_ns as f64 > stage.alive_ns as f64 * MISLEADING
}

fn input_wait(stage: &Stage) -> String {
    if stage.input_wait_ns == 0 || stage.waited_for.is_empty() {
        return waited(stage.input_wait_ns);
    }
    format!("{} for {}", time(stage.input_wait_ns), fitted(&stage.waited_for, 12))
}

fn waited(ns: u64) -> String {
    if ns == 0 { "-".into() } else { time(ns) }
}
