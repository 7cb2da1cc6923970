//! Several commands by turns, so that all of them see the same machine.
//!
//! Warm-ups, then rounds: in each, every command once without tracing, in an order drawn anew, so
//! that none always follows the same other. Traced runs come after all timed ones, by turns too, and
//! only of commands whose difference is to be explained. Output is drained and compared, never
//! passed on. Not for one command alone: that is `repeat`.

use super::around::Around;
use super::input::Input;
use super::output::Written;
use super::progress::Progress;
use super::repeat::{KEPT, Ran, Series, Tracing, Wish};
use crate::cli::Runs;
use crate::failure::Failure;
use deadweight_core::CleanRun;
use deadweight_record::Request;
use deadweight_report::compare::{FEWEST_PAIRS, PRECISION, is_precise, shows_difference};
use deadweight_report::stats::median::summarise;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// No comparison needs more rounds than this.
const MOST: usize = 1000;
/// Without `-r`, rounds go on until the factor is known well, or for so long, per command.
const TIME: Duration = Duration::from_millis(2500);
/// Traced runs may take half as long as the timed ones did, or so long for each command ...
const REASONING: Duration = Duration::from_millis(500);
/// ... and so long where all ledgers are asked for: then their rows are what matters.
const READING: Duration = Duration::from_secs(2);

/// Which commands are traced.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Why {
    /// The first one and those that are not shown to be like it, or none.
    #[default]
    IfDifferent,
    /// All.
    Always,
    /// None.
    Never,
}

/// What came of one command.
#[derive(Debug)]
pub struct Contender {
    /// Its runs.
    pub ran: Ran,
    /// What it wrote, as far as it could be read.
    pub wrote: Option<Written>,
}

/// What holds for all commands.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// What they read; our own standard input if nothing is said.
    pub input: Option<PathBuf>,
    /// Where the standard output of each goes; into the kind of file that ours is if nothing is said.
    pub outputs: Vec<Option<PathBuf>>,
    /// Never fewer runs of each than this.
    pub fewest: Option<u32>,
    /// Never more.
    pub most: Option<u32>,
    /// Which of them are traced.
    pub why: Why,
}

/// Runs all commands by turns; with each stands what is to be done around its runs.
///
/// # Errors
/// If one of them cannot be started or recorded, fails without leave, or if what is to be done
/// around it fails.
pub fn interleave(
    wishes: &[(Wish, Around)],
    manner: &Manner,
    tracing: &mut Tracing<'_>,
) -> Result<Vec<Contender>, Failure> {
    let kept = match &manner.input {
        Some(path) => Input::file(path),
        None => Input::repeatable(),
    };
    let input = Rc::new(kept.map_err(|source| Failure::Repeat { what: KEPT, source })?);
    let series: Vec<Series<'_>> = wishes
        .iter()
        .enumerate()
        .map(|(at, (wish, _))| {
            let output = manner.outputs.get(at).and_then(Option::as_deref);
            Series::beside(wish, Rc::clone(&input), output)
        })
        .collect::<Result<_, _>>()?;
    let ran: Vec<Ran> = wishes.iter().map(|_| Ran::default()).collect();
    let progress = Progress::start(wishes.iter().any(|(wish, _)| wish.quiet));
    let mut turns = Turns { wishes, manner, series, ran, progress };
    let all: Vec<usize> = (0..wishes.len()).collect();
    let arounds: Vec<&Around> = wishes.iter().map(|(_, around)| around).collect();
    let paired = by_turns(&arounds);
    let groups: Vec<&[usize]> = if paired { vec![&all] } else { all.chunks(1).collect() };
    let since = Instant::now();
    for group in &groups {
        turns.among(group, |turns| turns.clean(group))?;
    }
    let each = if manner.why == Why::Always { READING } else { REASONING };
    let budget = (since.elapsed() / 2).max(each * u32::try_from(wishes.len()).unwrap_or(1));
    let whom = to_explain(manner.why, &turns.ran, paired);
    for group in &groups {
        let group: Vec<usize> = group.iter().copied().filter(|at| whom.contains(at)).collect();
        let part = u32::try_from(groups.len()).unwrap_or(1);
        turns.among(&group, |turns| turns.traced(&group, budget / part, tracing))?;
    }
    turns.progress.done();
    let done = turns.series.into_iter().zip(turns.ran);
    Ok(done.map(|(one, ran)| contender(one, ran)).collect())
}

/// Whether commands can be run by turns: what is set up for one must not be in the way of another.
#[must_use]
pub fn by_turns(arounds: &[&Around]) -> bool {
    arounds.windows(2).all(|pair| pair[0].setup == pair[1].setup)
}

/// Runs under way.
struct Turns<'w> {
    wishes: &'w [(Wish, Around)],
    manner: &'w Manner,
    series: Vec<Series<'w>>,
    ran: Vec<Ran>,
    progress: Progress,
}

