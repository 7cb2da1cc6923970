//! The report for programs: `--export-json`.
//!
//! Its form is the types of `deadweight_core::report`; nothing is added or left out here.

use deadweight_core::report::Report;

/// The report as indented JSON with a line feed at its end.
///
/// # Errors
/// Never for a report that was made by analysis; see [`serde_json::to_string_pretty`].
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    Ok(text)
}
