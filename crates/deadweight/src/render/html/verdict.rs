//! The verdict: one sentence about the whole report. Ranks nothing itself.

use super::text::shown;
use crate::render::quantity::{percent, time};
use crate::render::terminal::saving;
use deadweight_report::account::row_name;
use deadweight_report::report::{CheckOutcome, How, Report};
use maud::{Markup, html};

pub(super) fn sentence(report: &Report) -> Markup {
    let wall = time(report.wall_ns);
    let largest = report.ledger.iter().max_by_key(|row| row.ns);
    let row = largest.map(|row| {
        let name = row_name(&row.account, &row.group);
        (shown(name), percent(row.ns as f64 / report.wall_ns.max(1) as f64))
    });
    html! {
        p.verdict {
            @match report.findings.first() {
                Some(finding) if finding.how == How::Candidate => {
                    "Perhaps " strong { (shown(&finding.title)) } ": removing it "
                    (saving(report, finding)) "."
                }
                Some(finding) => {
                    strong { (shown(&finding.title)) }
                    " is the largest hidden cost: removing it " (saving(report, finding)) "."
                }
                None => {
                    "No hidden cost was found"
                    @if not_checkable(report) > 0 {
                        " (" (not_checkable(report)) " kinds could not be checked)"
                    }
                    "."
                }
            }
            @if let Some((name, share)) = row {
                " Of " (wall) " wall time, " (share) " is in the row " em { (name) } "."
            }
        }
    }
}

fn not_checkable(report: &Report) -> usize {
    report.checks.iter().filter(|check| check.outcome == CheckOutcome::NotCheckable).count()
}
