//! Whether the time grew: of the whole program, and of the benchmarks that it printed.

use super::policy::Limits;
use super::{Change, Kind, Measurement, Side, State};
use crate::compare::{Comparison, Ratio, Verdict, judge};
use crate::report::{Report, Site};
use crate::stats::median::median_of;

/// The name of the change of the whole time.
pub(super) const WALL: &str = "wall";
/// The unit of times of benchmarks.
const TIME_UNIT: &str = "ns/op";

/// The changes of times. `layout`: no growth below it counts.
pub(super) fn changes(
    limits: &Limits,
    layout: f64,
    measured: &Measurement,
    comparison: &Comparison,
) -> Vec<Change> {
    let limit = limits.time.max(layout);
    let reason = comparison.reason().map(|row| row.account.clone()).unwrap_or_default();
    let sites = sites_of(&reason, &measured.head.report);
    // The whole time of a benchmark is what it chose to spend.
    if is_benchmark(&measured.head) {
        return benchmarks(measured, limit)
            .map(|change| Change { row: reason.clone(), sites: sites.clone(), ..change })
            .collect();
    }
    let medians = [&comparison.a, &comparison.b].map(|side| side.wall_ns.median as f64);
    let change = change(WALL, medians, &comparison.ratio, comparison.verdict, limit);
    vec![Change { row: reason, sites, ..change }]
}

fn is_benchmark(side: &Side) -> bool {
    side.benchmarks.iter().any(|benchmark| benchmark.unit == TIME_UNIT)
}

/// The time of each benchmark that both versions ran.
fn benchmarks(measured: &Measurement, limit: f64) -> impl Iterator<Item = Change> {
    let timed = measured.base.benchmarks.iter().filter(|of| of.unit == TIME_UNIT);
    timed.filter_map(move |base| {
        let same = |of: &&super::Benchmark| of.name == base.name && of.unit == base.unit;
        let head = measured.head.benchmarks.iter().find(same)?;
        let medians = [&base.values, &head.values].map(|values| median_of(values));
        let paired = base.values.len() == head.values.len();
        let (mut ratio, mut verdict) =
            judge(&[base.values.clone(), head.values.clone()], paired, 1, 1);
        if verdict == Verdict::CannotTell {
            ratio.value = medians[1] / medians[0].max(f64::MIN_POSITIVE);
            verdict = Verdict::NoDifference;
        }
        Some(change(&base.name, medians, &ratio, verdict, limit))
    })
}

fn change(
    name: &str,
    [base, head]: [f64; 2],
    ratio: &Ratio,
    verdict: Verdict,
    limit: f64,
) -> Change {
    let growth = ratio.value - 1.0;
    let state = match verdict {
        Verdict::Slower if growth >= limit => State::Regressed,
        Verdict::Faster if -growth >= limit => State::Improved,
        _ => State::Unchanged,
    };
    Change {
        kind: Kind::Time,
        name: name.to_owned(),
        base,
        head,
        growth,
        interval: [ratio.low - 1.0, ratio.high - 1.0],
        limit,
        state,
        ..Change::default()
    }
}

/// The least growth that a comparison could show: half the width of its interval.
pub(super) fn floor(comparison: &Comparison) -> f64 {
    let Ratio { low, high, .. } = comparison.ratio;
    if low > 0.0 { (high / low).ln() / 2.0 } else { 0.0 }
}

/// Where the cost of an account is, in the judged version.
pub(super) fn sites_of(account: &str, report: &Report) -> Vec<Site> {
    let found = report.findings.iter().find(|finding| finding.class == account);
    if let Some(found) = found.filter(|found| !found.sites.is_empty()) {
        return found.sites.clone();
    }
    if account != "net-work" {
        return Vec::new();
    }
    let top = report.top.iter().take(1).map(|top| Site {
        function: top.function.clone(),
        file: top.file.clone(),
        line: top.line,
        image: top.image.clone(),
        ..Site::default()
    });
    top.collect()
}
