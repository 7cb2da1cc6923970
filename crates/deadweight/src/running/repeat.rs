//! `-r`: undisturbed runs for the time, traced runs beside them for the reasons.
//!
//! The order is warm-ups, clean runs for half a second, the traced runs at one go, then the other
//! clean runs. Clean runs come first because nothing was ever traced then; the traced ones come
//! soon because a command may be stopped, and in one block because the kernel takes a while to
//! forget each of them. What the first run took longer on cold caches is not counted.

mod enough;
mod remarks;

use self::enough::{enough, is_slower, progress, traced_wanted};
use super::evidence::Evidence;
use super::input::Input;
use super::output::{Outputs, Written};
use super::progress::Progress;
use crate::cli::{Ignore, Runs};
use crate::failure::Failure;
use deadweight_core::{CleanRun, RunCounters};
use deadweight_record::{Count, Request, Substitute, run_clean};
use deadweight_report::report::Hazard;
use deadweight_trace::{Exit, Trace};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// So long clean runs go on before the traced ones, and a run that is shorter may be had for nothing.
const SOON: Duration = Duration::from_millis(500);
/// What is being done while standard input is kept.
pub(super) const KEPT: &str = "its standard input cannot be kept";

/// Records one run; the first argument says what to run with which streams.
pub type Tracing<'a> = dyn FnMut(&Request) -> Result<Trace, Failure> + 'a;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The command.
    pub argv: Vec<OsString>,
    /// How many clean runs.
    pub runs: Runs,
    /// Runs beforehand.
    pub warmup: u32,
    /// Failures of the command after which to go on.
    pub ignore: Ignore,
    /// No progress.
    pub quiet: bool,
    /// A copy that takes a binary's place in runs without tracing.
    pub substitute: Option<Substitute>,
    /// How long a run without tracing may take.
    pub limit: Option<Duration>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Ran {
    /// Traced runs, at least one.
    pub traces: Vec<Trace>,
    /// Clean runs in their order.
    pub clean: Vec<CleanRun>,
    /// How clean runs began their output, where it could be read.
    pub said: Vec<String>,
    /// The same of traced runs.
    pub said_traced: Vec<String>,
    /// How the first run ended, or the one that put an end to repeating.
    pub exit: Exit,
    /// What went otherwise than a reader would expect.
    pub hazards: Vec<Hazard>,
    /// What further runs would read.
    pub input: Option<Rc<Input>>,
}

/// Runs the command as wished, and once more if `evidence` has something to count.
///
/// # Errors
/// If it cannot be started or recorded, or its input not be had twice.
pub fn repeat(
    wish: &Wish,
    tracing: &mut Tracing<'_>,
    evidence: &mut Evidence,
) -> Result<Ran, Failure> {
    let mut series = Series::begin(wish)?;
    let mut ran = Ran::default();
    for number in 0..wish.warmup {
        series.progress.say(&format!("warm-up {} of {}", number + 1, wish.warmup));
        series.clean_run()?;
    }
    let begun = Instant::now();
    let mut since = begun;
    let mut warm = wish.warmup > 0;
    if !warm && !series.stopped {
        series.clean_run_for(&mut ran)?;
        if begun.elapsed() < SOON {
            ran.clean.clear();
            (warm, since) = (true, Instant::now());
        }
    }
    while series.goes_on(&ran, since) && begun.elapsed() < SOON {
        series.clean_run_for(&mut ran)?;
    }
    let traced = Instant::now();
    series.traced_runs(&mut ran, tracing)?;
    // The clean runs have their time to themselves.
    since += traced.elapsed();
    if !warm && is_slower(&ran.clean, &ran.traces) {
        ran.clean.clear();
    }
    while series.goes_on(&ran, since) {
        series.clean_run_for(&mut ran)?;
    }
    series.counting_run(&ran, tracing, evidence);
    series.progress.done();
    ran.exit = series.exit();
    ran.hazards = series.hazards(ran.clean.len());
    ran.input = Some(series.input);
    Ok(ran)
}

