//! `--prove`: the command interleaved with itself without what a finding blames.
//!
//! - In: a report's findings, with what can be left out of runs.
//! - Out: a trial for each; the findings then have measured savings, or are withdrawn.
//! - Must not know: how pairs are judged (`deadweight_core::proof`), or what to leave out (the findings).
//!
//! One cost at a time. First a few untimed runs, to check that the command does the same without it; then pairs of runs in
//! random order. `means` leaves costs out.

pub(crate) mod guard;
mod last_run;
pub mod means;

use super::input::Input;
use super::interleave::Order;
use super::progress::Progress;
use super::series::{RunOptions, Series};
use crate::cli::Classes;
use crate::failure::Failure;
use deadweight_core::proof::{Ended, Timed, Trial, fewest, judge, not_tried, settle};
use deadweight_record::Interrupts;
use deadweight_report::report::{Change, Finding, Proof, Removal, Report};
use deadweight_report::stats::ratio;
use deadweight_report::wording::{things, time};
use deadweight_trace::Exit;
use deadweight_trace::units::Ns;
use guard::Guard;
use means::{Control, Folder};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A finding that can save less is too small to measure in a reasonable time.
const WORTH: f64 = 0.05;
/// Pairs go on until the factor has this precision ...
const PRECISION: f64 = 0.01;
/// ... or this time has passed, or ...
const TIME: Duration = Duration::from_secs(20);
/// ... there are this many. One more than the test needs: a pair with equal times does not count.
const MOST: usize = 40;
/// Runs that take this many times as long, and the next one too, save nothing: no pairs are needed.
const MUCH_LONGER: u64 = 2;
/// Runs that take this many times as long count as not ending ...
const TOO_LONG: u32 = 10;
/// ... but not before this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// Runs before the pairs: two with, two without, and two with filled memory or one with a control.
const FIRST_RUNS: u32 = 6;
/// Makes the C library fill allocated memory with another value than zero.
const FRESH_MEMORY: [(&str, &str); 2] =
    [("MALLOC_PERTURB_", "165"), ("GLIBC_TUNABLES", "glibc.malloc.perturb=165")];

/// How to prove.
#[derive(Copy, Clone, Debug)]
pub struct ProofOptions<'a> {
    /// The command.
    pub run: &'a RunOptions,
    /// Whose findings are proved.
    pub classes: &'a Classes,
    /// How long all proofs together may take.
    pub budget: Duration,
    /// How the command ended before.
    pub exit: Exit,
}

/// What all trials have in common.
struct Prover<'a> {
    options: &'a ProofOptions<'a>,
    input: Rc<Input>,
    folder: Folder,
    guard: Guard,
    interrupts: Interrupts,
    progress: Progress,
    until: Instant,
    /// Warnings that were printed.
    warned: Vec<&'static str>,
    /// Whether a run of a proof was begun.
    began: bool,
}

/// A removal to try, and the findings that it belongs to.
struct Job {
    findings: Vec<usize>,
    class: String,
    removal: Removal,
    /// The finding's cost, or what it may save, as a share of the time.
    at_most: f64,
}

/// Why a trial has no result.
enum Stop {
    /// The reason, in words.
    NoResult(String),
    /// The user interrupted it.
    Interrupted,
}

