//! The history of a workload: one value for each commit, and where they changed.
//!
//! - In: its kept runs ([`Run`]), in any order.
//! - Out: [`History`]: the commits that one machine measured, in order, and the events among them.
//! - Must not know: where runs are kept, or how a history is displayed.
//!
//! Runs of different machines are never compared: each machine has a history of its own. Where the method of the ledger
//! changed, a new series begins. Within a series, `change_points` finds where the total and each row changed.

mod commits;
mod found;

use crate::account::row_name;
use crate::change_points::events::Event;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of [`History`] as JSON.
pub const SCHEMA: u32 = 2;
/// A change needs this many values before it, and as many after it.
pub const LASTING: usize = 3;
/// Changes are looked for in the last so many commits: ten a day for three years. So a history is shown at once, however
/// long it is.
pub const SEARCHED: usize = 10_000;

/// A kept run.
#[derive(Clone, Debug, Default)]
pub struct Run<'a> {
    /// The commit, or empty.
    pub commit: &'a str,
    /// When the commit was made, in seconds since 1970; 0 if unknown.
    pub commit_time: i64,
    /// Its place among the commits that were made in the same second, from 1, parents first; 0 if unknown.
    pub place: u32,
    /// The branch, or empty.
    pub branch: &'a str,
    /// Whether the source had changes that are in no commit.
    pub dirty: bool,
    /// When it was measured, in seconds since 1970.
    pub time: i64,
    /// The machine's fingerprint.
    pub machine: &'a str,
    /// The method of the ledger.
    pub method: u32,
    /// Its time: the median of clean runs, or the undisturbed time of traced ones. A benchmark's may be less than 1.
    pub ns: f64,
    /// How many clean runs; 0 if `ns` is of traced ones.
    pub clean_runs: u32,
    /// The 95 % interval of the median.
    pub interval: (f64, f64),
    /// The times of its clean runs in ns, as a JSON list. It is read only where several runs are pooled.
    pub clean_each: &'a str,
    /// The rows of its ledger: account and ns.
    pub rows: Vec<(&'a str, u64)>,
}

/// The history of a workload on one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The workload.
    pub workload: String,
    /// The machines that measured it, the one that measured last first.
    pub machines: Vec<Machine>,
    /// Which of them this history is of, from 1.
    pub machine: usize,
    /// How many commits there are: `points` may have the last of them only, but changes were looked for in all, or in the
    /// last [`SEARCHED`].
    pub commits: usize,
    /// How many commits the longest series has: changes are looked for within a series.
    pub comparable: usize,
    /// The rows of the ledger that occur, the largest of the newest commit first.
    pub rows: Vec<Row>,
    /// A point for each commit, oldest first: by the times of commits where they are known, else by the times of
    /// measuring. Commits of one
    /// second are in git's order where that is known, else in the order of measuring.
    pub points: Vec<Point>,
    /// Where a series begins because the method changed: its points cannot be compared with earlier ones.
    pub new_series: Vec<NewSeries>,
    /// What changed, in order. Indices are those of `points`.
    pub events: Vec<Change>,
}

/// A machine that measured the workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// All that decides whether times can be compared; empty if nothing is known.
    pub fingerprint: String,
    /// How many runs.
    pub runs: usize,
    /// When it measured last, in seconds since 1970.
    pub last: i64,
}

/// A row of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its account.
    pub account: String,
    /// What a reader sees.
    pub name: String,
}

