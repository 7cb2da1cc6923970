//! Results of benchmark programs as runs: one for each benchmark.
//!
//! Its times are clean runs in nanoseconds. All of its figures are counts under their units, with their exact values: a
//! time of a third of a nanosecond is 0 as a clean run.

use deadweight_archive::Kept;
use deadweight_core::CleanRun;
use deadweight_core::weigh::timed;
use deadweight_report::benchmarks::units::DURATIONS;
use deadweight_report::benchmarks::{Measured, Results};
use deadweight_report::report::{MachineInfo, Report};
use deadweight_report::tables::{CountRow, Origin};
use deadweight_trace::units::Ns;

/// Seconds that an operation can take: up to thirty years.
const POSSIBLE: std::ops::Range<f64> = 0.0..1e9;

/// A benchmark's measurements.
struct Benchmark<'r> {
    /// Its package and name.
    name: String,
    measured: Vec<&'r Measured>,
}

/// The runs of a file, and remarks about benchmarks that are left out. `named` is the workload that the user named, and
/// `committed` whether they named the commit.
pub(super) fn runs(
    results: &Results,
    origin: &Origin,
    named: Option<&str>,
    committed: bool,
) -> (Vec<Kept>, Vec<String>) {
    let mut benchmarks: Vec<Benchmark<'_>> = Vec::new();
    for measured in &results.measured {
        let name = match fact(measured, "pkg") {
            Some(package) => format!("{package}.{}", measured.name),
            None => measured.name.clone(),
        };
        match benchmarks.iter_mut().find(|known| known.name == name) {
            Some(known) => known.measured.push(measured),
            None => benchmarks.push(Benchmark { name, measured: vec![measured] }),
        }
    }
    let alone = benchmarks.len() == 1;
    let run = |benchmark: &Benchmark<'_>| {
        let workload = match named {
            Some(named) if alone => named.to_owned(),
            Some(named) => format!("{named}/{}", benchmark.name),
            None => benchmark.name.clone(),
        };
        let mut origin = Origin { workload, kind: results.kind.into(), ..origin.clone() };
        let commit = benchmark.measured.first().and_then(|first| fact(first, "commit"));
        if let Some(commit) = commit.filter(|commit| !committed && origin.commit != **commit) {
            origin = Origin {
                commit: commit.to_owned(),
                commit_time: 0,
                branch: String::new(),
                dirty: false,
                ..origin
            };
        }
        kept(benchmark, &origin)
    };
    let impossible = |benchmark: &Benchmark<'_>| {
        let seconds = times(benchmark).find(|seconds| !POSSIBLE.contains(seconds))?;
        Some(format!("{} is left out: {seconds:.1e} s is no time", benchmark.name))
    };
    let remarks: Vec<String> = benchmarks.iter().filter_map(impossible).collect();
    benchmarks.retain(|benchmark| impossible(benchmark).is_none());
    (benchmarks.iter().map(run).collect(), remarks)
}

/// Its times in seconds.
fn times<'b>(benchmark: &'b Benchmark<'_>) -> impl Iterator<Item = f64> + 'b {
    let values = benchmark.measured.iter().flat_map(|measured| &measured.values);
    values.filter(|(_, unit)| DURATIONS.contains(&unit.as_str())).map(|(value, _)| *value)
}

/// A fact about the run that Go's format gives.
fn fact<'m>(measured: &'m Measured, key: &str) -> Option<&'m str> {
    measured.config.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
}

fn kept(benchmark: &Benchmark<'_>, origin: &Origin) -> Kept {
    let units = units(benchmark);
    let clean: Vec<CleanRun> = times(benchmark)
        .map(|seconds| CleanRun { wall: nanoseconds(seconds), ..CleanRun::default() })
        .collect();
    let first = |key| {
        let given = benchmark.measured.first().and_then(|first| fact(first, key));
        given.unwrap_or_default().to_owned()
    };
    let mut report = timed(vec![benchmark.name.clone()], &clean);
    report.subject.name.clone_from(&benchmark.name);
    report.deadweight = env!("CARGO_PKG_VERSION").into();
    report.machine =
        MachineInfo { arch: first("goarch"), cpu: first("cpu"), ..MachineInfo::default() };
    let mut kept = Kept::new(&report, &with_figures(&report, &units), origin);
    // A count of a report is whole; these need not be.
    kept.tables.counts =
        units.iter().map(|(unit, values)| count(&kept.tables.run.run, unit, values)).collect();
    kept
}

