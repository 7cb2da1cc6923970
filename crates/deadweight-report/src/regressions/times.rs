//! Whether the time grew: wall and CPU time of the whole program, or of the benchmarks that it printed.
//!
//! On a busy machine the CPU time is the more certain one: it has no waits for a CPU.

use super::policy::Limits;
use super::{Change, Kind, Measurement, Side, State};
use crate::compare::{Comparison, Ratio, Verdict, judge};
use crate::report::{Report, Row, Site};
use crate::stats::median::median_of;
use std::collections::BTreeMap;

/// The names of the changes of the whole program.
pub(super) const WALL: &str = "wall";
pub(super) const CPU: &str = "cpu";
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
    let by_wall = comparison.reason().map(|row| row.account.clone());
    let by_cpu = moved_row(&measured.base.report.cpu_ledger, &measured.head.report.cpu_ledger);
    let reason = by_wall.or_else(|| by_cpu.clone()).unwrap_or_default();
    let placed = |change: Change, row: String| Change {
        sites: sites_of(&row, &measured.head.report),
        row,
        ..change
    };
    let mut found: Vec<Change> =
        benchmarks(measured, limit).map(|change| placed(change, reason.clone())).collect();
    // The whole time of a benchmark is what it chose to spend, unless the number of operations is fixed.
    let fixed =
        measured.base.operations.is_some() && measured.base.operations == measured.head.operations;
    if is_benchmark(&measured.head) && !fixed {
        return found;
    }
    let medians = [&comparison.a, &comparison.b].map(|side| side.wall_ns.median as f64);
    let wall = change(WALL, medians, &comparison.ratio, comparison.verdict, limit);
    let cpu = limits.cpu.and_then(|limit| cpu(measured, limit.max(layout)));
    let cpu = cpu.map(|change| placed(change, by_cpu.unwrap_or_default()));
    found.push(placed(wall, reason));
    found.extend(cpu);
    found
}

/// The change of the CPU time; none if some run has none.
fn cpu(measured: &Measurement, limit: f64) -> Option<Change> {
    let [base, head] = [&measured.base.cpu, &measured.head.cpu];
    if base.is_empty() || base.len() != head.len() || base.iter().chain(head).any(|ns| *ns < 1.0) {
        return None;
    }
    let (ratio, verdict) = judge(&[base.clone(), head.clone()], true, 1, 1);
    Some(change(CPU, [median_of(base), median_of(head)], &ratio, verdict, limit))
}

/// The account that changed most in the direction of all of them. The recorder's own cost is none of the program's.
fn moved_row(base: &[Row], head: &[Row]) -> Option<String> {
    let mut moved: BTreeMap<&str, i128> = BTreeMap::new();
    for (rows, sign) in [(base, -1), (head, 1)] {
        for row in rows.iter().filter(|row| row.account != "observer") {
            *moved.entry(&row.account).or_default() += sign * i128::from(row.ns);
        }
    }
    let direction = if moved.values().sum::<i128>() < 0 { -1 } else { 1 };
    let (account, most) = moved.into_iter().max_by_key(|(_, more)| direction * more)?;
    (direction * most > 0).then(|| account.to_owned())
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

/// The benchmarks that only the base printed results of.
pub(super) fn missing(measured: &Measurement) -> Vec<String> {
    let head = |name: &str| measured.head.benchmarks.iter().any(|of| of.name == name);
    let timed = measured.base.benchmarks.iter().filter(|of| of.unit == TIME_UNIT);
    timed.filter(|of| !head(&of.name)).map(|of| of.name.clone()).collect()
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

/// Half the width of the narrowest interval of a time.
pub(super) fn precision(changes: &[Change]) -> f64 {
    let times = changes.iter().filter(|change| change.kind == Kind::Time);
    let half = |change: &Change| {
        let [low, high] = change.interval.map(|end| 1.0 + end);
        if low > 0.0 { (high / low).ln() / 2.0 } else { 0.0 }
    };
    times.map(half).fold(f64::INFINITY, f64::min)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_is_the_one_that_moved_with_the_whole() {
        let rows = |all: &[(&str, u64)]| -> Vec<Row> {
            let row = |(account, ns): &(&str, u64)| Row {
                account: (*account).into(),
                ns: *ns,
                ..Row::default()
            };
            all.iter().map(row).collect()
        };
        let slow = rows(&[("net-work", 50), ("allocation", 30), ("exit", 1), ("observer", 9)]);
        let fast = rows(&[("net-work", 48), ("exit", 2), ("observer", 1)]);
        assert_eq!(moved_row(&slow, &fast).as_deref(), Some("allocation"));
        assert_eq!(moved_row(&fast, &slow).as_deref(), Some("allocation"));
        assert_eq!(moved_row(&slow, &slow), None);
    }
}