/// Proves the report's best findings. Returns the signal that stopped it, if any.
///
/// # Errors
/// If the program can no longer be run at all.
pub fn prove(
    report: &mut Report,
    options: &ProofOptions<'_>,
    input: Rc<Input>,
) -> Result<Option<i32>, Failure> {
    let jobs = jobs(report, options.classes);
    if jobs.iter().all(|job| job.removal.change.is_err()) {
        report.warnings.push(nothing_to_try(options.classes));
    }
    let failure = |source: io::Error| Failure::Repeat { what: "no folder for proofs", source };
    let folder = Folder::new().map_err(failure)?;
    let mut prover = Prover {
        options,
        input,
        guard: Guard::start(folder.path()).map_err(failure)?,
        folder,
        interrupts: Interrupts::note(),
        progress: Progress::start(options.run.quiet),
        until: Instant::now() + options.budget,
        warned: Vec::new(),
        began: false,
    };
    prover.announce(&jobs);
    let mut proofs: Vec<(Vec<usize>, Proof)> = Vec::new();
    let count = jobs.len();
    let mut broken_off = None;
    for (number, job) in jobs.iter().enumerate() {
        let Job { findings, class, removal, at_most } = job;
        let proof = format!("proof {} of {count}", number + 1);
        let saying = format!("{proof}: {}", changed(removal));
        match prover.trial(class, removal, &saying) {
            Ok(trial) => proofs.push((findings.clone(), judge(class, removal, &trial))),
            Err(Stop::NoResult(why)) => {
                proofs.push((findings.clone(), not_tried(removal, &why, *at_most)));
            }
            Err(Stop::Interrupted) => {
                broken_off = Some((proof, changed(removal)));
                break;
            }
        }
    }
    report.warnings.extend(prover.last_run(broken_off));
    prover.progress.done();
    let clean = report.runs.clean.wall_ns.median;
    let scale = if report.net_ns > 0 { clean as f64 / report.net_ns as f64 } else { 1.0 };
    settle(report, proofs, scale);
    Ok(prover.interrupts.seen())
}

/// Why nothing is proved of a process that runs already, and what could be.
#[must_use]
pub fn of_a_running_process(report: &Report, classes: &Classes) -> String {
    let jobs = jobs(report, classes);
    let mut what: Vec<String> = { jobs.iter() }
        .filter(|job| job.removal.change.is_ok())
        .map(|job| changed(&job.removal))
        .collect();
    what.dedup();
    let why = "nothing was proved: a process that runs already cannot be run again";
    match what[..] {
        [] => format!("{why}; none of its findings saves 5 % or more and can be left out"),
        _ => format!(
            "{why}. `deadweight --prove -- COMMAND` would run its command up to {} times, half of them {}",
            FIRST_RUNS as usize + 2 * MOST,
            what.join(", then as often, half of them ")
        ),
    }
}

/// What differs in one of the sides: `without small reads`.
fn changed(removal: &Removal) -> String {
    match removal.change {
        Ok(Change::Twice(..)) => format!("with {} made twice", removal.what),
        _ => format!("without {}", removal.what),
    }
}

fn nothing_to_try(classes: &Classes) -> String {
    let of_these = match classes {
        Classes::All => String::new(),
        Classes::These(classes) => format!(" of {}", classes.join(" or ")),
    };
    format!(
        "nothing was proved: no finding{of_these} saves 5 % or more and can be left out (deadweight --list-proofs)"
    )
}

/// What to try, best finding first. A change that leaves out a cost in all processes is tried once.
fn jobs(report: &Report, classes: &Classes) -> Vec<Job> {
    let worth = |finding: &Finding| {
        finding.saving_share.max(finding.high) >= WORTH && classes.contain(&finding.class)
    };
    let mut jobs: Vec<Job> = Vec::new();
    for (index, finding) in report.findings.iter().enumerate().filter(|(_, f)| worth(f)) {
        for removal in &finding.removals {
            let same = |job: &&mut Job| {
                job.class == finding.class
                    && removal.change.is_ok()
                    && job.removal.change == removal.change
            };
            if let Some(job) = jobs.iter_mut().find(same) {
                job.findings.push(index);
                continue;
            }
            jobs.push(Job {
                findings: vec![index],
                class: finding.class.clone(),
                removal: removal.clone(),
                at_most: (finding.amount_ns as f64 / report.net_ns.max(1) as f64)
                    .max(finding.high)
                    .min(1.0),
            });
        }
    }
    jobs
}

