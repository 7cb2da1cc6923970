//! The report on a terminal: header, stages, ledger, hazards, findings, further tables.
//!
//! - In: a report.
//! - Out: text; each part is one file and one function that writes on a [`Sheet`].
//! - Must not know: how a finding is computed.
//!
//! The numbers in a table add up as shown: they are apportioned, not rounded one by one.

mod checks;
mod findings;
mod header;
mod ledger;
mod loops;
mod remarks;
mod stages;
mod top;

pub(crate) use findings::saving;
pub(crate) use header::{command_line, ending, parts as header_parts};

use super::page::{Page, Sheet};
use deadweight_report::report::Report;

/// What of a report to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The ledger of all tasks' CPU time too.
    pub cpu: bool,
    /// This many functions.
    pub top: usize,
    /// What came of looking for each cost, and details of the recording.
    pub verbose: bool,
    /// The reader's directory: source files under it are named from there. Empty for none.
    pub here: String,
}

/// The report as text for `page`.
#[must_use]
pub fn render(report: &Report, shown: &Shown, page: Page) -> String {
    let mut sheet = Sheet::new(page);
    header::write(&mut sheet, report);
    stages::write(&mut sheet, report);
    ledger::write(&mut sheet, ledger::Table::wall(report));
    if shown.cpu && !report.cpu_ledger.is_empty() {
        ledger::write(&mut sheet, ledger::Table::cpu(report));
    }
    remarks::hazards(&mut sheet, report);
    findings::write(&mut sheet, report, &shown.here);
    findings::withdrawn(&mut sheet, report);
    checks::write(&mut sheet, report, shown.verbose);
    top::write(&mut sheet, report, shown);
    loops::write(&mut sheet, report, &shown.here);
    remarks::recording(&mut sheet, report);
    remarks::warnings(&mut sheet, report);
    if shown.verbose {
        remarks::details(&mut sheet, report);
    }
    sheet.into_text()
}

#[cfg(test)]
mod tests;
