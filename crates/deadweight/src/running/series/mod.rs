//! One command run again and again: its streams, its results, and what differs between runs.
//!
//! - In: the options and who records a run.
//! - Out: [`RunResults`], hazards, the first difference between runs, and whether there are enough runs (`stop_rule`).
//! - Must not know: which kind of run comes next; see `repeat`, `interleave`, `proof`.

mod hazards;
mod stop_rule;

use self::stop_rule::{enough, progress, traced_wanted};
use super::input::Input;
use super::output::{Outputs, Written};
use super::progress::Progress;
use crate::cli::{Ignore, Runs};
use crate::failure::Failure;
use deadweight_core::{CleanRun, RunCounters};
use deadweight_record::{CallFilter, Count, Placement, Request, Substitute, run_clean};
use deadweight_report::report::Hazard;
use deadweight_trace::{Exit, Trace};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

pub(super) use self::stop_rule::is_slower;

/// What failed if standard input cannot be kept for further runs.
pub(super) const KEPT: &str = "its standard input cannot be kept";

/// Records one run: the command and streams of the request.
pub type Tracing<'a> = dyn FnMut(&Request) -> Result<Trace, Failure> + 'a;

/// How to run a command.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The command.
    pub argv: Vec<OsString>,
    /// How many clean runs.
    pub runs: Runs,
    /// Warm-up runs before them.
    pub warmup: u32,
    /// Failures of the command that don't stop repeating.
    pub ignore: Ignore,
    /// Shows no progress.
    pub quiet: bool,
    /// What is different from the command as it is, in clean runs.
    pub changes: RunChanges,
}

/// What is different in a clean run from the command as the user gave it.
#[derive(Clone, Debug, Default)]
pub struct RunChanges {
    /// A copy that replaces a binary.
    pub substitute: Option<Substitute>,
    /// System calls that succeed without happening.
    pub filter: Option<CallFilter>,
    /// Where it runs.
    pub placement: Placement,
    /// Variables of the environment: name and value.
    pub environment: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub limit: Option<Duration>,
}

/// The results of the runs of a command.
#[derive(Debug, Default)]
pub struct RunResults {
    /// Traced runs, at least one.
    pub traces: Vec<Trace>,
    /// Clean runs in their order.
    pub clean: Vec<CleanRun>,
    /// The beginning of the output of each clean run, where it could be read.
    pub clean_output: Vec<String>,
    /// The same for traced runs.
    pub traced_output: Vec<String>,
    /// How the runs ended that are not among the others, because they failed and others did not.
    pub failed: Vec<Exit>,
    /// How the first run ended, or the run that stopped repeating.
    pub exit: Exit,
    /// What was unexpected.
    pub hazards: Vec<Hazard>,
    /// The input for further runs.
    pub input: Option<Rc<Input>>,
}

impl RunResults {
    /// The positions of the clean runs that failed, if others did not.
    pub(super) fn failed_clean_runs(&self) -> Vec<usize> {
        failed(&self.clean, |run| run.exit)
    }

    /// Leaves out the clean runs at these positions, in order; those that failed are counted.
    pub(super) fn leave_out(&mut self, positions: &[usize]) {
        let gone = take_out(&mut self.clean, &mut self.clean_output, positions);
        self.failed.extend(gone.iter().map(|run| run.exit).filter(|exit| is_failure(*exit)));
    }

    /// Leaves out the traced runs that failed, if others did not.
    fn leave_out_failed_traces(&mut self) {
        let positions = failed(&self.traces, ending_of);
        let gone = take_out(&mut self.traces, &mut self.traced_output, &positions);
        self.failed.extend(gone.iter().map(ending_of));
    }
}

/// How a traced run ended.
fn ending_of(trace: &Trace) -> Exit {
    trace.meta.exit.unwrap_or_default()
}

/// The positions of runs that failed, if others did not: a failure takes another time than the work.
fn failed<T>(runs: &[T], exit: impl Fn(&T) -> Exit) -> Vec<usize> {
    let failed: Vec<usize> = (0..runs.len()).filter(|at| is_failure(exit(&runs[*at]))).collect();
    if failed.len() < runs.len() { failed } else { Vec::new() }
}