/// A series of runs under way.
pub(super) struct Series<'w> {
    wish: &'w Wish,
    input: Rc<Input>,
    /// Whether the first run is the user's: with their input as it is, and its output passed on.
    passes_on: bool,
    outputs: Outputs,
    progress: Progress,
    /// How the first run ended.
    exit: Option<Exit>,
    /// Runs so far, of any kind.
    runs: u32,
    /// The beginning of what the latest run wrote, if it was drained.
    said: String,
    /// What the first run wrote, as far as it can be known.
    wrote: Option<Written>,
    /// The first run that wrote something else, and to which stream.
    differs: Option<(u32, &'static str)>,
    /// The first run that ended otherwise than the first one.
    ends_otherwise: Option<(u32, Exit)>,
    /// The run that failed or was interrupted: there are no further ones.
    failed: Option<(u32, Exit)>,
    stopped: bool,
}

impl<'w> Series<'w> {
    fn begin(wish: &'w Wish) -> Result<Self, Failure> {
        let kept = Input::repeatable();
        let input = kept.map_err(|source| Failure::Repeat { what: KEPT, source })?;
        let progress = Progress::start(wish.quiet);
        Ok(Self { passes_on: true, progress, ..Self::beside(wish, Rc::new(input), None)? })
    }

    /// One of several that read the same input; nothing that they write is passed on, unless it is
    /// said where `output` goes, and whoever runs them says how far they are.
    pub(super) fn beside(
        wish: &'w Wish,
        input: Rc<Input>,
        output: Option<&Path>,
    ) -> Result<Self, Failure> {
        let failure = |what| move |source: io::Error| Failure::Repeat { what, source };
        let mut outputs =
            Outputs::of_ours().map_err(failure("its output cannot be stood in for"))?;
        if let Some(path) = output {
            outputs.redirect(path).map_err(failure("its output cannot be written there"))?;
        }
        Ok(Self {
            wish,
            input,
            passes_on: false,
            outputs,
            progress: Progress::start(true),
            exit: None,
            runs: 0,
            said: String::new(),
            wrote: None,
            differs: None,
            ends_otherwise: None,
            failed: None,
            stopped: false,
        })
    }

    /// The same, whose output can be compared wherever ours goes.
    pub(super) fn compared(wish: &'w Wish, input: Rc<Input>) -> Result<Self, Failure> {
        let series = Self::beside(wish, input, None)?;
        Ok(Self { outputs: series.outputs.read_back(), ..series })
    }

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
    fn goes_on(&self, ran: &Ran, since: Instant) -> bool {
        !self.stopped && !enough(self.wish.runs, &ran.clean, since)
    }

    /// A clean run that counts, unless it was cut short: its time says nothing about the command.
    fn clean_run_for(&mut self, ran: &mut Ran) -> Result<(), Failure> {
        self.progress.say(&progress(self.wish.runs, ran.clean.len()));
        let run = self.clean_run()?;
        if !self.stopped {
            ran.clean.push(run);
            ran.said.push(std::mem::take(&mut self.said));
        }
        Ok(())
    }

    /// The traced runs. There is one even of a command that failed, to explain it, but none of one
    /// that somebody interrupted.
    pub(super) fn traced_runs(
        &mut self,
        ran: &mut Ran,
        tracing: &mut Tracing<'_>,
    ) -> Result<(), Failure> {
        while self.one_more_traced(ran, tracing)? {}
        Ok(())
    }

