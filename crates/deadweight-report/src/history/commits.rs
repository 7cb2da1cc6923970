//! Runs of the same commit as one point, in order.
//!
//! Does not look for changes.

use super::{Dirty, Point, Run};
use crate::account::OBSERVER;
use crate::stats::median::{interval_of, median_of};
use std::collections::BTreeMap;

/// The accounts that occur, and a point for each commit, oldest first. Its rows are in the order of the accounts.
pub(super) fn points<'r, 'a: 'r>(
    runs: impl Iterator<Item = &'r Run<'a>>,
) -> (Vec<&'a str>, Vec<Point>) {
    let mut runs: Vec<&Run<'a>> = runs.collect();
    runs.sort_by_key(|run| (run.commit, run.time));
    let of_one = |a: &&Run<'a>, b: &&Run<'a>| a.commit == b.commit && !a.commit.is_empty();
    // Commits of one moment (a rebase makes many) in git's order, or in that in which they were measured.
    let mut commits: Vec<(i64, &[&Run<'a>])> =
        runs.chunk_by(of_one).map(|runs| (moment(runs), runs)).collect();
    commits.sort_by_key(|(moment, runs)| (*moment, runs.first().map(|run| (run.place, run.time))));
    let mut accounts = Accounts::default();
    let mut points: Vec<Point> =
        commits.iter().map(|(_, runs)| point(runs, &mut accounts)).collect();
    for point in points.iter_mut().filter(|point| !point.rows_ns.is_empty()) {
        point.rows_ns.resize(accounts.names.len(), 0);
    }
    (accounts.names, points)
}

/// When a commit stands in the history: a file of benchmarks may know its commit and not the commit's time, when another
/// run knows both.
fn moment(runs: &[&Run<'_>]) -> i64 {
    let known = runs.iter().map(|run| run.commit_time).max().filter(|time| *time > 0);
    known.or_else(|| runs.first().map(|run| run.time)).unwrap_or(0)
}

/// The point of a commit, of which there is at least one run.
fn point<'a>(runs: &[&Run<'a>], accounts: &mut Accounts<'a>) -> Point {
    let method = runs.iter().map(|run| run.method).max().unwrap_or(0);
    let of_method: Vec<&Run<'a>> = runs.iter().filter(|r| r.method == method).copied().collect();
    let dirty = of_method.iter().all(|run| run.dirty);
    let (counted, changed): (Vec<&Run<'a>>, Vec<&Run<'a>>) =
        of_method.iter().partition(|run| run.dirty == dirty);
    // The time of a traced run is not measured, but computed.
    let is_clean = counted.iter().any(|run| run.clean_runs > 0);
    let timed: Vec<&Run<'a>> =
        counted.iter().filter(|run| (run.clean_runs > 0) == is_clean).copied().collect();
    let [median, low, high] = pooled(&timed);
    let last = counted.last().or(runs.last());
    let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Point {
        commit: last.map_or("", |run| run.commit).to_owned(),
        moment: moment(runs),
        measured: last.map_or(0, |run| run.time),
        branch: last.map_or("", |run| run.branch).to_owned(),
        dirty,
        method,
        runs: small(counted.len()),
        clean_runs: timed.iter().map(|run| run.clean_runs).fold(0, u32::saturating_add),
        ns: median,
        low_ns: low,
        high_ns: high,
        rows_ns: rows(&counted, median, accounts),
        dirty_runs: changed.iter().map(|run| uncounted(run)).collect(),
        other_method_runs: small(runs.len() - of_method.len()),
    }
}

fn uncounted(run: &Run<'_>) -> Dirty {
    let (low_ns, high_ns) = run.interval;
    Dirty { measured: run.time, ns: run.ns, low_ns, high_ns, clean_runs: run.clean_runs }
}

/// The median of all times of these runs, with its interval.
fn pooled(runs: &[&Run<'_>]) -> [f64; 3] {
    if let [run] = runs {
        return [run.ns, run.interval.0, run.interval.1];
    }
    let each =
        |run: &&Run<'_>| serde_json::from_str::<Vec<f64>>(run.clean_each).unwrap_or_default();
    let lists: Vec<Vec<f64>> = runs.iter().map(each).collect();
    if lists.iter().all(|list| !list.is_empty()) {
        return interval_of(&lists.concat());
    }
    // Reports of traced runs alone, and foreign ones, have a time and no list.
    let median = median_of(&runs.iter().map(|run| run.ns).collect::<Vec<_>>());
    let low = runs.iter().map(|run| run.interval.0).reduce(f64::min);
    let high = runs.iter().map(|run| run.interval.1).reduce(f64::max);
    [median, low.unwrap_or(median), high.unwrap_or(median)]
}

/// The rows in parts of `ns`: the mean share of each in these runs. Tracing is no part of it. Empty if none has a ledger.
fn rows<'a>(runs: &[&Run<'a>], ns: f64, accounts: &mut Accounts<'a>) -> Vec<u64> {
    let mut shares: Vec<f64> = Vec::new();
    let mut with_rows = 0.0;
    for run in runs {
        let counted = || run.rows.iter().filter(|(account, _)| *account != OBSERVER.id());
        let sum = counted().map(|(_, ns)| *ns as f64).sum::<f64>();
        if sum <= 0.0 {
            continue;
        }
        with_rows += 1.0;
        for (place, (account, ns)) in counted().enumerate() {
            let at = accounts.of(account, place);
            shares.resize(shares.len().max(at + 1), 0.0);
            shares[at] += *ns as f64 / sum;
        }
    }
    let part = |share: &f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to ns")]
        let part = (share / with_rows * ns).round() as u64;
        part
    };
    shares.iter().map(part).collect()
}

/// Accounts with a number each.
#[derive(Default)]
struct Accounts<'a> {
    names: Vec<&'a str>,
    numbers: BTreeMap<&'a str, usize>,
    /// The numbers of the rows that were last at each place: mostly those of the next run.
    last: Vec<usize>,
}

impl<'a> Accounts<'a> {
    /// The number of an account at this place of its ledger.
    fn of(&mut self, account: &'a str, place: usize) -> usize {
        if let Some(at) = self.last.get(place).filter(|at| self.names[**at] == account) {
            return *at;
        }
        let new = self.names.len();
        let at = *self.numbers.entry(account).or_insert(new);
        if at == new {
            self.names.push(account);
        }
        self.last.resize(self.last.len().max(place + 1), 0);
        self.last[place] = at;
        at
    }
}