impl Prover<'_> {
    /// Runs the command with and without what `removal` leaves out.
    fn trial(&mut self, class: &str, removal: &Removal, saying: &str) -> Result<Trial, Stop> {
        let change = removal.change.as_ref().map_err(|why| Stop::NoResult(why.clone()))?;
        if Instant::now() >= self.until {
            return Err(Stop::NoResult("the time for proofs is over (--prove-budget)".into()));
        }
        let sides = means::sides(change, self.options.run, &self.folder);
        let mut sides = sides.map_err(Stop::NoResult)?;
        let control = sides.control.as_mut().map(|control| &mut control.run);
        for side in [&mut sides.with, &mut sides.without].into_iter().chain(control) {
            side.changes.environment.push(self.guard.mark());
        }
        self.warn(change);
        self.progress.say(saying);
        self.began = true;
        let (mut a, first) = self.as_it_is(&sides.with)?;
        let limit = (Duration::from_nanos(first.wall.0) * TOO_LONG).max(PATIENCE);
        sides.without.changes.limit = Some(limit);
        let mut b = self.series(&sides.without)?;
        let took = self.run(&mut b)?;
        if Duration::from_nanos(took.wall.0) >= limit {
            let did = format!("was still running after {} s", limit.as_secs());
            self.check_unnoticed(&a, sides.control.as_ref())?;
            return Ok(Trial { pairs: Vec::new(), ended: Ended::Otherwise(did) });
        }
        if let Some(effect) = &sides.effect {
            effect.check().map_err(Stop::NoResult)?;
        }
        let adds = matches!(change, Change::Twice(..));
        if !adds && took.wall.0 > MUCH_LONGER * first.wall.0 {
            let again = self.run(&mut b)?;
            if again.wall.0 > MUCH_LONGER * first.wall.0 {
                let times = again.wall.0 as f64 / first.wall.0.max(1) as f64;
                return Err(Stop::NoResult(format!("such runs take {times:.1} times as long")));
            }
        }
        let mut ended = compare(&a, &b)?;
        if matches!(ended, Ended::Otherwise(_)) {
            self.check_unnoticed(&a, sides.control.as_ref())?;
        }
        if class == "zeroing" && !matches!(ended, Ended::Otherwise(_)) {
            ended = self.with_filled_memory(&sides.with, &sides.without)?;
        }
        let mut trial = Trial { pairs: Vec::new(), ended };
        let mut order = Order::new(2);
        let until = self.until.min(Instant::now() + TIME);
        while !matches!(trial.ended, Ended::Otherwise(_)) && !enough(&trial.pairs, until) {
            self.progress.say(&format!("{saying}: pair {}", trial.pairs.len() + 1));
            let mut pair = (Timed::default(), Timed::default());
            for which in order.draw() {
                if which == 0 {
                    pair.0 = self.run(&mut a)?;
                } else {
                    pair.1 = self.run(&mut b)?;
                }
            }
            trial.pairs.push(pair);
            if let Some(did) = a.difference_from_first() {
                return Err(Stop::NoResult(format!("a later run of the program itself {did}")));
            }
            trial.ended = compare(&a, &b)?;
        }
        Ok(trial)
    }

    /// Two runs of the command as it is: they end as before, do the same, and leave time for pairs. Returns what the first
    /// one took.
    fn as_it_is<'w>(&self, with: &'w RunOptions) -> Result<(Series<'w>, Timed), Stop> {
        let mut series = self.series(with)?;
        let first = self.run(&mut series)?;
        if series.first_exit() != Some(self.options.exit) {
            return Err(Stop::NoResult(
                "a run of the program itself ended otherwise than the first one".into(),
            ));
        }
        let runs = FIRST_RUNS + 2 * u32::try_from(fewest() + 1).unwrap_or(u32::MAX);
        let needed = Duration::from_nanos(first.wall.0).saturating_mul(runs);
        let left = self.until.saturating_duration_since(Instant::now());
        if needed > left {
            return Err(Stop::NoResult(format!(
                "{runs} runs take about {}, and {} are left of --prove-budget",
                time(nanoseconds(needed)),
                time(nanoseconds(left))
            )));
        }
        self.run(&mut series)?;
        if let Some(did) = series.difference_from_first() {
            return Err(Stop::NoResult(format!(
                "a second run of the program itself {did}: there is nothing to compare with"
            )));
        }
        Ok((series, first))
    }

    /// Says how often the command will run, and what that repeats.
    fn announce(&mut self, jobs: &[Job]) {
        let costs = jobs.iter().filter(|job| job.removal.change.is_ok()).count() as u64;
        if costs > 0 && !self.options.run.quiet {
            let (costs, budget) = (things(costs, "cost"), time(nanoseconds(self.options.budget)));
            self.progress.note(&format!(
                "deadweight: --prove runs the command up to {} times more for each of {costs}, for {budget} at most: what it writes \
                 or sends, it writes or sends each time",
                FIRST_RUNS as usize + 2 * MOST
            ));
        }
    }

    /// Says what the user should know before runs with this change begin, once.
    fn warn(&mut self, change: &Change) {
        let Some(warning) = means::warning(change).filter(|text| !self.warned.contains(text))
        else {
            return;
        };
        self.warned.push(warning);
        if !self.options.run.quiet {
            self.progress.note(&format!("deadweight: {warning}"));
        }
    }

    /// A program that does otherwise although nothing but a trace of the means differs shows nothing about the cost.
    fn check_unnoticed(&self, a: &Series<'_>, control: Option<&Control>) -> Result<(), Stop> {
        let Some(control) = control else { return Ok(()) };
        let cannot = |error| Stop::NoResult(format!("its binary cannot be copied: {error}"));
        control.prepare().map_err(cannot)?;
        let mut series = self.series(&control.run)?;
        self.run(&mut series)?;
        match compare(a, &series)? {
            Ended::Otherwise(_) => {
                Err(Stop::NoResult("the program reads its own file, and notices a change".into()))
            }
            _ => Ok(()),
        }
    }

    /// Fresh memory from the kernel is zero, as if the program had zeroed it. Compares both where fresh memory is not
    /// zero.
    fn with_filled_memory(&self, with: &RunOptions, without: &RunOptions) -> Result<Ended, Stop> {
        let perturbed = |options: &RunOptions| {
            let mut perturbed = options.clone();
            let variables = FRESH_MEMORY.iter().map(|(name, value)| (name.into(), value.into()));
            perturbed.changes.environment.extend(variables);
            perturbed
        };
        let (with, without) = (perturbed(with), perturbed(without));
        let (mut a, mut b) = (self.series(&with)?, self.series(&without)?);
        self.run(&mut a)?;
        self.run(&mut b)?;
        Ok(match compare(&a, &b)? {
            Ended::Otherwise(did) => {
                Ended::Otherwise(format!("{did} when fresh memory held other values than zero"))
            }
            ended => ended,
        })
    }

    fn series<'w>(&self, options: &'w RunOptions) -> Result<Series<'w>, Stop> {
        let series = Series::compared(options, Rc::clone(&self.input));
        series.map_err(|failure| Stop::NoResult(failure.to_string()))
    }

    /// One run; returns what it took.
    fn run(&self, series: &mut Series<'_>) -> Result<Timed, Stop> {
        let ran = series.clean_run().map_err(|failure| Stop::NoResult(failure.to_string()))?;
        match self.interrupts.seen() {
            Some(_) => Err(Stop::Interrupted),
            None => Ok(Timed { wall: ran.wall, cpu: ran.user + ran.system, max_rss: ran.max_rss }),
        }
    }
}

/// Whether `b` does the same as `a`.
fn compare(a: &Series<'_>, b: &Series<'_>) -> Result<Ended, Stop> {
    let differs = b.differs_from(a).map_err(Stop::NoResult)?;
    let same = if a.wrote_anything() { Ended::Alike } else { Ended::Silent };
    Ok(differs.map_or(same, Ended::Otherwise))
}

fn nanoseconds(time: Duration) -> Ns {
    Ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Whether there are enough pairs.
fn enough(pairs: &[(Timed, Timed)], until: Instant) -> bool {
    if pairs.len() <= fewest() {
        return false;
    }
    let walls = |of: fn(&(Timed, Timed)) -> Ns| -> Vec<f64> {
        pairs.iter().map(|pair| of(pair).0 as f64).collect()
    };
    let known = ratio::of_pairs(&walls(|p| p.0.wall), &walls(|p| p.1.wall), 0.95)
        .is_some_and(|f| (f.high / f.low).ln() / 2.0 <= PRECISION);
    known || Instant::now() >= until || pairs.len() >= MOST
}
