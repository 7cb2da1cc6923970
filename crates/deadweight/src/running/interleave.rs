//! Several commands interleaved, so that all run under the same conditions.
//!
//! Warm-ups, then rounds: each round runs every command once without tracing, in a new random order, so that no command
//! always follows the same other. Traced runs come after all timed runs, also interleaved, and only for commands whose
//! difference is to be explained. Output is drained and compared, never shown. For one command alone see `repeat`.

use super::counting_run::CountingRun;
use super::hooks::Hooks;
use super::input::Input;
use super::output::Written;
use super::progress::Progress;
use super::series::{KEPT, RunOptions, RunResults, Series, Tracing};
use crate::cli::Runs;
use crate::failure::Failure;
use deadweight_core::CleanRun;
use deadweight_record::Request;
use deadweight_report::benchmarks::operation;
use deadweight_report::compare::{FEWEST_PAIRS, PRECISION, is_precise, shows_difference};
use deadweight_report::stats::median::summarise;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The most rounds of a comparison.
const MOST: usize = 1000;
/// Without `-r`, rounds go on until the factor is precise enough, or for this time per command.
const TIME: Duration = Duration::from_millis(2500);
/// Traced runs may take half as long as the timed runs took, or this long per command ...
const TRACED_TIME: Duration = Duration::from_millis(500);
/// ... and this long if all ledgers are wanted: then their precision matters.
const TRACED_TIME_FOR_ALL: Duration = Duration::from_secs(2);

/// Which commands are traced.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum TraceWhen {
    /// The first one and those that may differ from it; none if no other may.
    #[default]
    IfDifferent,
    /// All.
    Always,
    /// None.
    Never,
}

/// The runs of one command.
#[derive(Debug)]
pub struct SideRuns {
    /// Its results.
    pub ran: RunResults,
    /// What it wrote, where it could be read.
    pub wrote: Option<Written>,
    /// The runs that counted its allocations.
    pub counted: Vec<CountingRun>,
    /// Whether the user interrupted the series: there are fewer runs than wanted.
    pub interrupted: bool,
}

/// Options for all commands.
#[derive(Clone, Debug, Default)]
pub struct InterleaveOptions {
    /// Their input; our own standard input if none.
    pub input: Option<PathBuf>,
    /// Where the standard output of each goes; if none, to the same kind of file as our own.
    pub outputs: Vec<Option<PathBuf>>,
    /// The fewest runs of each.
    pub fewest: Option<u32>,
    /// The most runs of each.
    pub most: Option<u32>,
    /// Which of them are traced.
    pub trace_when: TraceWhen,
    /// How long the clean runs may take for each command, without `-r`; 2.5 s if none.
    pub time: Option<Duration>,
    /// How many traced runs of each are wanted, if the time allows; as many as give enough samples if none.
    pub traced: Option<u64>,
    /// Runs of each that count allocations, after all others.
    pub counting: u32,
    /// Whether the rounds before an interruption are of use; else it is an error.
    pub keeps_interrupted: bool,
}