/// Every unit with its values, in order of first appearance.
fn units(benchmark: &Benchmark<'_>) -> Vec<(String, Vec<f64>)> {
    let mut units: Vec<(String, Vec<f64>)> = Vec::new();
    for (value, unit) in benchmark.measured.iter().flat_map(|measured| &measured.values) {
        match units.iter_mut().find(|(known, _)| known == unit) {
            Some((_, values)) => values.push(*value),
            None => units.push((unit.clone(), vec![*value])),
        }
    }
    units
}

fn count(run: &str, unit: &str, values: &[f64]) -> CountRow {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = |at: usize| sorted.get(at).copied().unwrap_or_default();
    CountRow {
        run: run.into(),
        name: unit.into(),
        value: (middle(sorted.len() / 2) + middle(sorted.len().saturating_sub(1) / 2)) / 2.0,
        low: sorted.first().copied().unwrap_or_default(),
        high: sorted.last().copied().unwrap_or_default(),
        exact: true,
    }
}

fn nanoseconds(seconds: f64) -> Ns {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "possible times only"
    )]
    let ns = (seconds * 1e9).round() as u64;
    Ns(ns)
}

/// The report's JSON with all figures of the benchmark beside: nothing of the file is lost.
fn with_figures(report: &Report, units: &[(String, Vec<f64>)]) -> String {
    // Reports, texts and lists of finite numbers have a JSON form.
    let text = serde_json::to_string(report).unwrap_or_default();
    let figures = units.iter().map(|(unit, values)| {
        let [unit, values] = [serde_json::to_string(unit), serde_json::to_string(values)]
            .map(Result::unwrap_or_default);
        format!("{unit}:{values}")
    });
    let figures = figures.collect::<Vec<_>>().join(",");
    format!("{},\"benchmark\":{{{figures}}}}}", text.strip_suffix('}').unwrap_or("{"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_report::benchmarks::go;
    use deadweight_report::report::Report;

    #[test]
    fn each_benchmark_is_a_run_with_all_of_its_figures() {
        let text = "goarch: amd64\npkg: a/b\nBenchmarkX-2 10 1.4 ns/op 3 B/op\nBenchmarkX-2 10 1.8 ns/op 4 B/op\n\
                    BenchmarkX-2 10 9.5 ns/op 5 B/op\npkg: c\ncommit: abc\nBenchmarkX-2 10 2500 ns/op\n";
        let found = go::read(text).unwrap();
        let origin = Origin { commit: "def".into(), dirty: true, ..Origin::default() };
        let (kept, _) = runs(&found, &origin, None, false);
        let [one, two] = &kept[..] else { panic!("{kept:?}") };
        assert_eq!(one.tables.run.workload, "a/b.X-2");
        assert_eq!((one.tables.run.kind.as_str(), one.tables.run.arch.as_str()), ("go", "amd64"));
        assert_eq!(one.tables.run.clean_each_ns, [1, 2, 10]);
        let counts = |kept: &Kept| {
            let counts = kept.tables.counts.iter();
            counts.map(|c| (c.name.clone(), c.value, c.low, c.high)).collect::<Vec<_>>()
        };
        assert_eq!(counts(one)[1], ("B/op".into(), 4.0, 3.0, 5.0));
        assert!((counts(one)[0].1 - 1.8e-9).abs() < 1e-15);
        assert_eq!((two.tables.run.commit.as_str(), two.tables.run.dirty), ("abc", false));
        assert_eq!((one.tables.run.commit.as_str(), one.tables.run.clean_ns), ("def", 2));
        let json: Report = serde_json::from_slice(&two.report_json).unwrap();
        assert_eq!(json.runs.clean.each_ns, [2500]);
        let (named, _) = runs(&found, &origin, Some("w"), true);
        assert_eq!(named[1].tables.run.workload, "w/c.X-2");
        assert_eq!(named[1].tables.run.commit, "def");
    }

    #[test]
    fn a_time_that_cannot_be_costs_its_benchmark_only() {
        let found =
            go::read("BenchmarkA 1 -5 ns/op\nBenchmarkB 1 1e300 ns/op\nBenchmarkC 1 0 ns/op\n");
        let (kept, remarks) = runs(&found.unwrap(), &Origin::default(), None, false);
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].tables.run.workload, "C");
        assert_eq!(
            remarks,
            ["A is left out: -5.0e-9 s is no time", "B is left out: 1.0e291 s is no time"]
        );
    }
}
