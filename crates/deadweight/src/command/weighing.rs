//! Runs, recordings and report files turned into reports.
//!
//! Does not run anything and prints nothing.

use super::recording;
use crate::cli::{Of, View};
use crate::failure::Failure;
use crate::running::series::RunResults;
use deadweight_core::runners::{self, Built};
use deadweight_core::{CleanRun, WeighError, Weighing, weigh, weigh_one};
use deadweight_report::benchmarks::encoding;
use deadweight_report::benchmarks::operation;
use deadweight_report::report::{Operation, Report};
use deadweight_trace::Trace;
use std::path::Path;

/// What a report is about.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Asked<'o> {
    /// The process whose wall time is divided.
    pub of: Option<&'o Of>,
    /// The function to which the report is restricted.
    pub inside: Option<&'o str>,
    /// Whether it says why loops take their time.
    pub why: bool,
}

impl<'o> Asked<'o> {
    /// About this process, or the command itself.
    pub(super) fn of(of: Option<&'o Of>) -> Self {
        Self { of, ..Self::default() }
    }

    /// What the options of a report ask for.
    pub(super) fn by(view: &'o View) -> Self {
        Self { of: view.of.as_ref(), inside: view.inside.as_deref(), why: view.why }
    }
}

/// The report of a command's runs, with the hazards of repeating it.
pub(super) fn weighed(ran: RunResults, asked: Asked<'_>) -> Result<Report, Failure> {
    let mut report = weighed_traces(&ran.traces, &ran.clean, asked)?;
    report.hazards.extend(ran.hazards);
    if ran.clean_output.iter().chain(&ran.traced_output).any(|text| operation::is_benchmark(text)) {
        // A benchmark program writes times, which differ.
        report.hazards.retain(|hazard| hazard.id != "output-differs");
    }
    if let Some(inside) = &mut report.inside {
        let clean = per_operation(&inside.function, &ran.clean_output);
        inside.operation = clean.or(per_operation(&inside.function, &ran.traced_output));
    }
    Ok(report)
}

/// The time of an operation of this function, as printed by the runs of a benchmark program.
fn per_operation(function: &str, said: &[String]) -> Option<Operation> {
    let mut printed: Vec<_> =
        said.iter().filter_map(|text| operation::of_function(function, text)).collect();
    printed.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    let middle = printed.get(printed.len() / 2)?;
    Some(Operation { name: middle.name.clone(), ns: middle.ns })
}

/// The report of the process that is asked for. If no name is given: of the program that the command (`go test`,
/// ...) built and ran, else of the command itself.
pub(super) fn weighed_traces(
    traces: &[Trace],
    clean: &[CleanRun],
    Asked { of, inside, why }: Asked<'_>,
) -> Result<Report, Failure> {
    let built = built(traces.first(), of);
    with_subject(built, of, |of| weigh(&Weighing { traces, clean, of, inside, why }))
}

/// The same of one recording, which is not needed any more.
pub(super) fn weighed_trace(
    trace: Trace,
    Asked { of, inside, why }: Asked<'_>,
) -> Result<Report, Failure> {
    let built = built(Some(&trace), of);
    with_subject(built, of, |of| weigh_one(trace, of, inside, why))
}

/// The program that the command built and ran, if no name is given.
fn built(trace: Option<&Trace>, of: Option<&Of>) -> Option<Built> {
    trace.filter(|_| of.is_none()).and_then(runners::built)
}

/// Weighs the process that was named, or the program that was built; the report says the latter.
fn with_subject(
    built: Option<Built>,
    of: Option<&Of>,
    weigh: impl FnOnce(Option<&str>) -> Result<Report, WeighError>,
) -> Result<Report, Failure> {
    let given = of.map(ToString::to_string);
    let of = given.as_deref().or(built.as_ref().map(|built| built.of.as_str()));
    let mut report = weigh(of)?;
    report.warnings.splice(0..0, built.map(|built| built.said));
    Ok(report)
}

/// The name of the process whose wall time is divided, as in [`weighed_traces`]; none for the command itself.
pub(super) fn subject_of(trace: &Trace, of: Option<&Of>) -> Option<String> {
    of.map(ToString::to_string).or_else(|| runners::built(trace).map(|built| built.of))
}

/// The report in a file, or of the recording in it.
pub(super) fn report_of(path: &Path, of: Option<&Of>) -> Result<Report, Failure> {
    report_in(&recording::bytes(path)?, path, of)
}

/// The report in the bytes of a file, or of the recording in them. The bytes decide what they are, not the name.
pub(super) fn report_in(bytes: &[u8], path: &Path, of: Option<&Of>) -> Result<Report, Failure> {
    if let Some(report) = made_before(bytes, path) {
        return report;
    }
    let trace = recording::of(bytes, path)?;
    weighed_traces(std::slice::from_ref(&trace), &[], Asked::of(of))
}

/// The report in the bytes of a file; none if they are something else than JSON.
pub(super) fn made_before(bytes: &[u8], path: &Path) -> Option<Result<Report, Failure>> {
    let is_named_so = path.extension().is_some_and(|e| e == "json");
    if !is_named_so && !is_json(bytes) {
        return None;
    }
    let not = |why: String| Failure::Unknown(format!("{} is no report: {why}", path.display()));
    Some(Report::from_json(&encoding::text(bytes)).map_err(not))
}

/// Neither form of a recording begins with a brace.
fn is_json(bytes: &[u8]) -> bool {
    /// Encodings and blanks need less.
    const BEGINNING: usize = 64;
    encoding::text(&bytes[..bytes.len().min(BEGINNING)]).trim_start().starts_with('{')
}
