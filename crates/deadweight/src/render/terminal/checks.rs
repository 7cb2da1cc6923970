//! One line about the costs that were looked for and not found, or a list of all.

use crate::render::page::{Ink, Line, Sheet};
use crate::render::quantity::percent;
use deadweight_report::report::{Check, CheckOutcome, Report};

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
    for (outcome, words) in [
        (CheckOutcome::Needed, "took time, but no saving can be shown"),
        (CheckOutcome::NotCheckable, "not checkable"),
    ] {
        let names: Vec<&str> = of(outcome).map(|check| check.class.as_str()).collect();
        if !names.is_empty() {
            let why = of(outcome).next().map_or("", |check| &check.why);
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let shown = names.iter().take(3).copied().collect::<Vec<_>>().join(", ");
            let more = if names.len() > 3 { ", ..." } else { "" };
            parts.push(format!("{} {words} ({shown}{more}{why})", names.len()));
        }
    }
    let mut line = Line::indented(2);
    line.push(Ink::Faint, "checked: ");
    let text = format!("{} kinds of cost: {}", report.checks.len(), parts.join(", "));
    sheet.paragraph(line, 11, Ink::Faint, &text);
}

/// A line for each.
fn list(sheet: &mut Sheet, checks: &[Check]) {
    for check in checks {
        let mut line = Line::indented(2);
        line.push(Ink::Faint, "checked: ").push(Ink::Plain, &check.class).pad_to(30);
        let share = percent(check.share);
        let text = match check.outcome {
            CheckOutcome::Found => format!("found, {share} of the time"),
            CheckOutcome::RuledOut => format!("ruled out, {share} of the time"),
            CheckOutcome::Needed => format!("{share} of the time; no saving can be shown"),
            CheckOutcome::NotCheckable => format!("not checkable: {}", check.why),
        };
        sheet.paragraph(line, 32, Ink::Faint, &text);
    }
    sheet.gap();
}
