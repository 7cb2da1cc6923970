//! What the reader must know before believing the numbers: hazards, and at the end warnings.

use crate::render::page::{Ink, Line, Sheet};
use deadweight_report::report::Report;

/// Reasons why the measurement itself misleads.
pub(super) fn hazards(sheet: &mut Sheet, report: &Report) {
    for hazard in &report.hazards {
        let mut line = Line::indented(2);
        line.push(Ink::Doubt, "! ").push(Ink::Doubt, &hazard.id.replace('-', " "));
        line.push(Ink::Plain, ": ");
        sheet.paragraph(line, 4, Ink::Plain, &hazard.text);
    }
    sheet.gap();
}

/// How much could be recorded, where that is not all.
pub(super) fn recording(sheet: &mut Sheet, report: &Report) {
    let recording = &report.recording;
    if recording.lacks.is_empty() {
        return;
    }
    let mut line = Line::indented(2);
    line.push(Ink::Faint, "seen: ");
    let (why, lacks) = (&recording.why, recording.lacks.join("; "));
    let text = format!("not everything ({why}): {lacks}. `deadweight doctor` says how to see more");
    sheet.paragraph(line, 8, Ink::Faint, &text);
}

/// What was not as it should be in recording or analysis.
pub(super) fn warnings(sheet: &mut Sheet, report: &Report) {
    for warning in &report.warnings {
        let mut line = Line::indented(2);
        line.push(Ink::Faint, "note: ");
        sheet.paragraph(line, 8, Ink::Faint, warning);
    }
}
