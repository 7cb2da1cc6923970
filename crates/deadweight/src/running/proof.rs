//! `--prove`: the program beside a copy that lacks what a finding blames, by turns.
//!
//! One place at a time. First a few runs that nobody times, to see that the copy does the same;
//! then pairs of runs in an order drawn anew. What the pairs say is `deadweight_core::proof`'s
//! business, what to leave out was found with the findings.

use super::input::Input;
use super::interleave::Order;
use super::patched::{Copies, Folder};
use super::progress::Progress;
use super::repeat::{Series, Wish};
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

/// Findings that are worth it: others save too little to be believed or not.
const FINDINGS: usize = 3;
/// Pairs go on until the factor is known this well ...
const PRECISION: f64 = 0.01;
/// ... or for so long, or ...
const TIME: Duration = Duration::from_secs(20);
/// ... so many. One more than the test needs: a pair that agrees exactly says nothing.
const MOST: usize = 40;
/// A copy that takes this many times as long as the program does not end.
const TOO_LONG: u32 = 10;
/// And at least so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Makes the C library fill memory that it hands out with another value than zero.
const FRESH_MEMORY: [&str; 3] =
    ["/usr/bin/env", "MALLOC_PERTURB_=165", "GLIBC_TUNABLES=glibc.malloc.perturb=165"];

/// What all trials have in common.
struct Bench<'a> {
    wish: &'a Wish,
    input: Rc<Input>,
    folder: Folder,
    interrupts: Interrupts,
    progress: Progress,
}

/// Why a trial has no result.
enum Stop {
    /// In words: there is none for this place.
    Untold(String),
    /// Somebody wants an end of it all.
    Interrupted,
}

/// Tries the report's best findings. Gives the signal that put an end to it, if one did.
///
/// # Errors
/// If the program can no longer be run at all.
pub fn prove(report: &mut Report, wish: &Wish, input: Rc<Input>) -> Result<Option<i32>, Failure> {
    let able = |(_, finding): &(usize, &Finding)| !finding.removals.is_empty();
    let chosen = report.findings.iter().enumerate().filter(able).take(FINDINGS);
    let job = |(i, f): (usize, &Finding)| {
        let of = |removal: &Removal| (i, f.class.clone(), removal.clone());
        f.removals.iter().map(of).collect::<Vec<_>>()
    };
    let jobs: Vec<(usize, String, Removal)> = chosen.flat_map(job).collect();
    if jobs.is_empty() {
        report.warnings.push(
            "nothing was proved: no finding is of a kind that can be left out of a copy of the \
             program (zeroing, atomics, bounds checks)"
                .into(),
        );
        return Ok(None);
    }
    let failure = |source: io::Error| Failure::Repeat { what: "no place for copies", source };
    let mut bench = Bench {
        wish,
        input,
        folder: Folder::new().map_err(failure)?,
        interrupts: Interrupts::note(),
        progress: Progress::start(wish.quiet),
    };
    let mut proofs: Vec<(usize, Proof)> = Vec::new();
    let count = jobs.len();
    let mut ran = false;
    for (number, (index, class, removal)) in jobs.iter().enumerate() {
        let saying = format!("proof {} of {count}: without {}", number + 1, removal.what);
        match bench.trial(class, removal, &saying) {
            Ok(trial) => {
                ran = true;
                proofs.push((*index, judge(class, removal, &trial)));
            }
            Err(Stop::Untold(why)) => proofs.push((*index, not_tried(removal, &why))),
            Err(Stop::Interrupted) => {
                report.warnings.push(format!(
                    "interrupted in proof {} of {count}: the last run may have been one of a copy that \
                     lacks something",
                    number + 1
                ));
                break;
            }
        }
    }
    // Files that it writes are those of the program itself again.
    if ran && bench.interrupts.seen().is_none() {
        bench.progress.say("the program itself once more");
        Series::compared(wish, Rc::clone(&bench.input))?.clean_run()?;
    }
    bench.progress.done();
    let clean = report.runs.clean.wall_ns.median;
    let scale = if report.net_ns > 0 { clean as f64 / report.net_ns as f64 } else { 1.0 };
    settle(report, proofs, scale);
    Ok(bench.interrupts.seen())
}

