//! One line about the costs that were looked for and not found, or a list of all.

use crate::render::page::{Ink, Line, Sheet};
use crate::render::quantity::percent;
use deadweight_report::report::{Check, CheckOutcome, Report};
use std::collections::BTreeMap;

/// A row with less has nothing to show: many costs have no row of their own, and show in others'.
const NOTABLE: f64 = 0.005;

pub(super) fn write(sheet: &mut Sheet, report: &Report, all: bool) {
    if report.checks.is_empty() {
        return;
    }
    if all {
        list(sheet, &report.checks);
        return;
    }
    let of = |outcome| report.checks.iter().filter(move |check| check.outcome == outcome);
    let mut parts = vec![format!("{} of them found", of(CheckOutcome::Found).count())];
    let ruled_out = of(CheckOutcome::RuledOut).count();
    if let Some(most) = of(CheckOutcome::RuledOut).max_by(|a, b| a.share.total_cmp(&b.share)) {
        parts.push(format!("{ruled_out} ruled out (each at most {})", percent(most.share)));
    }
    let needed: Vec<&Check> = of(CheckOutcome::Needed).collect();
    parts.extend(named("took time, but no saving can be shown", &needed, ""));
    let mut reasons: BTreeMap<&str, Vec<&Check>> = BTreeMap::new();
    for check in of(CheckOutcome::NotCheckable) {
        reasons.entry(&check.why).or_default().push(check);
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, checks)| std::cmp::Reverse(checks.len()));
    if let Some(((why, most), rest)) = reasons.split_first() {
        let rest: Vec<&Check> =
            rest.iter().flat_map(|(_, checks)| checks.iter().copied()).collect();
        parts.extend(named("not checkable", most, why));
        parts.extend(named("more not checkable", &rest, ""));
    }
    let mut line = Line::indented(2);
    line.push(Ink::Faint, "checked: ");
    let text = format!("{} kinds of cost: {}", report.checks.len(), parts.join(", "));
    sheet.paragraph(line, 11, Ink::Faint, &text);
}

/// How many these are, the first of their names, and why.
fn named(words: &str, checks: &[&Check], why: &str) -> Option<String> {
    let names: Vec<&str> = checks.iter().take(3).map(|check| check.class.as_str()).collect();
    let more = if checks.len() > 3 { ", ..." } else { "" };
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    (!names.is_empty())
        .then(|| format!("{} {words} ({}{more}{why})", checks.len(), names.join(", ")))
}

/// A line for each.
fn list(sheet: &mut Sheet, checks: &[Check]) {
    for check in checks {
        let mut line = Line::indented(2);
        line.push(Ink::Faint, "checked: ").push(Ink::Plain, &check.class).pad_to(30);
        let share = percent(check.share);
        let text = match check.outcome {
            CheckOutcome::Found if check.share < NOTABLE => "found".to_owned(),
            CheckOutcome::Found => format!("found, {share} of the time"),
            CheckOutcome::RuledOut => format!("ruled out, {share} of the time"),
            CheckOutcome::Needed => format!("{share} of the time; no saving can be shown"),
            CheckOutcome::NotCheckable if check.share < NOTABLE => {
                format!("not checkable: {}", check.why)
            }
            CheckOutcome::NotCheckable => {
                format!("not checkable, {share} of the time in its row: {}", check.why)
            }
        };
        sheet.paragraph(line, 32, Ink::Faint, &text);
    }
    sheet.gap();
}
