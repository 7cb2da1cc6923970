//! `--prove`: the program interleaved with a patched copy that lacks what a finding blames.
//!
//! One call site at a time. First a few untimed runs, to check that the copy does the same; then pairs of runs in random
//! order. Does not judge the pairs (`deadweight_core::proof`) or choose what to remove (the findings did).

use super::input::Input;
use super::interleave::Order;
use super::patched::{Copies, Folder};
use super::progress::Progress;
use super::series::{RunOptions, Series};
use crate::failure::Failure;
use deadweight_core::proof::{Ended, Trial, fewest, judge, not_tried, settle};
use deadweight_record::{Interrupts, Substitute};
use deadweight_report::report::{Finding, Proof, Removal, Report};
use deadweight_report::stats::ratio;
use deadweight_trace::units::Ns;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How many findings are proved: later ones save too little to measure.
const FINDINGS: usize = 3;
/// Pairs go on until the factor has this precision ...
const PRECISION: f64 = 0.01;
/// ... or this time has passed, or ...
const TIME: Duration = Duration::from_secs(20);
/// ... there are this many. One more than the test needs: a pair with equal times does not count.
const MOST: usize = 40;
/// A copy that takes this many times as long as the program counts as not ending ...
const TOO_LONG: u32 = 10;
/// ... but not before this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// Makes the C library fill allocated memory with another value than zero.
const FRESH_MEMORY: [&str; 3] =
    ["/usr/bin/env", "MALLOC_PERTURB_=165", "GLIBC_TUNABLES=glibc.malloc.perturb=165"];

/// What all trials have in common.
struct Prover<'a> {
    options: &'a RunOptions,
    input: Rc<Input>,
    folder: Folder,
    interrupts: Interrupts,
    progress: Progress,
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
    options: &RunOptions,
    input: Rc<Input>,
) -> Result<Option<i32>, Failure> {
    let able = |(_, finding): &(usize, &Finding)| !finding.removals.is_empty();
    let chosen = report.findings.iter().enumerate().filter(able).take(FINDINGS);
    let job = |(i, f): (usize, &Finding)| {
        let of = |removal: &Removal| (i, f.class.clone(), removal.clone());
        f.removals.iter().map(of).collect::<Vec<_>>()
    };
    let jobs: Vec<(usize, String, Removal)> = chosen.flat_map(job).collect();
    if jobs.is_empty() {
        report.warnings.push(
            "nothing was proved: no finding is of a kind that can be removed from a copy of the \
             program (zeroing, atomics, bounds checks)"
                .into(),
        );
        return Ok(None);
    }
    let failure = |source: io::Error| Failure::Repeat { what: "no folder for copies", source };
    let mut prover = Prover {
        options,
        input,
        folder: Folder::new().map_err(failure)?,
        interrupts: Interrupts::note(),
        progress: Progress::start(options.quiet),
    };
    let mut proofs: Vec<(usize, Proof)> = Vec::new();
    let count = jobs.len();
    let mut ran = false;
    for (number, (index, class, removal)) in jobs.iter().enumerate() {
        let saying = format!("proof {} of {count}: without {}", number + 1, removal.what);
        match prover.trial(class, removal, &saying) {
            Ok(trial) => {
                ran = true;
                proofs.push((*index, judge(class, removal, &trial)));
            }
            Err(Stop::NoResult(why)) => proofs.push((*index, not_tried(removal, &why))),
            Err(Stop::Interrupted) => {
                report.warnings.push(format!(
                    "interrupted in proof {} of {count}: the last run may have been of a patched copy",
                    number + 1
                ));
                break;
            }
        }
    }
    // Files that the program writes must at the end be those of the unpatched program.
    if ran && prover.interrupts.seen().is_none() {
        prover.progress.say("the program itself once more");
        Series::compared(options, Rc::clone(&prover.input))?.clean_run()?;
    }
    prover.progress.done();
    let clean = report.runs.clean.wall_ns.median;
    let scale = if report.net_ns > 0 { clean as f64 / report.net_ns as f64 } else { 1.0 };
    settle(report, proofs, scale);
    Ok(prover.interrupts.seen())
}