impl Turns<'_> {
    /// What is set up before and cleaned up after, once however many of the group say the same.
    fn among(
        &mut self,
        group: &[usize],
        act: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let around = |at: &usize| &self.wishes[*at].1;
        let arounds: Vec<&Around> = group.iter().map(around).collect();
        for (at, around) in arounds.iter().enumerate() {
            if arounds[..at].iter().all(|before| before.setup != around.setup) {
                around.set_up()?;
            }
        }
        act(self)?;
        for (at, around) in arounds.iter().enumerate() {
            if arounds[..at].iter().all(|before| before.cleanup != around.cleanup) {
                around.clean_up()?;
            }
        }
        Ok(())
    }

    /// Warm-ups and undisturbed runs of a group, by turns.
    fn clean(&mut self, group: &[usize]) -> Result<(), Failure> {
        let warmup = self.wishes.iter().map(|(wish, _)| wish.warmup).max().unwrap_or(0);
        for number in 0..warmup {
            self.progress.say(&format!("warm-up {} of {warmup}", number + 1));
            for index in group {
                self.one(*index)?;
            }
        }
        let runs = self.wishes.first().map_or(Runs::Auto, |(wish, _)| wish.runs);
        let since = Instant::now();
        let mut order = Order::new(group.len());
        loop {
            let ran: Vec<&Ran> = group.iter().map(|at| &self.ran[*at]).collect();
            if enough(runs, self.manner, &ran, since) {
                return Ok(());
            }
            self.progress.say(&round(runs, ran.first().map_or(0, |r| r.clean.len())));
            for index in order.draw() {
                let run = self.one(group[index])?;
                self.ran[group[index]].clean.push(run);
            }
        }
    }

    fn one(&mut self, index: usize) -> Result<CleanRun, Failure> {
        let around = &self.wishes[index].1;
        around.make_ready()?;
        let run = self.series[index].clean_run()?;
        self.series[index].must_go_on()?;
        around.conclude()?;
        Ok(run)
    }

    /// Traced runs of a group, by turns, one of each at least and no more than the time allows.
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
                let around = &self.wishes[*index].1;
                let mut traced = |request: &Request| {
                    around.make_ready()?;
                    let trace = tracing(request)?;
                    around.conclude()?;
                    Ok(trace)
                };
                let ran = &mut self.ran[*index];
                more |= self.series[*index].one_more_traced(ran, &mut traced)?;
            }
            // Another round is likely to take as long as this one did.
            let now = since.elapsed();
            more &= now + (now - before) <= budget;
        }
        Ok(())
    }
}

fn contender(series: Series<'_>, mut ran: Ran) -> Contender {
    ran.exit = series.exit();
    ran.hazards = series.hazards(ran.clean.len());
    Contender { ran, wrote: series.wrote() }
}

/// The commands whose ledgers are wanted.
fn to_explain(why: Why, ran: &[Ran], paired: bool) -> Vec<usize> {
    match why {
        Why::Always => (0..ran.len()).collect(),
        Why::Never => Vec::new(),
        Why::IfDifferent => {
            let Some((first, others)) = ran.split_first() else { return Vec::new() };
            let unlike =
                |(_, other): &(usize, &Ran)| shows_difference(&walls(first), &walls(other), paired);
            let mut whom: Vec<usize> =
                (1..).zip(others).filter(unlike).map(|(index, _)| index).collect();
            if !whom.is_empty() {
                whom.insert(0, 0);
            }
            whom
        }
    }
}

fn walls(ran: &Ran) -> Vec<f64> {
    ran.clean.iter().map(|run| run.wall.0.max(1) as f64).collect()
}

/// Whether the factor between the first command and every other is known well enough.
fn enough(runs: Runs, manner: &Manner, ran: &[&Ran], since: Instant) -> bool {
    let Some((first, others)) = ran.split_first() else { return true };
    let done = first.clean.len();
    if let Runs::Count(n) = runs {
        return done as u64 >= u64::from(n);
    }
    let limit = |wish: Option<u32>, usual: usize| {
        wish.and_then(|wish| usize::try_from(wish).ok()).unwrap_or(usual)
    };
    let most = limit(manner.most, MOST.max(limit(manner.fewest, 0))).max(1);
    let fewest = limit(manner.fewest, FEWEST_PAIRS).min(most).max(1);
    if done < fewest {
        return false;
    }
    let late = u32::try_from(ran.len()).is_ok_and(|n| since.elapsed() >= TIME * n);
    if late || done >= most {
        return true;
    }
    // The more there are, the less one more tells.
    let worth_asking = done.is_multiple_of(1 + done / 20);
    if others.is_empty() {
        let walls: Vec<u64> = first.clean.iter().map(|run| run.wall.0).collect();
        return worth_asking && summarise(&walls).precision() <= PRECISION;
    }
    worth_asking && others.iter().all(|other| is_precise(&walls(first), &walls(other)))
}

fn round(runs: Runs, done: usize) -> String {
    match runs {
        Runs::Count(n) => format!("round {} of {n}", done + 1),
        Runs::Auto => format!("round {}, until the factor is known to 0.5 %", done + 1),
    }
}

/// Orders drawn at random, the same ones for the same number of commands.
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
