//! Whether a program got worse between two versions, for a gate in CI: red only for what a second measurement confirms.
//!
//! - In: reports of both versions, measured alternately, with runs without tracing, traced ones, and counted
//!   allocations; a [`policy::Policy`]; perhaps a second such measurement.
//! - Out: a [`Judgement`]: each change with its limit, whether it counts, and why not.
//! - Must not know: how commands are run, or how a judgement is shown.
//!
//! Counts come first: what does not depend on the clock has no noise, so a small growth is shown by few runs. Times are
//! tested as in `compare`. A row of the ledger that grew while another shrank is work that moved.

mod counts;
pub mod policy;
mod rows;
mod times;

use crate::compare::{Comparison, compare};
use crate::report::{Report, Site};
use policy::{Limits, Policy};
use serde::{Deserialize, Serialize};

/// The version of [`Judgement`]'s JSON form.
pub const SCHEMA: u32 = 1;

/// Why a growth is unsure whose whole interval lies beyond the limit.
const TOO_FEW: &str = "so few runs cannot show it";

/// Both versions, measured once.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// The version that is known.
    pub base: Side,
    /// The version that is judged.
    pub head: Side,
}

/// One version's runs.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// The report of its runs.
    pub report: Report,
    /// CPU time of each run without tracing in ns, in order.
    pub cpu: Vec<f64>,
    /// Allocations of each run that counted all of them: their number and bytes.
    pub allocations: Vec<[u64; 2]>,
    /// What the program itself printed, if it is a benchmark.
    pub benchmarks: Vec<Benchmark>,
    /// How many operations each of its benchmarks made, if that was the same in all runs.
    pub operations: Option<Vec<u64>>,
}

/// A benchmark that a program ran and printed the results of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Benchmark {
    /// Its name.
    pub name: String,
    /// The unit: `ns/op`, or of a count (`allocs/op`, `B/op`).
    pub unit: String,
    /// Its value in each run without tracing, in order.
    pub values: Vec<f64>,
}

/// The outcome for a program.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Both versions are the same binary with the same arguments: there is nothing to judge.
    SameProgram,
    /// Something got better by more than its limit, and nothing worse.
    Improved,
    /// Nothing changed by more than its limit.
    #[default]
    Unchanged,
    /// The times vary so much that a growth by the limit would not be seen.
    Inconclusive,
    /// Work moved from one row to another, or a count grew while the time fell.
    Moved,
    /// Something got worse, and the policy accepts it.
    Accepted,
    /// Something got worse.
    Regressed,
}

impl State {
    /// Whether something grew by more than its limit.
    fn is_growth(self) -> bool {
        self >= Self::Moved
    }

    /// Whether the gate is closed.
    #[must_use]
    pub fn is_red(self) -> bool {
        self == Self::Regressed
    }
}

/// What changed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The wall time, the CPU time, or the time of a benchmark's operation, in ns.
    #[default]
    Time,
    /// Something counted.
    Count,
    /// A row of the ledger, in ns.
    Row,
}

/// Something that changed, or could have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What kind it is.
    pub kind: Kind,
    /// `wall`, `cpu`, the name of a benchmark, of a count (`calls`), or of an account (`allocation`).
    pub name: String,
    /// The account of the ledger that explains it; empty if none does.
    pub row: String,
    /// In the base.
    pub base: f64,
    /// In the head.
    pub head: f64,
    /// The growth as a part of the base's value; of rows, of the base's wall time.
    pub growth: f64,
    /// Ends of the growth's 95 % interval; both equal to it where nothing varied.
    pub interval: [f64; 2],
    /// The growth from which it counts.
    pub limit: f64,
    /// What it is held to be.
    pub state: State,
    /// Why, in a sentence; empty if the numbers say it.
    pub why: String,
    /// Where in the source, most important first.
    pub sites: Vec<Site>,
}

/// The judgement on one workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Its name.
    pub workload: String,
    /// The outcome: the worst state of the changes.
    pub state: State,
    /// Changes that matter, worst first.
    pub changes: Vec<Change>,
    /// How precisely the growth of the time is known: half the width of its 95 % interval, as a part.
    pub precision: f64,
    /// The layout noise, if it was measured: as a part of the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<f64>,
    /// The comparison of the first measurement.
    pub comparison: Comparison,
    /// Whether a second measurement was made.
    pub confirmed: bool,
    /// Benchmarks that the base printed results of, and the head none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What the reader must know, in sentences.
    pub notes: Vec<String>,
}

/// What is judged, and by which rules.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The rules.
    pub policy: &'a Policy,
    /// Today, as `2026-12-31`.
    pub today: &'a str,
    /// The layout noise, if it was measured: no growth of the time below it counts.
    pub layout: Option<f64>,
}

/// The judgement by one measurement. If it is red, a second one must confirm it.
#[must_use]
pub fn judge(case: &Case<'_>, measured: &Measurement) -> Judgement {
    let comparison = comparison(measured);
    let changes = changes(case, measured, &comparison);
    let judgement = Judgement {
        schema: SCHEMA,
        workload: case.workload.to_owned(),
        precision: times::precision(&changes),
        layout: case.layout,
        missing: times::missing(measured),
        notes: comparison.unlike.clone(),
        comparison,
        changes,
        ..Judgement::default()
    };
    judgement.concluded(case)
}