    /// A traced run, unless there are enough of them; whether it was made.
    pub(super) fn one_more_traced(
        &mut self,
        ran: &mut Ran,
        tracing: &mut Tracing<'_>,
    ) -> Result<bool, Failure> {
        let wanted = traced_wanted(ran.traces.first(), self.wish.runs);
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
            ran.said_traced.push(std::mem::take(&mut self.said));
        }
        Ok(true)
    }

    /// The run that counts. The others are worth something without it.
    fn counting_run(&mut self, ran: &Ran, tracing: &mut Tracing<'_>, evidence: &mut Evidence) {
        if self.stopped {
            return;
        }
        let counts = evidence.places(ran);
        if !counts.is_empty() {
            self.progress.say("counting run");
            let longest = evidence.counting_time(&ran.clean);
            let run = self.traced_run(tracing, counts, Some(longest));
            evidence.came(run.map_err(|failure| failure.to_string()));
        }
    }

    fn traced_run(
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

    /// One run of either kind, with its streams and the bookkeeping around it.
    fn run<T>(
        &mut self,
        start: impl FnOnce(&mut Request) -> Result<(T, Exit), Failure>,
    ) -> Result<T, Failure> {
        let failure = |what| move |source: io::Error| Failure::Repeat { what, source };
        let first = self.runs == 0 && self.passes_on;
        self.runs += 1;
        let Wish { argv, substitute, limit, .. } = self.wish.clone();
        let mut request = Request { argv, substitute, limit, ..Request::default() };
        let mut draining = None;
        // The first run moves the position in a file as it would without us.
        if !first || matches!(*self.input, Input::Spooled { .. }) {
            request.stdin = self.input.stream().map_err(failure("its input cannot be reread"))?;
        }
        if !first {
            let streams = self.outputs.drained();
            let (out, err, drain) = streams.map_err(failure("its output has nowhere to go"))?;
            (request.stdout, request.stderr) = (out, err);
            draining = Some(drain);
        }
        let (result, exit) = start(&mut request)?;
        drop(request);
        let (written, said) = match draining {
            Some(draining) => draining.finish(),
            None => (self.outputs.written_first(), String::new()),
        };
        self.said = said;
        self.compare(written);
        self.note_end(exit);
        Ok(result)
    }

    /// How the first run ended, or the one that put an end to repeating.
    pub(super) fn exit(&self) -> Exit {
        self.failed.map(|(_, exit)| exit).or(self.exit).unwrap_or_default()
    }

    /// What its runs wrote, as far as it can be known.
    pub(super) fn wrote(&self) -> Option<Written> {
        self.wrote
    }

    /// An end to it, if the latest run failed without leave.
    pub(super) fn must_go_on(&self) -> Result<(), Failure> {
        let Some((_, exit)) = self.failed.filter(|_| self.stopped) else { return Ok(()) };
        if is_interrupted(exit) {
            return Err(Failure::Interrupted);
        }
        let command: Vec<_> = self.wish.argv.iter().map(|word| word.to_string_lossy()).collect();
        let command = command.join(" ");
        Err(Failure::Failed { command, ended: ending(exit) })
    }

    fn compare(&mut self, written: Written) {
        let Some(before) = self.wrote else {
            self.wrote = Some(written);
            return;
        };
        let stream = written.differs_from(before);
        self.differs = self.differs.or(stream.map(|s| (self.runs, s)));
        // What a pipe or terminal took in the first run is not known; the second run's is.
        let known = Written { out: before.out.or(written.out), err: before.err.or(written.err) };
        self.wrote = Some(known);
    }

    fn note_end(&mut self, exit: Exit) {
        let first = *self.exit.get_or_insert(exit);
        if exit != first {
            self.ends_otherwise.get_or_insert((self.runs, exit));
        }
        if is_interrupted(exit) || !self.wish.ignore.passes(exit) {
            self.failed.get_or_insert((self.runs, exit));
            self.stopped = true;
        }
    }

    /// What a run of this series did otherwise than the first one, as `wrote something else`.
    pub(super) fn varies(&self) -> Option<String> {
        let wrote = self.differs.map(|(_, stream)| wrote_else(stream));
        self.ends_otherwise.map(|(_, exit)| ending(exit)).or(wrote)
    }

    /// Whether there is anything to compare its runs by.
    pub(super) fn wrote_anything(&self) -> bool {
        let streams = self.wrote.map(|wrote| [wrote.out, wrote.err]);
        streams.into_iter().flatten().flatten().any(|digest| digest.bytes > 0)
    }

    /// What this series did otherwise than another; the error is why that is not known.
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
            return Err("something keeps its output open after its end".into());
        }
        Ok(self.varies().or_else(|| ours.differs_from(theirs).map(wrote_else)))
    }
}