/// One commit; a run without a commit is a point of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The commit, or empty.
    pub commit: String,
    /// When it stands in the history, in seconds since 1970: when the commit was made, or when it was measured if that is
    /// not known.
    pub moment: i64,
    /// When it was measured last.
    pub measured: i64,
    /// The branch of its last run, or empty.
    pub branch: String,
    /// Whether the source had changes that are in no commit: there is no run of the commit without them.
    pub dirty: bool,
    /// The method of the ledger.
    pub method: u32,
    /// How many runs are pooled in it.
    pub runs: u32,
    /// How many runs without tracing these have; 0 if its time is that of traced runs.
    pub clean_runs: u32,
    /// Its time: the median of all runs without tracing.
    pub ns: f64,
    /// Lower end of the median's 95 % interval.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
    /// The time of each of the history's `rows`, in parts of `ns`; empty if the runs have no ledger.
    pub rows_ns: Vec<u64>,
    /// Runs of the same commit that do not count, because their source had changes that are in no commit.
    pub dirty_runs: Vec<Dirty>,
    /// Runs of the same commit that do not count, because they were measured with another method.
    pub other_method_runs: u32,
}

/// A run of a changed source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dirty {
    /// When it was measured.
    pub measured: i64,
    /// Its time.
    pub ns: f64,
    /// Lower end of its interval.
    pub low_ns: f64,
    /// Upper end.
    pub high_ns: f64,
    /// How many runs without tracing it has.
    pub clean_runs: u32,
}

/// The first point that was measured with a method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSeries {
    /// Which point.
    pub index: usize,
    /// The method.
    pub method: u32,
}

/// What changed at a commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The first commit after the change, or empty.
    pub commit: String,
    /// When it stands in the history.
    pub moment: i64,
    /// What changed, and which row explains it.
    #[serde(flatten)]
    pub event: Event,
    /// The last commit before it: the change is after this one, and at the latest at that of `latest`.
    pub last_before: String,
    /// If no row has a change point here: the account whose mean changed most in the total's direction, and by how much
    /// in ns. It may be chance.
    pub apparent: Option<(String, f64)>,
}

/// A workload in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Its name.
    pub workload: String,
    /// How many runs are kept, of all machines.
    pub runs: usize,
    /// How many machines measured it. All else is of the one that measured last.
    pub machines: usize,
    /// How many commits were measured.
    pub commits: usize,
    /// How many of them the longest series has.
    pub comparable: usize,
    /// The newest commit, or empty.
    pub commit: String,
    /// When it stands in the history.
    pub moment: i64,
    /// Its time.
    pub ns: f64,
    /// How many changes were found.
    pub events: usize,
    /// The time of each commit, oldest first.
    pub each_ns: Vec<f64>,
}

/// The history of a workload on the machine with this number, from 1; None if it has no runs there.
#[must_use]
pub fn history(workload: &str, runs: &[Run<'_>], machine: usize) -> Option<History> {
    let machines = machines(runs);
    let chosen = machines.get(machine.checked_sub(1)?)?.fingerprint.clone();
    let (accounts, mut points) = commits::points(runs.iter().filter(|run| run.machine == chosen));
    let rows = in_order(&accounts, &mut points);
    let series = series(&points);
    let comparable = series.iter().map(|series| series.indices.len()).max().unwrap_or(0);
    let searched = last(&series, points.len().saturating_sub(SEARCHED));
    let (new_series, events) = (new_series(&series), found::events(&points, &rows, &searched));
    let rows = rows
        .into_iter()
        .map(|account| Row { name: row_name(&account, &account).to_owned(), account });
    Some(History {
        schema: SCHEMA,
        workload: workload.to_owned(),
        machines,
        machine,
        rows: rows.collect(),
        commits: points.len(),
        comparable,
        points,
        new_series,
        events,
    })
}

impl History {
    /// The same in short.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let last = self.points.last();
        Summary {
            workload: self.workload.clone(),
            runs: self.machines.iter().map(|machine| machine.runs).sum(),
            machines: self.machines.len(),
            commits: self.points.len(),
            comparable: self.comparable,
            commit: last.map_or("", |point| &point.commit).to_owned(),
            moment: last.map_or(0, |point| point.moment),
            ns: last.map_or(0.0, |point| point.ns),
            events: self.events.len(),
            each_ns: self.points.iter().map(|point| point.ns).collect(),
        }
    }

    /// The account that a word means: its id, or the name that a reader sees.
    #[must_use]
    pub fn account(&self, word: &str) -> Option<&str> {
        let named = |row: &&Row| row.account == word || row.name == word;
        self.rows.iter().find(named).map(|row| row.account.as_str())
    }

    /// The place of an account in `rows`.
    #[must_use]
    pub fn place(&self, account: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.account == account)
    }

    /// The point before this one in its series.
    #[must_use]
    pub fn previous(&self, index: usize) -> Option<&Point> {
        let method = self.points.get(index)?.method;
        self.points[..index].iter().rev().find(|point| point.method == method)
    }

    /// The same history from this point on, with the events after it.
    #[must_use]
    pub fn since(mut self, first: usize) -> Self {
        self.points.drain(..first.min(self.points.len()));
        self.new_series.retain(|series| series.index >= first);
        self.new_series.iter_mut().for_each(|series| series.index -= first);
        self.events.retain(|change| change.event.index >= first);
        for change in &mut self.events {
            let event = &mut change.event;
            let points = event.rows.iter_mut().map(|row| &mut row.point).chain(&mut event.total);
            for point in points {
                let all = [&mut point.index, &mut point.earliest, &mut point.latest];
                all.into_iter().for_each(|at| *at = at.saturating_sub(first));
            }
            let all = [&mut event.index, &mut event.earliest, &mut event.latest];
            all.into_iter().for_each(|at| *at = at.saturating_sub(first));
        }
        self
    }
}

