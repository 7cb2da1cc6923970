//! `deadweight -- CMD`: runs the command once, or as often as `-r` allows, and weighs it.

use super::view::{Reader, Usually};
use crate::cli::{self, Moment, Of, Run, Runs};
use crate::failure::{Failure, exit_code};
use crate::inlining;
use crate::recorder::{Recorder, Whom};
use crate::running::evidence::Evidence;
use crate::running::program;
use crate::running::proof::prove;
use crate::running::repeat::{Ran, Wish, is_interrupted, repeat};
use deadweight_core::runners;
use deadweight_core::{CleanRun, Weighing, weigh};
use deadweight_record::{Join, Request};
use deadweight_report::benchmarks::operation;
use deadweight_report::report::{Operation, Report};
use deadweight_trace::{Exit, Trace};
use std::time::Duration;

/// Why one run has no figures per call, and what helps.
const ONE_RUN: &str = "calls are not counted in the only run, because that would slow it down; -r 1 \
                       adds a run that counts them";

/// The same for a process that was joined.
const NOT_COUNTED: &str = "calls are not counted in a process that is attached to, because that \
                           would slow it down";

pub(crate) fn run(wish: &Run) -> Result<u8, Failure> {
    let reader = Reader::open(&wish.view, Usually::Stderr)?;
    let argv = program::argv(&wish.command);
    let recorder = Recorder::ready()?;
    if let Some(join) = joined(&wish.join) {
        return attach(wish, &recorder, join, reader);
    }
    // What is proved is run again and again.
    let runs = wish.runs.or(wish.prove.then_some(Runs::Auto));
    let of = wish.view.of.as_ref();
    let mut evidence = Evidence::wanted(of.map(ToString::to_string), wish.view.inside.clone());
    let repeating = |runs| Wish {
        argv: argv.clone(),
        runs,
        warmup: wish.warmup,
        ignore: wish.ignore_failure.clone().unwrap_or_default(),
        quiet: wish.view.quiet,
        stand_in: None,
        limit: None,
    };
    let mut ran = match runs {
        None => {
            // Go's compiler is run later, where the user wants it.
            let last = !wish.view.explain_inlining;
            once(&recorder, Request { argv: argv.clone(), ..Request::default() }, last)?
        }
        Some(runs) => {
            repeat(&repeating(runs), &mut |request| recorder.record(request), &mut evidence)?
        }
    };
    let mut exit = ran.exit;
    let input = ran.input.take().filter(|_| wish.prove && !is_interrupted(exit));
    if wish.view.explain_inlining {
        inlining::ask(&mut ran.traces);
    }
    let mut report = weighed(ran, of, wish.view.inside.as_deref())?;
    match (runs, &mut report.inside) {
        (Some(_), _) => evidence.tell(&mut report),
        (None, Some(inside)) => ONE_RUN.clone_into(&mut inside.uncounted),
        (None, None) => {}
    }
    if let (Some(input), Some(runs)) = (input, runs) {
        let interrupted = prove(&mut report, &repeating(runs), input)?;
        exit = interrupted.map_or(exit, |signal| Exit { code: 0, signal: Some(signal) });
    }
    let untold = |failure| Failure::Untold { failure: Box::new(failure), exit };
    reader.give(&report).map_err(untold)?;
    Ok(exit_code(exit))
}

/// The process that is to be joined, if one is.
pub(super) fn joined(wish: &cli::Join) -> Option<Join> {
    let limit = wish.time.map(|Moment(ns)| Duration::from_nanos(ns));
    wish.pid.map(|pid| Join { pid, limit })
}

/// `--pid N`: joins a process and weighs what it does.
fn attach(wish: &Run, recorder: &Recorder, join: Join, reader: Reader<'_>) -> Result<u8, Failure> {
    let whom = Whom::Process(join);
    let trace = match wish.view.explain_inlining {
        true => recorder.take_freely(&whom)?,
        false => recorder.take(&whom)?,
    };
    let mut ran = Ran { traces: vec![trace], ..Ran::default() };
    if wish.view.explain_inlining {
        inlining::ask(&mut ran.traces);
    }
    let mut report = weighed(ran, wish.view.of.as_ref(), wish.view.inside.as_deref())?;
    if let Some(inside) = &mut report.inside {
        NOT_COUNTED.clone_into(&mut inside.uncounted);
    }
    reader.give(&report)?;
    Ok(0)
}

/// The report of a command's runs, with what was odd about them.
pub(super) fn weighed(ran: Ran, of: Option<&Of>, inside: Option<&str>) -> Result<Report, Failure> {
    let mut report = weighed_traces(&ran.traces, &ran.clean, of, inside)?;
    report.hazards.extend(ran.hazards);
    if ran.said.iter().chain(&ran.said_traced).any(|text| operation::is_benchmark(text)) {
        // Times are what it writes.
        report.hazards.retain(|hazard| hazard.id != "output-differs");
    }
    if let Some(inside) = &mut report.inside {
        let undisturbed = per_operation(&inside.function, &ran.said);
        inside.operation = undisturbed.or(per_operation(&inside.function, &ran.said_traced));
    }
    Ok(report)
}

/// What the runs of a benchmark program say of an operation of this function.
fn per_operation(function: &str, said: &[String]) -> Option<Operation> {
    let mut told: Vec<_> =
        said.iter().filter_map(|text| operation::of_function(function, text)).collect();
    told.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    let middle = told.get(told.len() / 2)?;
    Some(Operation { name: middle.name.clone(), ns: middle.ns })
}

/// The report of the process called `of`; if none is named, of what the command built and ran if it is
/// known for that, and else of the command.
pub(super) fn weighed_traces(
    traces: &[Trace],
    clean: &[CleanRun],
    of: Option<&Of>,
    inside: Option<&str>,
) -> Result<Report, Failure> {
    let built = traces.first().filter(|_| of.is_none()).and_then(runners::built);
    let given = of.map(ToString::to_string);
    let of = given.as_deref().or(built.as_ref().map(|built| built.of.as_str()));
    let mut report = weigh(&Weighing { traces, clean, of, inside })?;
    report.warnings.splice(0..0, built.map(|built| built.said));
    Ok(report)
}

fn once(recorder: &Recorder, request: Request, last: bool) -> Result<Ran, Failure> {
    let trace =
        if last { recorder.take(&Whom::Command(&request))? } else { recorder.record(&request)? };
    let exit = trace.meta.exit.unwrap_or_default();
    Ok(Ran { traces: vec![trace], exit, ..Ran::default() })
}
