//! Limits of the numbers: hazards above the findings, missing records and warnings at the end.

use crate::render::page::{Ink, Line, Sheet};
use deadweight_report::report::Report;

/// Reasons why the measurement may mislead.
pub(super) fn hazards(sheet: &mut Sheet, report: &Report) {
    for hazard in &report.hazards {
        let mut line = Line::indented(2);
        line.push(Ink::Doubt, "! ").push(Ink::Doubt, &hazard.id.replace('-', " "));
        line.push(Ink::Plain, ": ");
        sheet.paragraph(line, 4, Ink::Plain, &hazard.text);
    }
    sheet.gap();
}

/// What could not be recorded.
pub(super) fn recording(sheet: &mut Sheet, report: &Report) {
    let recording = &report.recording;
    if recording.lacks.is_empty() {
        return;
    }
    let mut line = Line::indented(2);
    line.push(Ink::Faint, "seen: ");
    let (why, lacks) = (&recording.why, recording.lacks.join("; "));
    let text =
        format!("not everything ({why}): {lacks}. `deadweight doctor` shows how to record more");
    sheet.paragraph(line, 8, Ink::Faint, &text);
}

/// Problems of the recording or the analysis.
pub(super) fn warnings(sheet: &mut Sheet, report: &Report) {
    for warning in &report.warnings {
        let mut line = Line::indented(2);
        line.push(Ink::Faint, "note: ");
        sheet.paragraph(line, 8, Ink::Faint, warning);
    }
}

/// What rarely matters of the recording.
pub(super) fn details(sheet: &mut Sheet, report: &Report) {
    for remark in &report.remarks {
        let mut line = Line::indented(2);
        line.push(Ink::Faint, "detail: ");
        sheet.paragraph(line, 10, Ink::Faint, remark);
    }
}