impl Prover<'_> {
    /// Runs the program with and without what `removal` removes.
    fn trial(&mut self, class: &str, removal: &Removal, saying: &str) -> Result<Trial, Stop> {
        let patches = removal.patches.as_ref().map_err(|why| Stop::NoResult(why.clone()))?;
        let binary = PathBuf::from(&removal.image);
        let copies = self.folder.copies(&binary, patches).map_err(Stop::NoResult)?;
        self.progress.say(saying);
        let Copies { original, patched } = copies;
        let substitute = |copy| Some(Substitute { binary: binary.clone(), copy });
        let with = RunOptions { substitute: substitute(original), ..self.options.clone() };
        let mut a = self.series(&with)?;
        let first = self.run(&mut a)?;
        self.run(&mut a)?;
        if let Some(did) = a.difference_from_first() {
            return Err(Stop::NoResult(format!(
                "a second run of the program itself {did}: there is nothing to compare with"
            )));
        }
        let limit = (Duration::from_nanos(first.0) * TOO_LONG).max(PATIENCE);
        let without = RunOptions {
            substitute: substitute(patched),
            limit: Some(limit),
            ..self.options.clone()
        };
        let mut b = self.series(&without)?;
        let took = self.run(&mut b)?;
        if Duration::from_nanos(took.0) >= limit {
            let did = format!("was still running after {} s", limit.as_secs());
            return Ok(Trial { pairs: Vec::new(), ended: Ended::Otherwise(did) });
        }
        let mut ended = compare(&a, &b)?;
        if class == "zeroing" && !matches!(ended, Ended::Otherwise(_)) {
            ended = self.with_filled_memory(&with, &without)?;
        }
        let mut trial = Trial { pairs: Vec::new(), ended };
        let mut order = Order::new(2);
        let since = Instant::now();
        while !matches!(trial.ended, Ended::Otherwise(_)) && !enough(&trial.pairs, since) {
            self.progress.say(&format!("{saying}: pair {}", trial.pairs.len() + 1));
            let mut pair = (Ns::ZERO, Ns::ZERO);
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

    /// Fresh memory from the kernel is zero, as if the program had zeroed it. Compares both where fresh memory is not
    /// zero.
    fn with_filled_memory(&self, with: &RunOptions, without: &RunOptions) -> Result<Ended, Stop> {
        let perturbed = |options: &RunOptions| {
            let words = FRESH_MEMORY.iter().map(Into::into).chain(options.argv.iter().cloned());
            RunOptions { argv: words.collect(), ..options.clone() }
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

    /// One run; returns its wall time.
    fn run(&self, series: &mut Series<'_>) -> Result<Ns, Stop> {
        let ran = series.clean_run().map_err(|failure| Stop::NoResult(failure.to_string()))?;
        match self.interrupts.seen() {
            Some(_) => Err(Stop::Interrupted),
            None => Ok(ran.wall),
        }
    }
}

/// Whether `b` does the same as `a`.
fn compare(a: &Series<'_>, b: &Series<'_>) -> Result<Ended, Stop> {
    let differs = b.differs_from(a).map_err(Stop::NoResult)?;
    let same = if a.wrote_anything() { Ended::Alike } else { Ended::Silent };
    Ok(differs.map_or(same, Ended::Otherwise))
}

/// Whether there are enough pairs.
fn enough(pairs: &[(Ns, Ns)], since: Instant) -> bool {
    if pairs.len() <= fewest() {
        return false;
    }
    let walls = |of: fn(&(Ns, Ns)) -> Ns| -> Vec<f64> {
        pairs.iter().map(|pair| of(pair).0 as f64).collect()
    };
    let known = ratio::of_pairs(&walls(|p| p.0), &walls(|p| p.1), 0.95)
        .is_some_and(|f| (f.high / f.low).ln() / 2.0 <= PRECISION);
    known || since.elapsed() >= TIME || pairs.len() >= MOST
}
