//! Several commands by turns, so that all of them see the same machine.
//!
//! Warm-ups, then rounds: in each, every command once without tracing, in an order drawn anew, so
//! that none always follows the same other. Traced runs come after all timed ones. Output is
//! drained and compared, never passed on. Not for one command alone: that is `repeat`.

use super::input::Input;
use super::output::Written;
use super::progress::Progress;
use super::repeat::{KEPT, Ran, Series, Tracing, Wish};
use crate::cli::Runs;
use crate::failure::Failure;
use deadweight_core::stats::ratio;
use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Without `-r`, so many rounds are made at least: enough for the test of pairs to speak.
const FEWEST: usize = 12;
/// No comparison needs more rounds than this.
const MOST: usize = 1000;
/// Without `-r`, rounds go on until the factor is known this well ...
const PRECISION: f64 = 0.005;
/// ... or for so long, per command.
const TIME: Duration = Duration::from_secs(4);

/// What came of one command.
#[derive(Debug)]
pub struct Contender {
    /// Its runs.
    pub ran: Ran,
    /// What it wrote, as far as it could be read.
    pub wrote: Option<Written>,
}

/// Runs all commands by turns. `prepare` is a shell command before each run, in nobody's time.
///
/// # Errors
/// If one of them cannot be started or recorded, fails without leave, or if `prepare` fails.
pub fn interleave(
    wishes: &[Wish],
    prepare: Option<&OsString>,
    tracing: &mut Tracing<'_>,
) -> Result<Vec<Contender>, Failure> {
    let kept = Input::repeatable();
    let input = Rc::new(kept.map_err(|source| Failure::Repeat { what: KEPT, source })?);
    let mut series: Vec<Series<'_>> = wishes
        .iter()
        .map(|wish| Series::beside(wish, Rc::clone(&input)))
        .collect::<Result<_, _>>()?;
    let mut ran: Vec<Ran> = wishes.iter().map(|_| Ran::default()).collect();
    let mut progress = Progress::start(wishes.iter().any(|wish| wish.quiet));
    let warmup = wishes.iter().map(|wish| wish.warmup).max().unwrap_or(0);
    for number in 0..warmup {
        progress.say(&format!("warm-up {} of {warmup}", number + 1));
        for one in &mut series {
            make_ready(prepare)?;
            one.clean_run()?;
            one.must_go_on()?;
        }
    }
    let runs = wishes.first().map_or(Runs::Auto, |wish| wish.runs);
    let since = Instant::now();
    let mut order = Order::new(series.len());
    while !enough(runs, &ran, since) {
        progress.say(&round(runs, ran.first().map_or(0, |r| r.clean.len())));
        for index in order.draw() {
            make_ready(prepare)?;
            let run = series[index].clean_run()?;
            series[index].must_go_on()?;
            ran[index].clean.push(run);
        }
    }
    for (one, ran) in series.iter_mut().zip(&mut ran) {
        progress.say("traced runs");
        make_ready(prepare)?;
        one.traced_runs(ran, tracing)?;
    }
    progress.done();
    Ok(series.into_iter().zip(ran).map(|(one, ran)| contender(one, ran)).collect())
}

fn contender(series: Series<'_>, mut ran: Ran) -> Contender {
    ran.exit = series.exit();
    ran.hazards = series.hazards(ran.clean.len());
    Contender { ran, wrote: series.wrote() }
}

/// Whether the factor between the first command and every other is known well enough.
fn enough(runs: Runs, ran: &[Ran], since: Instant) -> bool {
    let Some((first, others)) = ran.split_first() else { return true };
    let done = first.clean.len();
    if let Runs::Count(n) = runs {
        return done as u64 >= u64::from(n);
    }
    if done < FEWEST {
        return false;
    }
    let walls = |ran: &Ran| -> Vec<f64> { ran.clean.iter().map(|r| r.wall.0 as f64).collect() };
    let known = others.iter().all(|other| {
        ratio::of_pairs(&walls(first), &walls(other), 0.95)
            .is_some_and(|f| (f.high / f.low).ln() / 2.0 <= PRECISION)
    });
    let late = u32::try_from(ran.len()).is_ok_and(|n| since.elapsed() >= TIME * n);
    known || late || done >= MOST
}

fn round(runs: Runs, done: usize) -> String {
    match runs {
        Runs::Count(n) => format!("round {} of {n}", done + 1),
        Runs::Auto => format!("round {}, until the factor is known to 0.5 %", done + 1),
    }
}

/// Runs the user's preparation; its output goes nowhere.
fn make_ready(prepare: Option<&OsString>) -> Result<(), Failure> {
    let Some(line) = prepare else { return Ok(()) };
    let failed = |source| Failure::Repeat { what: "the command of --prepare failed", source };
    let done = Command::new("/bin/sh").arg("-c").arg(line).output().map_err(failed)?;
    if done.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&done.stderr);
    let told = told.lines().last().unwrap_or_default();
    Err(failed(io::Error::other(format!("{} {told}", done.status))))
}

/// Orders drawn at random, the same ones for the same number of commands.
struct Order {
    of: Vec<usize>,
    state: u64,
}

impl Order {
    fn new(count: usize) -> Self {
        Self { of: (0..count).collect(), state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// The next order (Fisher and Yates' shuffle over a linear congruential sequence).
    fn draw(&mut self) -> Vec<usize> {
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

    #[test]
    fn a_preparation_that_fails_is_told_with_its_words() {
        let line = OsString::from("echo no such luck >&2; exit 3");
        let told = make_ready(Some(&line)).unwrap_err().to_string();
        assert!(told.contains("--prepare") && told.contains("no such luck"), "{told}");
        make_ready(Some(&"true".into())).unwrap();
        make_ready(None).unwrap();
    }
}