/// Runs all commands interleaved, each with the hooks around its runs.
///
/// # Errors
/// If a command cannot be started or recorded, if it fails and failures are not ignored, or if a hook fails.
pub fn interleave(
    commands: &[(RunOptions, Hooks)],
    how: &InterleaveOptions,
    tracing: &mut Tracing<'_>,
) -> Result<Vec<SideRuns>, Failure> {
    let kept = match &how.input {
        Some(path) => Input::file(path),
        None => Input::repeatable(),
    };
    let input = Rc::new(kept.map_err(|source| Failure::Repeat { what: KEPT, source })?);
    let series: Vec<Series<'_>> = commands
        .iter()
        .enumerate()
        .map(|(at, (options, _))| {
            let output = how.outputs.get(at).and_then(Option::as_deref);
            Series::drained(options, Rc::clone(&input), output)
        })
        .collect::<Result<_, _>>()?;
    let ran: Vec<RunResults> = commands.iter().map(|_| RunResults::default()).collect();
    let progress = Progress::start(commands.iter().any(|(options, _)| options.quiet));
    let counted = commands.iter().map(|_| Vec::new()).collect();
    let mut rounds = Rounds { commands, how, series, ran, counted, progress, interrupted: false };
    let all: Vec<usize> = (0..commands.len()).collect();
    let all_hooks: Vec<&Hooks> = commands.iter().map(|(_, hooks)| hooks).collect();
    let paired = can_interleave(&all_hooks);
    let groups: Vec<&[usize]> = if paired { vec![&all] } else { all.chunks(1).collect() };
    let since = Instant::now();
    for group in &groups {
        rounds.with_setup(group, |rounds| rounds.clean(group))?;
        rounds.leave_out_failed(group);
    }
    let each = if how.trace_when == TraceWhen::Always { TRACED_TIME_FOR_ALL } else { TRACED_TIME };
    let budget = (since.elapsed() / 2).max(each * u32::try_from(commands.len()).unwrap_or(1));
    let when = if rounds.interrupted { TraceWhen::Never } else { how.trace_when };
    let explained = to_explain(when, &rounds.ran, paired);
    for group in &groups {
        let group: Vec<usize> = group.iter().copied().filter(|at| explained.contains(at)).collect();
        let part = u32::try_from(groups.len()).unwrap_or(1);
        rounds.with_setup(&group, |rounds| {
            rounds.traced(&group, budget / part, tracing)?;
            rounds.counting(&group, tracing)
        })?;
    }
    rounds.progress.done();
    let interrupted = rounds.interrupted;
    let done = rounds.series.into_iter().zip(rounds.ran).zip(rounds.counted);
    Ok(done.map(|((one, ran), counted)| side_runs(&one, ran, counted, interrupted)).collect())
}

/// Whether commands can be interleaved: all must have the same setup.
#[must_use]
pub fn can_interleave(all_hooks: &[&Hooks]) -> bool {
    all_hooks.windows(2).all(|pair| pair[0].setup == pair[1].setup)
}

/// Interleaved runs in progress.
struct Rounds<'w> {
    commands: &'w [(RunOptions, Hooks)],
    how: &'w InterleaveOptions,
    series: Vec<Series<'w>>,
    ran: Vec<RunResults>,
    counted: Vec<Vec<CountingRun>>,
    progress: Progress,
    /// The user asked for an end, and complete rounds were kept.
    interrupted: bool,
}