/// The machines of these runs, the one that measured last first.
fn machines(runs: &[Run<'_>]) -> Vec<Machine> {
    let mut found: BTreeMap<&str, Machine> = BTreeMap::new();
    for run in runs {
        let machine = found.entry(run.machine).or_insert_with(|| Machine {
            fingerprint: run.machine.to_owned(),
            runs: 0,
            last: run.time,
        });
        machine.runs += 1;
        machine.last = machine.last.max(run.time);
    }
    let mut machines: Vec<Machine> = found.into_values().collect();
    machines.sort_by_key(|machine| std::cmp::Reverse(machine.last));
    machines
}

/// Brings the rows of all points into the order of the newest point that has rows; returns the accounts.
fn in_order(accounts: &[&str], points: &mut [Point]) -> Vec<String> {
    let newest = points.iter().rev().find(|point| !point.rows_ns.is_empty());
    let weight = |at: usize| newest.and_then(|point| point.rows_ns.get(at)).copied().unwrap_or(0);
    let mut order: Vec<usize> = (0..accounts.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(weight(*at)), accounts[*at]));
    for point in points.iter_mut().filter(|point| !point.rows_ns.is_empty()) {
        let ns = |at: &usize| point.rows_ns.get(*at).copied().unwrap_or(0);
        point.rows_ns = order.iter().map(ns).collect();
    }
    order.iter().map(|at| accounts[*at].to_owned()).collect()
}

/// The points of one method.
struct Series {
    method: u32,
    indices: Vec<usize>,
}

/// The points of each method, in order of their first. A commit that was measured again with a newer method does not cut
/// the series of the older one.
fn series(points: &[Point]) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        match series.iter_mut().find(|series| series.method == point.method) {
            Some(series) => series.indices.push(index),
            None => series.push(Series { method: point.method, indices: vec![index] }),
        }
    }
    series
}

/// The points from this one on, in their series.
fn last(series: &[Series], first: usize) -> Vec<Series> {
    let part = |series: &Series| Series {
        method: series.method,
        indices: series.indices.iter().copied().filter(|index| *index >= first).collect(),
    };
    series.iter().map(part).collect()
}

fn new_series(series: &[Series]) -> Vec<NewSeries> {
    let first = |series: &Series| {
        series.indices.first().map(|index| NewSeries { index: *index, method: series.method })
    };
    series.iter().skip(1).filter_map(first).collect()
}

#[cfg(test)]
mod tests;