/// Takes the runs at these positions, in order, and their outputs out of the lists.
fn take_out<T>(runs: &mut Vec<T>, outputs: &mut Vec<String>, positions: &[usize]) -> Vec<T> {
    let mut gone = Vec::new();
    for at in positions.iter().rev().filter(|at| **at < runs.len()).collect::<Vec<_>>() {
        gone.push(runs.remove(*at));
        if *at < outputs.len() {
            outputs.remove(*at);
        }
    }
    gone
}

fn is_failure(exit: Exit) -> bool {
    exit.code != 0 || exit.signal.is_some()
}

/// A series of runs in progress.
pub(super) struct Series<'w> {
    options: &'w RunOptions,
    input: Rc<Input>,
    /// Whether the first run has the user's own input and output.
    first_inherits: bool,
    outputs: Outputs,
    progress: Progress,
    /// How the first run ended.
    exit: Option<Exit>,
    /// Runs so far, of any kind.
    runs: u32,
    /// The beginning of the output of the latest run, if it was drained.
    output_start: String,
    /// What the first run wrote, where it could be read.
    wrote: Option<Written>,
    /// The first run with different output, and the stream.
    output_differs: Option<(u32, &'static str)>,
    /// The first run that ended differently from the first one.
    exit_differs: Option<(u32, Exit)>,
    /// The run that failed or was interrupted; no runs follow.
    failed: Option<(u32, Exit)>,
    stopped: bool,
}

impl<'w> Series<'w> {
    /// The runs of one command: the first one has the user's own input and output.
    pub(super) fn begin(options: &'w RunOptions) -> Result<Self, Failure> {
        let kept = Input::repeatable();
        let input = kept.map_err(|source| Failure::Repeat { what: KEPT, source })?;
        let progress = Progress::start(options.quiet);
        Ok(Self { first_inherits: true, progress, ..Self::drained(options, Rc::new(input), None)? })
    }

    /// One of several series with the same input. Their output is drained or goes to `output`; the caller shows
    /// progress.
    pub(super) fn drained(
        options: &'w RunOptions,
        input: Rc<Input>,
        output: Option<&Path>,
    ) -> Result<Self, Failure> {
        let failure = |what| move |source: io::Error| Failure::Repeat { what, source };
        let mut outputs = Outputs::own().map_err(failure("its output cannot be replaced"))?;
        if let Some(path) = output {
            outputs.redirect(path).map_err(failure("its output cannot be written there"))?;
        }
        Ok(Self {
            options,
            input,
            first_inherits: false,
            outputs,
            progress: Progress::start(true),
            exit: None,
            runs: 0,
            output_start: String::new(),
            wrote: None,
            output_differs: None,
            exit_differs: None,
            failed: None,
            stopped: false,
        })
    }

    /// The same, with output that can be compared whatever our own output is.
    pub(super) fn compared(options: &'w RunOptions, input: Rc<Input>) -> Result<Self, Failure> {
        let series = Self::drained(options, input, None)?;
        Ok(Self { outputs: series.outputs.read_back(), ..series })
    }

    /// One run without tracing.
    pub(super) fn clean_run(&mut self) -> Result<CleanRun, Failure> {
        self.run(|request| {
            let run = run_clean(request)?;
            let deadweight_record::CleanRun { wall, user, system, max_rss, exit, .. } = run;
            let counters = RunCounters {
                displaced: run.involuntary_switches,
                blocks_read: run.blocks_read,
                throttled: run.throttled,
            };
            Ok((CleanRun { wall, user, system, max_rss, exit, counters }, exit))
        })
    }

    /// Whether more clean runs are wanted.
    pub(super) fn goes_on(&self, ran: &RunResults, since: Instant) -> bool {
        !self.stopped && !enough(self.options.runs, &ran.clean, since)
    }

