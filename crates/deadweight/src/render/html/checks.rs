//! What was checked, and what came of it. Judges nothing.

use super::text::shown;
use crate::render::quantity::percent;
use deadweight_report::report::{Check, CheckOutcome, Report};
use maud::{Markup, html};

/// A row with less has nothing to show: many costs have no row of their own, and show in others'.
const NOTABLE: f64 = 0.005;

pub(super) fn section(report: &Report) -> Markup {
    if report.checks.is_empty() {
        return html! {};
    }
    let of = |outcome| report.checks.iter().filter(move |check| check.outcome == outcome);
    let counts = [
        (CheckOutcome::Found, "found"),
        (CheckOutcome::RuledOut, "ruled out"),
        (CheckOutcome::Needed, "took time, but no saving can be shown"),
        (CheckOutcome::NotCheckable, "not checkable in this run"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .map(|(outcome, words)| (of(*outcome).count(), words))
        .filter(|(n, _)| *n > 0)
        .map(|(n, words)| format!("{n} {words}"))
        .collect();
    html! {
        section aria-labelledby="checked-head" {
            h2 #checked-head { "What was checked" }
            p { "Of " (report.checks.len()) " kinds of hidden cost: " (parts.join(", ")) "." }
            details {
                summary { "Each of them" }
                ul.checks {
                    @for (outcome, words) in counts {
                        @for check in of(outcome) {
                            li class=(mark(outcome)) {
                                strong { (shown(&check.class)) } ": " (words) (how_much(check))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn how_much(check: &Check) -> String {
    match check.outcome {
        CheckOutcome::NotCheckable if check.why.is_empty() => String::new(),
        CheckOutcome::NotCheckable => format!(": {}", shown(&check.why)),
        CheckOutcome::Found if check.share < NOTABLE => String::new(),
        _ => format!(", {} of the time", percent(check.share)),
    }
}

fn mark(outcome: CheckOutcome) -> &'static str {
    match outcome {
        CheckOutcome::Found => "found",
        CheckOutcome::RuledOut => "out",
        CheckOutcome::Needed => "needed",
        CheckOutcome::NotCheckable => "unchecked",
    }
}