impl Bench<'_> {
    /// Runs the program with and without something.
    fn trial(&mut self, class: &str, removal: &Removal, saying: &str) -> Result<Trial, Stop> {
        let patches = removal.patches.as_ref().map_err(|why| Stop::Untold(why.clone()))?;
        let binary = PathBuf::from(&removal.image);
        let copies = self.folder.copies(&binary, patches).map_err(Stop::Untold)?;
        self.progress.say(saying);
        let Copies { original, patched } = copies;
        let standing = |copy| Some(Substitute { binary: binary.clone(), copy });
        let with = Wish { substitute: standing(original), ..self.wish.clone() };
        let mut a = self.series(&with)?;
        let first = self.run(&mut a)?;
        self.run(&mut a)?;
        if let Some(did) = a.varies() {
            return Err(Stop::Untold(format!(
                "a second run of the program itself {did}, so there is nothing to compare with"
            )));
        }
        let limit = (Duration::from_nanos(first.0) * TOO_LONG).max(PATIENCE);
        let without =
            Wish { substitute: standing(patched), limit: Some(limit), ..self.wish.clone() };
        let mut b = self.series(&without)?;
        let took = self.run(&mut b)?;
        if Duration::from_nanos(took.0) >= limit {
            let did = format!("was still running after {} s", limit.as_secs());
            return Ok(Trial { pairs: Vec::new(), ended: Ended::Otherwise(did) });
        }
        let mut ended = alike(&a, &b)?;
        if class == "zeroing" && !matches!(ended, Ended::Otherwise(_)) {
            ended = self.with_other_memory(&with, &without)?;
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
            if let Some(did) = a.varies() {
                return Err(Stop::Untold(format!("a later run of the program itself {did}")));
            }
            trial.ended = alike(&a, &b)?;
        }
        Ok(trial)
    }

    /// Memory that the kernel hands out is zero by itself, and what is read there looks as if it
    /// had been cleared. Whether they are still alike where it is not.
    fn with_other_memory(&self, with: &Wish, without: &Wish) -> Result<Ended, Stop> {
        let perturbed = |wish: &Wish| {
            let words = FRESH_MEMORY.iter().map(Into::into).chain(wish.argv.iter().cloned());
            Wish { argv: words.collect(), ..wish.clone() }
        };
        let (with, without) = (perturbed(with), perturbed(without));
        let (mut a, mut b) = (self.series(&with)?, self.series(&without)?);
        self.run(&mut a)?;
        self.run(&mut b)?;
        Ok(match alike(&a, &b)? {
            Ended::Otherwise(did) => Ended::Otherwise(format!(
                "{did} as soon as fresh memory held something else than zeroes"
            )),
            ended => ended,
        })
    }

    fn series<'w>(&self, wish: &'w Wish) -> Result<Series<'w>, Stop> {
        let series = Series::compared(wish, Rc::clone(&self.input));
        series.map_err(|failure| Stop::Untold(failure.to_string()))
    }

    /// One run, and how long it took.
    fn run(&self, series: &mut Series<'_>) -> Result<Ns, Stop> {
        let ran = series.clean_run().map_err(|failure| Stop::Untold(failure.to_string()))?;
        match self.interrupts.seen() {
            Some(_) => Err(Stop::Interrupted),
            None => Ok(ran.wall),
        }
    }
}

/// Whether `b` does what `a` does.
fn alike(a: &Series<'_>, b: &Series<'_>) -> Result<Ended, Stop> {
    let differs = b.differs_from(a).map_err(Stop::Untold)?;
    let alike = if a.wrote_anything() { Ended::Alike } else { Ended::Silent };
    Ok(differs.map_or(alike, Ended::Otherwise))
}

/// Whether the pairs tell enough.
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
