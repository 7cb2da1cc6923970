//! `deadweight -- CMD`: runs the command once, or as often as `-r` says, and prints its report.
//!
//! The order of repeated runs is that of `running`.

use super::archive::Keeper;
use super::pictures::pictured;
use super::view::{DefaultStream, ReportOutputs};
use super::weighing::{Asked, weighed};
use crate::cli::{self, Run, Runs};
use crate::debuginfod::Debuginfod;
use crate::failure::{Failure, exit_code};
use crate::inlining;
use crate::recorder::{Recorder, Target};
use crate::render::explanation;
use crate::running::counting_run::CountingRun;
use crate::running::program;
use crate::running::proof::{self, ProofOptions, means, prove};
use crate::running::repeat::repeat;
use crate::running::series::{RunChanges, RunOptions, RunResults, is_interrupted};
use deadweight_record::{AttachRequest, Request};
use deadweight_trace::Exit;

/// Why one run has no figures per call, and what helps.
const ONE_RUN: &str = "calls were not counted, because counting slows the run down; -r 1 adds a run that \
                       counts them";

/// The same for a process that was attached to.
const NOT_COUNTED: &str = "calls were not counted, because counting slows an attached process down";

pub(crate) fn run(options: &Run) -> Result<u8, Failure> {
    if options.prove.list_proofs {
        return list_proofs(&options.view.style);
    }
    let outputs = ReportOutputs::open(&options.view, DefaultStream::Stderr)?;
    let keeper = Keeper::open(&options.keep, options.view.quiet)?;
    let argv = program::argv(&options.command);
    let recorder = Recorder::ready()?;
    let mut debuginfod = Debuginfod::new(options.view.debuginfod.no_debuginfod, options.view.quiet);
    if let Some(join) = joined(&options.join) {
        return attach(options, (&recorder, &mut debuginfod), join, (outputs, keeper));
    }
    // A proof needs many runs.
    let wanted = options.prove.prove.as_ref();
    let runs = options.runs.or(wanted.map(|_| Runs::Auto));
    let of = options.view.of.as_ref();
    let mut counting = CountingRun::new(of.map(ToString::to_string), options.view.inside.clone());
    let repeating = |runs| RunOptions {
        argv: argv.clone(),
        runs,
        warmup: options.warmup,
        ignore: options.ignore_failure.clone().unwrap_or_default(),
        quiet: options.view.quiet,
        changes: RunChanges::default(),
    };
    let mut ran = match runs {
        None => {
            let last = !needs_rights(options);
            let request = Request { argv: argv.clone(), ..Request::default() };
            once(&recorder, &request, last.then_some(&mut debuginfod))?
        }
        Some(runs) => {
            repeat(&repeating(runs), &mut |request| recorder.record(request), &mut counting)?
        }
    };
    debuginfod.complete(&mut ran.traces);
    let mut exit = ran.exit;
    let input = ran.input.take().filter(|_| wanted.is_some() && !is_interrupted(exit));
    if options.view.explain_inlining {
        inlining::explain(&mut ran.traces);
    }
    let picture = pictured(&options.view.pictures, &ran.traces, of)?;
    let trace = keeper.as_ref().map(|keeper| keeper.trace(&ran.traces)).unwrap_or_default();
    let mut report = weighed(ran, Asked::by(&options.view))?;
    match (runs, &mut report.inside) {
        (Some(_), _) => counting.add_to_report(&mut report),
        (None, Some(inside)) => ONE_RUN.clone_into(&mut inside.uncounted),
        (None, None) => {}
    }
    if let (Some(input), Some(runs), Some(classes)) = (input, runs, wanted) {
        let budget = options.prove.prove_budget.0;
        let how = ProofOptions { run: &repeating(runs), classes, budget, exit };
        let interrupted = prove(&mut report, &how, input)?;
        exit = interrupted.map_or(exit, |signal| Exit { code: 0, signal: Some(signal) });
    }
    let unreported = |failure| Failure::Unreported { failure: Box::new(failure), exit };
    let written = outputs.write(&report, picture.as_ref());
    let kept = keeper.map_or(Ok(()), |mut keeper| keeper.keep(&report, options, trace));
    super::both(written, kept).map_err(unreported)?;
    Ok(exit_code(exit))
}

/// Whether something is done after the recording that needs the user's permissions: Go's compiler or a browser is run,
/// or the archive is written.
fn needs_rights(options: &Run) -> bool {
    let view = &options.view;
    view.explain_inlining || view.pictures.open || options.keep.keep.is_some()
}

/// The process to attach to, if one is given.
pub(super) fn joined(options: &cli::Join) -> Option<AttachRequest> {
    let limit = options.time.map(|stay| stay.0);
    options.pid.map(|pid| AttachRequest { pid, limit })
}

/// `--pid N`: attaches to a process and prints its report.
fn attach(
    options: &Run,
    (recorder, debuginfod): (&Recorder, &mut Debuginfod),
    join: AttachRequest,
    (outputs, keeper): (ReportOutputs<'_>, Option<Keeper>),
) -> Result<u8, Failure> {
    let target = Target::Process(join);
    let trace = match needs_rights(options) {
        true => recorder.record_keeping_privileges(&target)?,
        false => recorder.record_last(&target, debuginfod)?,
    };
    let mut ran = RunResults { traces: vec![trace], ..RunResults::default() };
    debuginfod.complete(&mut ran.traces);
    if options.view.explain_inlining {
        inlining::explain(&mut ran.traces);
    }
    let of = options.view.of.as_ref();
    let picture = pictured(&options.view.pictures, &ran.traces, of)?;
    let trace = keeper.as_ref().map(|keeper| keeper.trace(&ran.traces)).unwrap_or_default();
    let mut report = weighed(ran, Asked::by(&options.view))?;
    if let Some(inside) = &mut report.inside {
        NOT_COUNTED.clone_into(&mut inside.uncounted);
    }
    if let Some(classes) = &options.prove.prove {
        report.warnings.push(proof::of_a_running_process(&report, classes));
    }
    let written = outputs.write(&report, picture.as_ref());
    super::both(written, keeper.map_or(Ok(()), |mut keeper| keeper.keep(&report, options, trace)))?;
    Ok(0)
}

/// Runs the command once. If nothing needs rights afterwards, what asks debuginfod servers is given.
fn once(
    recorder: &Recorder,
    request: &Request,
    last: Option<&mut Debuginfod>,
) -> Result<RunResults, Failure> {
    let trace = match last {
        Some(debuginfod) => recorder.record_last(&Target::Command(request), debuginfod)?,
        None => recorder.record(request)?,
    };
    let exit = trace.meta.exit.unwrap_or_default();
    Ok(RunResults { traces: vec![trace], exit, ..RunResults::default() })
}

/// `--list-proofs`: what can be left out, and how.
fn list_proofs(style: &cli::Style) -> Result<u8, Failure> {
    let page = super::page::page(&std::io::stdout(), style);
    super::print("the list of proofs", &explanation::render("--prove", &means::described(), page))?;
    Ok(0)
}
