//! Truths about numbers: calls and allocations of programs that make a known number of each.

use crate::truth::Truth;
use deadweight_report::report::{CountBasis, Inside, Report};

const RUNS: &[&str] = &["-r", "2", "--in"];
const LINE: &str = "the line to name";

impl Truth {
    /// The figures per call under the function that was asked for.
    fn each(self, calls: u64, allocations: f64, bytes: f64) -> Self {
        let says = format!("{calls} calls, each {allocations} allocations of {bytes} bytes");
        self.inside(says, move |inside| {
            let Some(each) = &inside.calls else { return false };
            let close = |figure: Option<f64>, truth: f64| {
                figure.is_some_and(|f| (f - truth).abs() <= 0.001 * truth)
            };
            each.count == calls
                && each.basis == CountBasis::Exact
                && close(each.allocations_per_call, allocations)
                && close(each.bytes_per_call, bytes)
        })
    }

    fn inside(self, says: String, holds: impl Fn(&Inside) -> bool + 'static) -> Self {
        self.expect(says, move |report| report.inside.as_ref().is_some_and(&holds))
    }

    /// So many allocations at a line of this file, of so many bytes at the least; a few of the
    /// runtime's own may be taken for the program's.
    fn allocated(self, file: &'static str, count: u64, least: u64) -> Self {
        let says = format!("{count} allocations of at least {least} bytes at a line of {file}");
        self.expect(says, move |report| {
            let lines = report.allocations.iter().flat_map(|all| &all.sites);
            let mut there = lines.filter(|line| line.file.ends_with(file));
            there.any(|line| line.count.abs_diff(count) <= 20 && line.least == least)
        })
    }
}

fn quiet(report: &Report) -> bool {
    report.warnings.iter().all(|warning| !warning.contains("lost"))
}

#[test]
fn calls_and_allocations_of_c_are_counted_in_all_threads() {
    Truth::of("@calls_in_c")
        .with(&[RUNS, &["parse"]].concat())
        .each(200_000, 2.0, 124.0)
        .allocated("calls_in_c.c", 600_000, 24)
        .expect("nothing is lost".into(), quiet)
        .check();
}

#[test]
fn calls_that_were_inlined_are_said_to_be_uncounted() {
    Truth::of("@calls_in_c")
        .with(&[RUNS, &["step"]].concat())
        .inside("why not".into(), |inside| {
            inside.calls.is_none() && inside.uncounted.contains("inlined")
        })
        .check();
}

#[test]
fn one_run_is_not_repeated_to_count() {
    Truth::of("@calls_in_c")
        .with(&["--in", "parse"])
        .inside("which -r helps".into(), |inside| {
            inside.calls.is_none() && inside.uncounted.contains("-r 1")
        })
        .check();
}

#[test]
fn calls_and_allocations_of_cpp_are_counted() {
    Truth::of("@calls_in_cpp")
        .with(&[RUNS, &["parse"]].concat())
        .each(600_000, 2.0, 1524.0)
        .found_at("allocation", "parse", "calls_in_cpp.cpp", LINE)
        .check();
}

#[test]
fn a_function_that_calls_itself_is_said_to() {
    Truth::of("@calls_in_cpp")
        .with(&[RUNS, &["depth"]].concat())
        .each(300_000, 1.0, 4.0)
        .inside("nine of ten calls are its own".into(), |inside| {
            inside.calls.as_ref().is_some_and(|calls| (0.8..=1.0).contains(&calls.recursive_share))
        })
        .check();
}

#[test]
fn calls_and_allocations_of_rust_are_counted() {
    Truth::of("@calls_in_rust")
        .with(&[RUNS, &["parse"]].concat())
        .each(200_000, 3.0, 324.0)
        .check();
}

#[test]
fn calls_and_allocations_of_go_are_counted() {
    Truth::of("@calls_in_go")
        .with(&[RUNS, &["parse"]].concat())
        .each(200_000, 2.0, 124.0)
        .allocated("calls_in_go.go", 200_000, 100)
        .check();
}

#[test]
fn the_allocation_finding_says_how_often() {
    Truth::of("@string_fields 600")
        .with(&["-r", "2"])
        .first_finding(&["allocation"])
        .expect("how often, of which size, and what each takes".into(), |report| {
            let said = |line: &&String| line.contains("allocations of") && line.contains(" at ");
            report.findings.first().is_some_and(|finding| finding.evidence.iter().any(|l| said(&l)))
        })
        .check();
}
