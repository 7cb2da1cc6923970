//! All workloads of an archive, one in a line.

use super::day;
use super::sparkline::sparkline;
use crate::render::archive::{COMMIT, short};
use crate::render::page::{Ink, Line, Page, Sheet, columns, fitted};
use crate::render::quantity::fine_time;
use deadweight_report::history::{LASTING, Summary};
use deadweight_report::wording::things;

/// Columns of the longest name of a workload, and of a sparkline.
const NAME: usize = 28;
const BARS: usize = 16;

/// The workloads, each with its newest commit, its times and how often they changed.
#[must_use]
pub fn list(workloads: &[Summary], page: Page) -> String {
    let mut sheet = Sheet::new(page);
    let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let names = longest(&mut workloads.iter().map(|w| columns(&w.workload))).min(NAME);
    let runs: Vec<String> = workloads.iter().map(|w| things(w.runs as u64, "run")).collect();
    let width = longest(&mut runs.iter().map(|text| columns(text)));
    for (workload, runs) in workloads.iter().zip(&runs) {
        let mut line = Line::default();
        line.push(Ink::Strong, &fitted(&workload.workload, names)).pad_to(names + 2);
        let mut at = names + 2 + width;
        line.right(at, Ink::Plain, runs);
        at += 2;
        line.pad_to(at).push(Ink::Plain, short(&workload.commit, COMMIT)).pad_to(at + COMMIT);
        line.push(Ink::Faint, &format!("  {}", day(workload.moment)));
        at += COMMIT + 12 + 10;
        line.right(at, Ink::Plain, &fine_time(workload.ns)).push(Ink::Plain, "  ");
        let bars = sheet.width().saturating_sub(at + 2 + 11).clamp(4, BARS);
        line.push(Ink::Place, &sparkline(&workload.each_ns, bars, page.unicode));
        line.pad_to(at + 2 + bars + 1);
        match workload.events {
            0 if workload.comparable < 2 * LASTING => line.push(Ink::Faint, "too few"),
            0 => line.push(Ink::Faint, "no change"),
            n => line.push(Ink::Doubt, &things(n as u64, "change")),
        };
        sheet.line(&line);
    }
    sheet.gap();
    let mut line = Line::default();
    line.push(Ink::Faint, "one of them commit by commit: ");
    sheet.line(line.push(Ink::Command, "deadweight history WORKLOAD"));
    sheet.into_text()
}