impl Judgement {
    /// Whether a second measurement is needed to say that something is worse.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.changes.iter().any(Change::is_suspect)
    }

    /// Whether a time surely grew by its limit, if its interval is right, but no test of so few runs can show it.
    #[must_use]
    pub fn is_short_of_runs(&self) -> bool {
        self.changes.iter().any(|change| change.why == TOO_FEW)
    }

    /// The same with what a second, independent measurement shows too: only that is red.
    #[must_use]
    pub fn confirmed_by(mut self, case: &Case<'_>, second: &Measurement) -> Self {
        confirm(&mut self.changes, &judge(case, second).changes, &mut self.notes);
        self.confirmed = true;
        self.concluded(case)
    }

    /// Its state, and its changes in order, worst first.
    fn concluded(mut self, case: &Case<'_>) -> Self {
        let worst = self.changes.iter().map(|change| change.state).max().unwrap_or_default();
        let better = self.changes.iter().any(|change| change.state == State::Improved);
        self.state = if better && worst == State::Unchanged { State::Improved } else { worst };
        let limit = case.limits().time.max(case.layout.unwrap_or(0.0));
        let unsure = self.precision > limit || !self.missing.is_empty();
        if self.state <= State::Unchanged && unsure {
            self.state = State::Inconclusive;
        }
        let size = |change: &Change| change.growth.abs();
        self.changes.sort_by(|a, b| b.state.cmp(&a.state).then(size(b).total_cmp(&size(a))));
        self
    }
}

/// The judgement on two versions that are the same program.
#[must_use]
pub fn same_program(workload: &str) -> Judgement {
    Judgement {
        schema: SCHEMA,
        workload: workload.to_owned(),
        state: State::SameProgram,
        ..Judgement::default()
    }
}

fn comparison(measured: &Measurement) -> Comparison {
    let Measurement { base, head } = measured;
    compare(("base", &base.report), ("head", &head.report), true)
}

/// All that changed, by one measurement.
fn changes(case: &Case<'_>, measured: &Measurement, comparison: &Comparison) -> Vec<Change> {
    let limits = case.limits();
    let mut found = times::changes(&limits, case.layout.unwrap_or(0.0), measured, comparison);
    // Only a time that surely fell by more than its limit is worth a count that grew.
    let surely = |change: &Change| change.interval[1] <= -change.limit;
    let faster = found.iter().any(|change| change.state == State::Improved && surely(change));
    let slower = found.iter().any(|change| change.state.is_red() || change.is_beyond());
    found.extend(counts::changes(&limits, measured, faster));
    found.extend(rows::changes(&limits, comparison, slower));
    for change in &mut found {
        if change.state == State::Unchanged && change.is_beyond() {
            (change.state, change.why) = (State::Inconclusive, TOO_FEW.into());
        }
        case.policy.accept(case.workload, case.today, change);
    }
    found
}

/// Takes back what the second measurement does not show: a growth, or a time that fell and made up for it.
fn confirm(found: &mut [Change], again: &[Change], notes: &mut Vec<String>) {
    for change in found.iter_mut().filter(|change| change.is_suspect()) {
        let same = |other: &&Change| other.kind == change.kind && other.name == change.name;
        let again = again.iter().find(same);
        if again.is_some_and(|again| again.is_suspect() || change.is_shown_with(again)) {
            let red = again.is_some_and(|again| again.state.is_red());
            if change.state == State::Moved && red {
                change.state = State::Regressed;
                change.why.clear();
            }
            continue;
        }
        let vague = again.is_some_and(|again| change.is_left_open_by(again));
        let (state, shows) = match vague {
            true => (State::Inconclusive, "a second measurement is too imprecise to tell"),
            false => (State::Unchanged, "a second measurement does not show it"),
        };
        change.state = state;
        change.why = shows.into();
        let second = match again.filter(|again| again.kind == Kind::Time) {
            Some(again) => format!(" ({:+.1} %)", again.growth * 100.0),
            None => String::new(),
        };
        notes.push(format!(
            "{} grew by {:.1} % in the first one; {shows}{second}",
            change.label(),
            change.growth * 100.0
        ));
    }
}

impl Case<'_> {
    fn limits(&self) -> Limits {
        self.policy.limits(self.workload)
    }
}

impl Change {
    /// Whether a second measurement is needed: it is red, or would be if the time had not fallen.
    fn is_suspect(&self) -> bool {
        self.state.is_red() || (self.kind == Kind::Count && self.state == State::Moved)
    }

    /// Whether a second measurement, which alone finds a growth of the time but perhaps one below the limit, shows
    /// with this one that it reaches the limit: both are as precise, so the growth is their mean.
    fn is_shown_with(&self, again: &Self) -> bool {
        let mean = f64::midpoint(self.growth, again.growth);
        let grew = again.interval[0] > 0.0 && again.state != State::Accepted;
        self.kind == Kind::Time && grew && mean >= self.limit
    }

    /// Whether a second measurement neither shows this growth of the time nor rules out that it reaches the limit.
    fn is_left_open_by(&self, again: &Self) -> bool {
        let [low, high] = again.interval;
        let not_ruled_out = low <= 0.0 && again.growth > 0.0 && high >= self.limit;
        self.kind == Kind::Time && again.state == State::Unchanged && not_ruled_out
    }

    /// Whether all of a time's interval lies beyond the limit.
    fn is_beyond(&self) -> bool {
        let [low, high] = self.interval;
        self.kind == Kind::Time && high > low && low >= self.limit
    }

    /// Its name for people.
    #[must_use]
    pub fn label(&self) -> String {
        match self.kind {
            Kind::Time if self.name == times::WALL => "time".into(),
            Kind::Time if self.name == times::CPU => "CPU time".into(),
            Kind::Time => format!("time of {}", self.name),
            Kind::Count => self.name.replace('-', " "),
            Kind::Row => crate::account::row_name(&self.name, &self.name).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