impl Rounds<'_> {
    /// Runs `act` between the setup and cleanup hooks of a group; equal hooks run once.
    fn with_setup(
        &mut self,
        group: &[usize],
        act: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let hooks = |at: &usize| &self.commands[*at].1;
        let all_hooks: Vec<&Hooks> = group.iter().map(hooks).collect();
        for (at, hooks) in all_hooks.iter().enumerate() {
            if all_hooks[..at].iter().all(|before| before.setup != hooks.setup) {
                hooks.set_up()?;
            }
        }
        act(self)?;
        for (at, hooks) in all_hooks.iter().enumerate() {
            if all_hooks[..at].iter().all(|before| before.cleanup != hooks.cleanup) {
                hooks.clean_up()?;
            }
        }
        Ok(())
    }

    /// Warm-ups and clean runs of a group, interleaved.
    fn clean(&mut self, group: &[usize]) -> Result<(), Failure> {
        let warmup = self.commands.iter().map(|(options, _)| options.warmup).max().unwrap_or(0);
        for number in 0..warmup {
            self.progress.say(&format!("warm-up {} of {warmup}", number + 1));
            for index in group {
                self.one(*index)?;
            }
        }
        let runs = self.commands.first().map_or(Runs::Auto, |(options, _)| options.runs);
        let since = Instant::now();
        let mut order = Order::new(group.len());
        loop {
            let ran: Vec<&RunResults> = group.iter().map(|at| &self.ran[*at]).collect();
            if enough(runs, self.how, &ran, since) {
                return Ok(());
            }
            self.progress.say(&round(runs, ran.first().map_or(0, |r| r.clean.len())));
            for index in order.draw() {
                let run = match self.one(group[index]) {
                    Err(Failure::Interrupted) if self.keeps_rounds(group) => return Ok(()),
                    run => run?,
                };
                let output = self.series[group[index]].take_output();
                let ran = &mut self.ran[group[index]];
                ran.clean.push(run);
                ran.clean_output.push(output);
            }
        }
    }

    /// After an interruption: whether complete rounds of all commands are kept.
    fn keeps_rounds(&mut self, group: &[usize]) -> bool {
        let rounds = group.iter().map(|at| self.ran[*at].clean.len()).min().unwrap_or(0);
        let all = group.len() == self.commands.len();
        self.interrupted = self.how.keeps_interrupted && all && rounds > 0;
        for at in group.iter().filter(|_| self.interrupted) {
            self.ran[*at].clean.truncate(rounds);
            self.ran[*at].clean_output.truncate(rounds);
        }
        self.interrupted
    }

    /// After an interruption before each has a traced run: whether the times are kept, without any reasons.
    fn keeps_times(&mut self) -> bool {
        self.interrupted = self.how.keeps_interrupted;
        for ran in self.ran.iter_mut().filter(|_| self.interrupted) {
            ran.traces.clear();
            ran.traced_output.clear();
        }
        self.interrupted
    }

    /// Leaves out the rounds in which a command failed that does not always fail: pairs stay pairs.
    fn leave_out_failed(&mut self, group: &[usize]) {
        let mut failed: Vec<usize> =
            group.iter().flat_map(|at| self.ran[*at].failed_clean_runs()).collect();
        failed.sort_unstable();
        failed.dedup();
        for at in group {
            self.ran[*at].leave_out(&failed);
        }
    }

    fn one(&mut self, index: usize) -> Result<CleanRun, Failure> {
        let hooks = &self.commands[index].1;
        hooks.prepare()?;
        let run = self.series[index].clean_run()?;
        self.series[index].check_not_stopped()?;
        hooks.conclude()?;
        Ok(run)
    }

    /// Traced runs of a group, interleaved: at least one of each, and no more than the time allows.
    fn traced(
        &mut self,
        group: &[usize],
        budget: Duration,
        tracing: &mut Tracing<'_>,
    ) -> Result<(), Failure> {
        let since = Instant::now();
        let mut more = !group.is_empty();
        while more {
            self.progress.say("traced runs, for the reasons");
            let before = since.elapsed();
            more = false;
            for index in group {
                let hooks = &self.commands[*index].1;
                let mut traced = |request: &Request| {
                    hooks.prepare()?;
                    let trace = tracing(request)?;
                    hooks.conclude()?;
                    Ok(trace)
                };
                let ran = &mut self.ran[*index];
                let wanted = self.how.traced;
                match self.series[*index].one_more_traced(ran, wanted, &mut traced) {
                    Err(Failure::Interrupted) if self.keeps_times() => return Ok(()),
                    another => more |= another?,
                }
            }
            // Another round is likely to take as long as this one did.
            let now = since.elapsed();
            more &= now + (now - before) <= budget;
        }
        Ok(())
    }

    /// Runs that count allocations. One that fails costs nothing else.
    fn counting(&mut self, group: &[usize], tracing: &mut Tracing<'_>) -> Result<(), Failure> {
        for index in (0..self.how.counting).flat_map(|_| group) {
            // A benchmark program counts by itself, and often runs as many operations as time allows.
            if self.ran[*index].clean_output.iter().any(|text| operation::is_benchmark(text)) {
                continue;
            }
            let hooks = &self.commands[*index].1;
            let mut counting = CountingRun::of_allocations();
            let counts = counting.probes(&self.ran[*index]);
            if counts.is_empty() {
                continue;
            }
            self.progress.say("runs that count allocations");
            let longest = counting.counting_time(&self.ran[*index].clean);
            hooks.prepare()?;
            let run = self.series[*index].traced_run(tracing, counts, Some(longest));
            hooks.conclude()?;
            self.series[*index].check_not_stopped()?;
            counting.finish(run.map_err(|failure| failure.to_string()));
            self.counted[*index].push(counting);
        }
        Ok(())
    }
}