    /// A clean run that is added to the results, unless it was stopped early.
    pub(super) fn clean_run_for(&mut self, ran: &mut RunResults) -> Result<(), Failure> {
        self.progress.say(&progress(self.options.runs, ran.clean.len()));
        let run = self.clean_run()?;
        if !self.stopped {
            ran.clean.push(run);
            ran.clean_output.push(self.take_output());
        }
        Ok(())
    }

    /// The beginning of the output of the latest run, if it was drained.
    pub(super) fn take_output(&mut self) -> String {
        std::mem::take(&mut self.output_start)
    }

    /// The traced runs: at least one even if the command failed, to explain it, but none if the user interrupted it.
    pub(super) fn traced_runs(
        &mut self,
        ran: &mut RunResults,
        tracing: &mut Tracing<'_>,
    ) -> Result<(), Failure> {
        while self.one_more_traced(ran, None, tracing)? {}
        Ok(())
    }

    /// A traced run, unless there are enough: as many as are wanted, or as give enough samples. Returns whether it was
    /// made.
    pub(super) fn one_more_traced(
        &mut self,
        ran: &mut RunResults,
        wanted: Option<u64>,
        tracing: &mut Tracing<'_>,
    ) -> Result<bool, Failure> {
        let wanted = wanted.unwrap_or_else(|| traced_wanted(ran.traces.first(), self.options.runs));
        let first = ran.traces.is_empty();
        if first && self.failed.is_some_and(|(_, exit)| is_interrupted(exit)) {
            self.progress.done();
            return Err(Failure::Interrupted);
        }
        if !first && (self.stopped || ran.traces.len() as u64 >= wanted) {
            return Ok(false);
        }
        self.progress.say(&match first {
            true => "traced run 1".to_owned(),
            false => format!("traced run {} of {wanted}", ran.traces.len() + 1),
        });
        let trace = self.traced_run(tracing, Vec::new(), None)?;
        if first || !self.stopped {
            ran.traces.push(trace);
            ran.traced_output.push(self.take_output());
        }
        Ok(true)
    }

    pub(super) fn traced_run(
        &mut self,
        tracing: &mut Tracing<'_>,
        counts: Vec<Count>,
        counting: Option<Duration>,
    ) -> Result<Trace, Failure> {
        self.run(|request| {
            request.counts = counts;
            request.counting = counting;
            let trace = tracing(request)?;
            let exit = trace.meta.exit.unwrap_or_default();
            Ok((trace, exit))
        })
    }

    /// One run of either kind, with its streams; records what it wrote and how it ended.
    fn run<T>(
        &mut self,
        start: impl FnOnce(&mut Request) -> Result<(T, Exit), Failure>,
    ) -> Result<T, Failure> {
        let failure = |what| move |source: io::Error| Failure::Repeat { what, source };
        let first = self.runs == 0 && self.first_inherits;
        self.runs += 1;
        let RunOptions { argv, changes, .. } = self.options.clone();
        let RunChanges { substitute, filter, placement, environment, limit } = changes;
        let mut request = Request {
            argv,
            substitute,
            filter,
            placement,
            environment,
            limit,
            ..Request::default()
        };
        let mut draining = None;
        // The first run moves the position in the user's file as it would without us.
        if !first || matches!(*self.input, Input::Spooled { .. }) {
            request.stdin = self.input.stream().map_err(failure("its input cannot be reread"))?;
        }
        if !first {
            let streams = self.outputs.drained();
            let (out, err, drain) = streams.map_err(failure("its output cannot be drained"))?;
            (request.stdout, request.stderr) = (out, err);
            draining = Some(drain);
        }
        let (result, exit) = start(&mut request)?;
        drop(request);
        let (written, output_start) = match draining {
            Some(draining) => draining.finish(),
            None => (self.outputs.written_first(), String::new()),
        };
        self.output_start = output_start;
        // A run that was interrupted wrote less.
        if !is_interrupted(exit) {
            self.record_output(written);
        }
        self.record_exit(exit);
        Ok(result)
    }

    /// Adds to the results how the series ended, and what was unexpected.
    pub(super) fn conclude(&self, ran: &mut RunResults) {
        ran.exit = self.exit();
        let runs = ran.clean.len() + ran.traces.len() + ran.failed.len();
        ran.leave_out_failed_traces();
        ran.hazards = self.hazards(ran.clean.len(), &ran.failed, runs);
    }