fn wrote_else(stream: &str) -> String {
    format!("wrote something else to {stream}")
}

/// Somebody wants an end of it.
pub(crate) fn is_interrupted(exit: Exit) -> bool {
    exit.signal == Some(libc::SIGINT) || deadweight_record::interrupted()
}

fn ending(exit: Exit) -> String {
    match exit.signal {
        Some(signal) => format!("was ended by signal {signal}"),
        None => format!("ended with exit code {}", exit.code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_trace::Meta;
    use deadweight_trace::symbols::Symbols;
    use deadweight_trace::units::Ns;

    fn wish(argv: &[&str], runs: Runs) -> Wish {
        let argv = argv.iter().map(OsString::from).collect();
        Wish {
            argv,
            runs,
            warmup: 0,
            ignore: Ignore::None,
            quiet: true,
            substitute: None,
            limit: None,
        }
    }

    /// A traced run without tracing: what is tested here is the order of runs.
    fn untraced(request: &Request) -> Result<Trace, Failure> {
        let run = run_clean(request)?;
        let meta = Meta { end: run.wall, exit: Some(run.exit), ..Meta::default() };
        Ok(Trace::new(meta, Symbols::default(), Vec::new()))
    }

    #[test]
    fn as_many_clean_runs_as_asked_for_and_traced_ones_between() {
        let ran =
            repeat(&wish(&["/bin/true"], Runs::Count(4)), &mut untraced, &mut Evidence::default())
                .unwrap();
        assert_eq!((ran.clean.len(), ran.traces.len()), (4, 4));
        assert_eq!(ran.exit, Exit::default());
    }

    #[test]
    fn a_failure_stops_repeating_unless_ignored() {
        let mut wish = wish(&["/bin/false"], Runs::Count(3));
        let ran = repeat(&wish, &mut untraced, &mut Evidence::default()).unwrap();
        assert_eq!((ran.clean.len(), ran.traces.len(), ran.exit.code), (0, 1, 1));
        assert!(ran.hazards.iter().any(|h| h.id == "stopped-repeating"));
        wish.ignore = Ignore::All;
        let ran = repeat(&wish, &mut untraced, &mut Evidence::default()).unwrap();
        assert_eq!((ran.clean.len(), ran.exit.code), (3, 1));
        assert_eq!(ran.hazards, []);
    }

    #[test]
    fn a_run_that_was_cut_short_does_not_count() {
        let counter = std::env::temp_dir().join(format!("deadweight-cut-{}", std::process::id()));
        std::fs::write(&counter, "").unwrap();
        // One run to warm up, nine clean ones, two traced ones, and the next is interrupted. On a
        // machine that is slow at the moment the first one may count.
        let script =
            format!("echo >> {0}; [ $(wc -l < {0}) -lt 13 ] || kill -INT $$", counter.display());
        let wish = Wish { ignore: Ignore::All, ..wish(&["sh", "-c", &script], Runs::Count(9)) };
        let ran = repeat(&wish, &mut untraced, &mut Evidence::default()).unwrap();
        let counted = ran.clean.len() + ran.traces.len();
        assert!((11..=12).contains(&counted), "{ran:?}");
        assert_eq!(ran.exit.signal, Some(libc::SIGINT));
        let again = repeat(&wish, &mut untraced, &mut Evidence::default());
        std::fs::remove_file(&counter).unwrap();
        assert!(matches!(again, Err(Failure::Interrupted)), "no run was traced: {again:?}");
    }

    #[test]
    fn traced_runs_are_fewer_the_longer_the_command_takes() {
        let trace = |ms: u64| {
            let meta = Meta { end: Ns(ms * 1_000_000), ..Meta::default() };
            Trace::new(meta, Symbols::default(), Vec::new())
        };
        let wanted = |ms, runs| traced_wanted(Some(&trace(ms)), runs);
        assert_eq!(wanted(1, Runs::Count(30)), 10);
        assert_eq!(wanted(1, Runs::Count(5)), 5);
        assert_eq!(wanted(150, Runs::Auto), 3);
        assert_eq!(wanted(3000, Runs::Count(30)), 1);
    }
}
