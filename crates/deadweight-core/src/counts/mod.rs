//! The results of a run with counting probes: calls of a function, and allocations by the line that requests
//! them.
//!
//! - In: a trace with hits of probes, and the report of the timed runs.
//! - Out: counts in that report; numbers of events, never a time.
//! - Must not know: where probes are set. `running` in `deadweight` decides it, `deadweight-record` sets them.
//!
//! Such a run comes after the timed ones, and only where repeating is allowed.

mod per_call;
mod sites;
mod tally;
#[cfg(test)]
mod tests;
mod throws;

pub use per_call::{Copies, copies};

use crate::inspect::growth::GROWTH;
use crate::path::Subject;
use crate::timeline::Timeline;
use deadweight_report::report::{Allocations, Basis, Finding, Report, Row};
use deadweight_report::wording::{count, time};
use deadweight_trace::Trace;
pub use deadweight_trace::probe::{ProbeKind, STOPPED};
use deadweight_trace::units::Ns;
use tally::Tally;

/// A run whose calls and allocations were counted.
#[derive(Copy, Clone, Debug)]
pub struct Counted<'a> {
    /// Its recording.
    pub trace: &'a Trace,
    /// As in [`crate::Weighing`].
    pub of: Option<&'a str>,
    /// Whether an allocator was found that could be counted.
    pub allocators: bool,
    /// Whether a copy of the function of `--in` was found that could be counted.
    pub function: bool,
}

/// Adds the counts to the report of the timed runs.
pub fn add_to(report: &mut Report, counted: &Counted<'_>) {
    let trace = counted.trace;
    let timeline = Timeline::build(trace);
    let Ok(subject) = Subject::choose(trace, &timeline, counted.of) else {
        let text = "nothing was counted: the counting run did not have this process";
        return report.warnings.push(text.into());
    };
    let sampled = report.cpu_ledger.iter().filter(|row| row.basis == Basis::Sampled);
    let whole = Ns(sampled.map(|row| row.ns).sum());
    let tally = Tally::of(trace, &timeline, &subject, whole);
    if timeline.lost > 0 {
        let lost = count(timeline.lost);
        let text = format!("{lost} records were lost while calls were counted: counts are low");
        report.warnings.push(text);
    }
    if counted.function
        && let Some(inside) = &mut report.inside
    {
        per_call::add_to(inside, [report.wall_ns, report.cpu_ns], &tally, counted);
    }
    if counted.allocators {
        let found = allocations(&tally);
        for finding in report.findings.iter_mut().filter(|f| asks_for_memory(f)) {
            let cpu = cpu_of(&report.cpu_ledger, finding);
            sites::add_to(finding, &found, cpu);
        }
        report.allocations = Some(found);
    }
    for finding in report.findings.iter_mut().filter(|f| throws(f)) {
        let cpu = cpu_of(&report.cpu_ledger, finding);
        throws::add_to(finding, &tally, cpu);
    }
}

/// The CPU time of all threads in the row of a finding.
fn cpu_of(ledger: &[Row], finding: &Finding) -> Ns {
    let row = ledger.iter().find(|row| row.account == finding.class);
    row.map_or(Ns::ZERO, |row| Ns(row.ns))
}

/// Whether a finding is about how often memory is allocated.
#[must_use]
pub fn asks_for_memory(finding: &Finding) -> bool {
    finding.class == "allocation" || finding.title == GROWTH
}

/// Whether a finding is about how often something is thrown.
#[must_use]
pub fn throws(finding: &Finding) -> bool {
    finding.class == "exceptions"
}

/// All allocations of a run, as far as they were counted.
fn allocations(tally: &Tally<'_>) -> Allocations {
    let all = tally.allocations.all();
    Allocations {
        count: all.count,
        bytes: all.bytes,
        basis: tally.basis(),
        sites: sites::sites(tally),
        remark: counted_until(tally).unwrap_or_default(),
    }
}

/// The note where counting stopped.
fn counted_until(tally: &Tally<'_>) -> Option<String> {
    let stopped = format!("counting stopped after {} of the counting run", time(tally.stopped?));
    Some(match tally.come {
        Some(come) => format!(
            "{stopped}, when {:.0} % of the program's own work was done: the rest is assumed to be the same",
            100.0 * come
        ),
        None => format!("{stopped}: enough was known"),
    })
}