    /// Shows what happens next.
    pub(super) fn say(&mut self, text: &str) {
        self.progress.say(text);
    }

    /// Whether no run may follow.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Removes the progress line, and returns the input for further runs.
    pub(super) fn into_input(mut self) -> Rc<Input> {
        self.progress.done();
        self.input
    }

    fn exit(&self) -> Exit {
        self.failed.map(|(_, exit)| exit).or(self.exit).unwrap_or_default()
    }

    /// What its runs wrote, where it could be read.
    pub(super) fn wrote(&self) -> Option<Written> {
        self.wrote
    }

    /// An error if a failure stopped the series.
    pub(super) fn check_not_stopped(&self) -> Result<(), Failure> {
        let Some((_, exit)) = self.failed.filter(|_| self.stopped) else { return Ok(()) };
        if is_interrupted(exit) {
            return Err(Failure::Interrupted);
        }
        let command: Vec<_> = self.options.argv.iter().map(|word| word.to_string_lossy()).collect();
        let command = command.join(" ");
        Err(Failure::Failed { command, ended: ending(exit) })
    }

    fn record_output(&mut self, written: Written) {
        let Some(before) = self.wrote else {
            self.wrote = Some(written);
            return;
        };
        let stream = written.differs_from(before);
        self.output_differs = self.output_differs.or(stream.map(|s| (self.runs, s)));
        // What the first run wrote to a pipe or terminal is not known; take the second run's.
        let known = Written { out: before.out.or(written.out), err: before.err.or(written.err) };
        self.wrote = Some(known);
    }

    fn record_exit(&mut self, exit: Exit) {
        let first = *self.exit.get_or_insert(exit);
        if exit != first {
            self.exit_differs.get_or_insert((self.runs, exit));
        }
        if is_interrupted(exit) || !self.options.ignore.passes(exit) {
            self.failed.get_or_insert((self.runs, exit));
            self.stopped = true;
        }
    }

    /// How its first run ended.
    pub(super) fn first_exit(&self) -> Option<Exit> {
        self.exit
    }

    /// How a later run differed from the first one: `wrote something else to standard output`.
    pub(super) fn difference_from_first(&self) -> Option<String> {
        let wrote = self.output_differs.map(|(_, stream)| wrote_other_output(stream));
        self.exit_differs.map(|(_, exit)| ending(exit)).or(wrote)
    }

    /// Whether its runs wrote anything that can be compared.
    pub(super) fn wrote_anything(&self) -> bool {
        let streams = self.wrote.map(|wrote| [wrote.out, wrote.err]);
        streams.into_iter().flatten().flatten().any(|digest| digest.bytes > 0)
    }

    /// How this series differed from another; the error is the reason why that is not known.
    pub(super) fn differs_from(&self, other: &Self) -> Result<Option<String>, String> {
        let (Some(exit), Some(exit_there)) = (self.exit, other.exit) else {
            return Err("it did not run".into());
        };
        let (Some(ours), Some(theirs)) = (self.wrote, other.wrote) else {
            return Err("what it writes is not known".into());
        };
        if exit != exit_there {
            return Ok(Some(ending(exit)));
        }
        if ours.out.is_none() || theirs.out.is_none() {
            return Err("its output stays open after its end".into());
        }
        Ok(self
            .difference_from_first()
            .or_else(|| ours.differs_from(theirs).map(wrote_other_output)))
    }
}

fn wrote_other_output(stream: &str) -> String {
    format!("wrote something else to {stream}")
}

/// Whether the user interrupted the run.
pub(crate) fn is_interrupted(exit: Exit) -> bool {
    exit.signal == Some(libc::SIGINT) || deadweight_record::interrupted()
}

/// `ended with exit code 1`.
fn ending(exit: Exit) -> String {
    match exit.signal {
        Some(signal) => format!("was ended by signal {signal}"),
        None => format!("ended with exit code {}", exit.code),
    }
}