fn side_runs(
    series: &Series<'_>,
    mut ran: RunResults,
    counted: Vec<CountingRun>,
    interrupted: bool,
) -> SideRuns {
    series.conclude(&mut ran);
    SideRuns { ran, wrote: series.wrote(), counted, interrupted }
}

/// The commands whose ledgers are wanted.
fn to_explain(why: TraceWhen, ran: &[RunResults], paired: bool) -> Vec<usize> {
    match why {
        TraceWhen::Always => (0..ran.len()).collect(),
        TraceWhen::Never => Vec::new(),
        TraceWhen::IfDifferent => {
            let Some((first, others)) = ran.split_first() else { return Vec::new() };
            let unlike = |(_, other): &(usize, &RunResults)| {
                shows_difference(&walls(first), &walls(other), paired)
            };
            let mut explained: Vec<usize> =
                (1..).zip(others).filter(unlike).map(|(index, _)| index).collect();
            if !explained.is_empty() {
                explained.insert(0, 0);
            }
            explained
        }
    }
}

fn walls(ran: &RunResults) -> Vec<f64> {
    ran.clean.iter().map(|run| run.wall.0.max(1) as f64).collect()
}

/// Whether the factor between the first command and every other is precise enough.
fn enough(runs: Runs, how: &InterleaveOptions, ran: &[&RunResults], since: Instant) -> bool {
    let Some((first, others)) = ran.split_first() else { return true };
    let done = first.clean.len();
    if let Runs::Count(n) = runs {
        return done as u64 >= u64::from(n);
    }
    let limit = |given: Option<u32>, usual: usize| {
        given.and_then(|given| usize::try_from(given).ok()).unwrap_or(usual)
    };
    let most = limit(how.most, MOST.max(limit(how.fewest, 0))).max(1);
    let fewest = limit(how.fewest, FEWEST_PAIRS).min(most).max(1);
    if done < fewest {
        return false;
    }
    let time = how.time.unwrap_or(TIME);
    let late = u32::try_from(ran.len()).is_ok_and(|n| since.elapsed() >= time * n);
    if late || done >= most {
        return true;
    }
    // The more runs there are, the less one more adds: check less often.
    let worth_checking = done.is_multiple_of(1 + done / 20);
    if others.is_empty() {
        let walls: Vec<u64> = first.clean.iter().map(|run| run.wall.0).collect();
        return worth_checking && summarise(&walls).precision() <= PRECISION;
    }
    worth_checking && others.iter().all(|other| is_precise(&walls(first), &walls(other)))
}

fn round(runs: Runs, done: usize) -> String {
    match runs {
        Runs::Count(n) => format!("round {} of {n}", done + 1),
        Runs::Auto => format!("round {}, until the factor is known to 0.5 %", done + 1),
    }
}

/// Random orders, the same sequence for the same number of commands.
pub(super) struct Order {
    of: Vec<usize>,
    state: u64,
}

impl Order {
    pub(super) fn new(count: usize) -> Self {
        Self { of: (0..count).collect(), state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// The next order (Fisher and Yates' shuffle over a linear congruential sequence).
    pub(super) fn draw(&mut self) -> Vec<usize> {
        for i in (1..self.of.len()).rev() {
            self.state =
                self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
            let choices = i as u64 + 1;
            let j = usize::try_from((self.state >> 33) % choices).unwrap_or(0);
            self.of.swap(i, j);
        }
        self.of.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_up_about_as_often() {
        let mut order = Order::new(2);
        let first = (0..1000).filter(|_| order.draw() == [0, 1]).count();
        assert!((400..600).contains(&first), "{first}");
        let mut three = Order::new(3);
        for _ in 0..100 {
            let mut drawn = three.draw();
            drawn.sort_unstable();
            assert_eq!(drawn, [0, 1, 2]);
        }
    }
}
