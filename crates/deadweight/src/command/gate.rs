//! `gate`: checks conditions on existing reports, for scripts and CI.
//!
//! A report that cannot be read, or a condition that cannot be checked, is an error and never a pass.

use super::weighing::report_of;
use crate::cli::Gate;
use crate::failure::Failure;
use crate::render::page::printable;
use deadweight_report::gate::{Condition, GateError, Reports};
use deadweight_report::report::Report;
use std::path::Path;

/// Exit code when a condition does not hold.
const FAILED: u8 = 1;

pub(crate) fn gate(options: &Gate) -> Result<u8, Failure> {
    let (reports, conditions): (Vec<_>, Vec<_>) =
        options.words.iter().partition(|word| is_report(word));
    if conditions.is_empty() {
        let example = "give one, such as 'run.wall < 3 ms'";
        return Err(Failure::Unknown(format!("there is no condition to check: {example}")));
    }
    let conditions = read_conditions(conditions)?;
    let mut read: Vec<(&str, Report)> = Vec::new();
    for word in reports {
        let Some((name, path)) = word.split_once('=') else { continue };
        read.push((name, report_of(Path::new(path), None)?));
    }
    let named: Reports<'_> = read.iter().map(|(name, report)| (*name, report)).collect();
    let mut failed = false;
    let mut lines = String::new();
    for (text, condition) in &conditions {
        let outcome = condition.evaluate(&named)?;
        failed |= !outcome.holds;
        let word = if outcome.holds { "holds" } else { "FAILS" };
        lines.push_str(&format!("{word}  {text}   ({})\n", printable(&outcome.seen)));
    }
    if !options.quiet {
        match super::print("the outcome", &lines) {
            // A closed pipe does not change the outcome.
            Err(failure) if failure.is_broken_pipe() => {}
            printed => printed?,
        }
    }
    Ok(if failed { FAILED } else { 0 })
}

/// Conditions with their text.
pub(super) fn read_conditions<'t>(
    texts: impl IntoIterator<Item = &'t String>,
) -> Result<Vec<(&'t str, Condition)>, GateError> {
    texts.into_iter().map(|text| Ok((text.as_str(), text.parse()?))).collect()
}

/// Whether a word is `NAME=FILE` and not a condition, which has blanks around its signs.
fn is_report(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, file)| {
        let plain = name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
        !name.is_empty() && plain && (file.ends_with(".json") || file.ends_with(".dwt"))
    })
}
