//! One measurement of both versions: alternating runs, traced runs, runs that count allocations.

use super::wanted::Wanted;
use crate::cli::{Ci, Of};
use crate::command::weighing::{Asked, weighed};
use crate::failure::Failure;
use crate::recorder::Recorder;
use crate::running::counting_run::CountingRun;
use crate::running::interleave::{InterleaveOptions, SideRuns, TraceWhen, interleave};
use crate::running::series::{RunChanges, RunOptions};
use deadweight_record::RecordingSeries;
use deadweight_report::benchmarks::{go, operation, units};
use deadweight_report::regressions::{Benchmark, Measurement, Side};
use deadweight_report::report::{Allocations, CountBasis, Report};
use deadweight_report::stats::median::median_of;
use std::collections::BTreeMap;

/// Traced runs of each: enough to test the rows.
const TRACED: u64 = 8;
/// Runs of each that count allocations: two show whether the count is steady.
const COUNTING: u32 = 2;

pub(super) fn measure(
    options: &Ci,
    wanted: &Wanted,
    recorder: &Recorder,
) -> Result<Measurement, Failure> {
    let run_options = |argv: &Vec<std::ffi::OsString>| RunOptions {
        argv: argv.clone(),
        runs: options.runs,
        warmup: options.warmup,
        ignore: options.ignore_failure.clone().unwrap_or_default(),
        quiet: options.quiet,
        changes: RunChanges::default(),
    };
    let commands = [
        (run_options(&wanted.base), wanted.hooks.clone()),
        (run_options(&wanted.head), wanted.hooks.clone()),
    ];
    let how = InterleaveOptions {
        trace_when: TraceWhen::Always,
        // Two commands, and as much again for traced and counting runs.
        time: Some(options.budget.0 / 4),
        traced: Some(TRACED),
        counting: COUNTING,
        ..InterleaveOptions::default()
    };
    let mut series = RecordingSeries::default();
    let mut ran = interleave(&commands, &how, &mut |request| match request.counts.is_empty() {
        true => recorder.record_in_series(&mut series, request),
        false => recorder.record(request),
    })
    .map_err(Failure::of_comparison)?;
    let of = wanted.of.as_deref().map(str::parse::<Of>).transpose().map_err(Failure::Unknown)?;
    let head = ran.pop().map(|runs| side(runs, of.as_ref())).transpose()?.unwrap_or_default();
    let base = ran.pop().map(|runs| side(runs, of.as_ref())).transpose()?.unwrap_or_default();
    Ok(Measurement { base, head })
}

fn side(runs: SideRuns, of: Option<&Of>) -> Result<Side, Failure> {
    let benchmarks = benchmarks(&runs.ran.clean_output);
    let operations = operations(&runs.ran.clean_output);
    let cpu = runs.ran.clean.iter().map(|run| (run.user + run.system).0 as f64).collect();
    let mut report = weighed(runs.ran, Asked::of(of))?;
    let counted: Vec<Allocations> = runs.counted.iter().filter_map(allocations).collect();
    let exact = counted.iter().filter(|of| of.basis == CountBasis::Exact);
    let allocations = exact.map(|of| [of.count, of.bytes]).collect();
    report.allocations = counted.into_iter().next();
    Ok(Side { report, cpu, allocations, benchmarks, operations })
}

/// What a run that counted allocations found.
fn allocations(run: &CountingRun) -> Option<Allocations> {
    let mut report = Report::default();
    run.add_to_report(&mut report);
    report.allocations
}

/// The benchmarks that every run printed, each with its value in each run.
fn benchmarks(outputs: &[String]) -> Vec<Benchmark> {
    let mut values: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for text in outputs {
        let mut of_run: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for (name, unit, value) in printed(text) {
            of_run.entry((name, unit)).or_default().push(value);
        }
        for (key, of_run) in of_run {
            values.entry(key).or_default().push(median_of(&of_run));
        }
    }
    let complete = values.into_iter().filter(|(_, values)| values.len() == outputs.len());
    complete.map(|((name, unit), values)| Benchmark { name, unit, values }).collect()
}

/// The numbers of operations that Go's benchmarks made, if all runs made the same (`-benchtime=1000x`).
fn operations(outputs: &[String]) -> Option<Vec<u64>> {
    let of_run = |text: &String| {
        let lines = text.lines().filter(|line| line.starts_with("Benchmark"));
        lines.filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect::<Vec<u64>>()
    };
    let first = of_run(outputs.first()?);
    let same = !first.is_empty() && outputs.iter().all(|text| of_run(text) == first);
    same.then_some(first)
}

/// Name, unit and value of each result in a program's output. Left out: units of which less is not surely better.
fn printed(text: &str) -> Vec<(String, String, f64)> {
    let go = go::read(text).unwrap_or_default();
    if go.measured.is_empty() {
        let all = operation::all(text).into_iter();
        return all.map(|one| (one.name, "ns/op".to_owned(), one.ns)).collect();
    }
    let properties = |unit: &str| go.units.get(unit).copied().unwrap_or_default();
    let values = go.measured.iter().flat_map(|one| {
        let judged = one.values.iter().filter(|(_, unit)| {
            units::better(unit, properties(unit)) == Some(units::Better::Lower)
        });
        judged.map(|(value, unit)| match unit.as_str() {
            "sec/op" => (one.name.clone(), "ns/op".to_owned(), value * 1e9),
            unit => (one.name.clone(), unit.to_owned(), *value),
        })
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_every_run_printed_are_collected() {
        let run = |ns: u32| {
            format!("goos: linux\nBenchmarkJoin-2  1400  {ns} ns/op  64 B/op  3 allocs/op\nPASS\n")
        };
        let found = benchmarks(&[run(400), run(410)]);
        let of =
            |unit: &str| found.iter().find(|one| one.unit == unit).map(|one| one.values.clone());
        let times = of("ns/op").unwrap();
        assert!((times[0] - 400.0).abs() < 1e-6 && (times[1] - 410.0).abs() < 1e-6, "{found:?}");
        assert_eq!(of("allocs/op"), Some(vec![3.0, 3.0]));
        assert!(benchmarks(&[run(400), String::new()]).is_empty());
        assert_eq!(operations(&[run(400), run(410)]), Some(vec![1400]));
        assert_eq!(operations(&[run(400), run(410).replace("1400", "1300")]), None);
    }

    #[test]
    fn a_unit_of_its_own_is_judged_if_it_says_that_less_is_better() {
        let units = |facts: &str| {
            let text = format!("{facts}BenchmarkParse 1 5 ns/op 3 misses/op 8 hits/op\n");
            benchmarks(&[text]).into_iter().map(|one| one.unit).collect::<Vec<_>>()
        };
        assert_eq!(units(""), ["ns/op"]);
        assert_eq!(units("Unit misses/op better=lower assume=exact\n"), ["misses/op", "ns/op"]);
        assert_eq!(units("Unit ns/op better=higher\nUnit hits/op better=higher\n"), [""; 0]);
    }
}
