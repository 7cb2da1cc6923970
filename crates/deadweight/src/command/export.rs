//! `export FORMAT F`: a recording as a file that other tools open. Formats are made by `deadweight-export`.

use super::destination::Destination;
use super::recording;
use super::report::{confined, reading};
use super::weighing::{Asked, subject_of, weighed_traces};
use crate::cli::{Export, Format};
use crate::debuginfod::Debuginfod;
use crate::failure::Failure;
use deadweight_core::{OneRun, one_run};
use deadweight_export::{
    action_benchmark, firefox, folded, ledger, perfetto, pprof, sarif, speedscope,
};
use deadweight_report::report::Report;
use deadweight_trace::Trace;
use std::io::{self, IsTerminal};

pub(crate) fn export(options: &Export) -> Result<u8, Failure> {
    let to_terminal = options.output.as_os_str() == "-" && io::stdout().is_terminal();
    if to_terminal && matches!(options.format, Format::Pprof | Format::Perfetto) {
        let why = "this format is not text: name a file with -o";
        return Err(Failure::Unknown(why.into()));
    }
    let bytes = recording::bytes(&options.file)?;
    let mut debuginfod = Debuginfod::new(options.debuginfod.no_debuginfod, false);
    debuginfod.start();
    let what = reading(&options.file, bytes.len());
    let made = confined(&what, false, || {
        let mut trace = recording::of(&bytes, &options.file)?;
        debuginfod.complete(std::slice::from_mut(&mut trace));
        made(&trace, options)
    })?;
    // Only now, so that an unreadable recording leaves no file.
    let destination = Destination::open("the export", &options.output)?;
    deadweight_record::confine();
    destination.write_bytes(&made)?;
    Ok(0)
}

/// The file's content.
fn made(trace: &Trace, options: &Export) -> Result<Vec<u8>, Failure> {
    let asked = Asked::of(options.of.as_ref());
    let report = || weighed_traces(std::slice::from_ref(trace), &[], asked);
    match options.format {
        Format::Folded => detailed(trace, options, |run| Ok(folded::folded(run).into_bytes())),
        Format::Speedscope => {
            detailed(trace, options, |run| Ok(speedscope::speedscope(run).into_bytes()))
        }
        Format::Pprof => detailed(trace, options, pprof::pprof),
        Format::Firefox => detailed(trace, options, |run| Ok(firefox::firefox(run)?.into_bytes())),
        Format::Perfetto => detailed(trace, options, |run| Ok(perfetto::perfetto(run))),
        Format::Sarif => of_report(&report()?, |report| Ok(sarif::sarif(report)?)),
        Format::GithubActionBenchmark => {
            of_report(&report()?, |report| Ok(action_benchmark::action_benchmark(report)))
        }
        Format::Csv => of_report(&report()?, |report| Ok(ledger::csv(report))),
        Format::Markdown => of_report(&report()?, |report| Ok(ledger::markdown(report))),
    }
}

/// What a format makes of the run.
fn detailed(
    trace: &Trace,
    options: &Export,
    format: impl FnOnce(&OneRun<'_, '_>) -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>, Failure> {
    let of = subject_of(trace, options.of.as_ref());
    one_run(trace, of.as_deref(), format)?.map_err(unformatted)
}

/// What a format makes of the report.
fn of_report(
    report: &Report,
    format: impl FnOnce(&Report) -> io::Result<String>,
) -> Result<Vec<u8>, Failure> {
    format(report).map(String::into_bytes).map_err(unformatted)
}

fn unformatted(source: io::Error) -> Failure {
    Failure::Write { what: "the export", to: "its format".into(), source }
}
