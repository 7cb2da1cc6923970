//! The difference of two ledgers, row by row, each with an interval and a p value.
//!
//! Rows vary between traced runs, so each has an interval. Among a dozen rows one may differ by chance alone, so all are
//! tested as one family (Holm's correction). Not for whether the wall times differ: the parent tests that on clean runs.

use super::inlining_effect::{CALLS, InliningEffect, WORK, inlining_effect};
use super::{ALPHA, CONFIDENCE, difference};
use crate::report::{Basis, Report, Row};
use crate::stats::rank_tests::{holm, independent};
use crate::stats::ratio;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fewer traced runs of a side than this cannot give a significant difference of a row in a typical ledger.
pub const FEWEST_TRACED: usize = 7;

/// One account in both ledgers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowDifference {
    /// Its id.
    pub account: String,
    /// The word shown in the ledger.
    pub group: String,
    /// In A's median run.
    pub a_ns: u64,
    /// In B's.
    pub b_ns: u64,
    /// The second minus the first.
    pub difference_ns: i64,
    /// Its 95 % interval in ns: from the traced runs of both sides if both have several, otherwise from the samples of
    /// one run each. None if there is neither.
    #[serde(default)]
    pub interval_ns: Option<[i64; 2]>,
    /// The p value of the difference (Mann-Whitney U test, Holm's correction over all rows). None with fewer than seven
    /// traced runs on a side.
    #[serde(default)]
    pub p: Option<f64>,
    /// The difference as a share of the whole difference; 0 if there is none. Above 1 or below 0 where rows differ in
    /// opposite directions.
    pub share: f64,
    /// The part of `difference_ns` that was moved from or to another row: work that inlining saves is counted with the
    /// calls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub moved_ns: i64,
    /// Why it was moved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub moved_for: String,
    /// The note in A's ledger.
    pub a_note: String,
    /// The note in B's ledger.
    pub b_note: String,
}

impl RowDifference {
    /// Whether it was tested and is not significant.
    #[must_use]
    pub fn is_chance(&self) -> bool {
        self.p.is_some_and(|p| p >= ALPHA)
    }
}

/// The rows of both ledgers side by side, largest difference first. `whole` is the difference of the wall times.
pub(super) fn differences(a: &Report, b: &Report, whole: i64) -> Vec<RowDifference> {
    // If one side has no ledger, rows cannot be compared.
    if a.ledger.is_empty() || b.ledger.is_empty() {
        return Vec::new();
    }
    let mut accounts: BTreeMap<&str, [Option<&Row>; 2]> = BTreeMap::new();
    for (index, report) in [a, b].into_iter().enumerate() {
        for row in &report.ledger {
            accounts.entry(&row.account).or_default()[index] = Some(row);
        }
    }
    // A row that is missing on one side was 0 in each of its runs.
    let runs =
        [a, b].map(|report| report.ledger.iter().map(|row| row.each_ns.len()).max().unwrap_or(0));
    let mut tested = Vec::new();
    let mut rows: Vec<RowDifference> = Vec::with_capacity(accounts.len());
    for (account, pair) in accounts {
        let [a_ns, b_ns] = pair.map(|row| row.map_or(0, |r| r.ns));
        let [a_note, b_note] = pair.map(|row| row.map_or(String::new(), |r| r.note.clone()));
        let difference_ns = difference(a_ns, b_ns);
        let each = [each(pair[0], runs[0]), each(pair[1], runs[1])];
        if runs[0].min(runs[1]) >= FEWEST_TRACED {
            tested.push(independent(&each[0], &each[1]));
        }
        rows.push(RowDifference {
            account: account.to_owned(),
            group: pair.into_iter().flatten().next().map_or("", |r| &r.group).to_owned(),
            a_ns,
            b_ns,
            difference_ns,
            interval_ns: interval(&each, pair, difference_ns),
            share: share(difference_ns, whole),
            a_note,
            b_note,
            ..RowDifference::default()
        });
    }
    for (row, p) in rows.iter_mut().zip(holm(&tested)) {
        row.p = Some(p);
    }
    if let Some(less) = inlining_effect(a, b) {
        give_to_calls(&mut rows, less, -1, whole);
    } else if let Some(more) = inlining_effect(b, a) {
        give_to_calls(&mut rows, more, 1, whole);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.difference_ns.unsigned_abs()));
    rows
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks it")]
fn is_zero(ns: &i64) -> bool {
    *ns == 0
}

fn share(difference_ns: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { difference_ns as f64 / whole as f64 }
}

/// Moves saved (`sign` -1) or additional work from the row of work to the row of calls.
fn give_to_calls(rows: &mut [RowDifference], less: InliningEffect, sign: i64, whole: i64) {
    let at = |account: &str| rows.iter().position(|row| row.account == account);
    let (Some(calls), Some(work)) = (at(CALLS), at(WORK)) else { return };
    // At most the difference of the row of work.
    let there = (rows[work].difference_ns * sign).max(0);
    let moved = i64::try_from(less.ns).unwrap_or(i64::MAX).min(there) * sign;
    for (at, moved) in [(calls, moved), (work, -moved)] {
        let row = &mut rows[at];
        row.moved_ns = moved;
        row.difference_ns += moved;
        row.share = share(row.difference_ns, whole);
        row.interval_ns = row.interval_ns.map(|ends| ends.map(|end| end.saturating_add(moved)));
    }
    // The test was of the row as it is in the ledgers.
    rows[work].p = None;
    rows[calls].moved_for = less.text;
}

/// A row's time in each traced run of its side.
fn each(row: Option<&Row>, runs: usize) -> Vec<f64> {
    let known = row.map(|row| row.each_ns.iter().map(|ns| *ns as f64).collect::<Vec<_>>());
    known.filter(|each| each.len() == runs).unwrap_or_else(|| vec![0.0; runs])
}

/// The interval of a row's difference, widened to hold the difference itself, which is one of means.
fn interval(
    [a, b]: &[Vec<f64>; 2],
    rows: [Option<&Row>; 2],
    difference_ns: i64,
) -> Option<[i64; 2]> {
    let ends = if a.len().min(b.len()) > 1 {
        let [_, low, high] = ratio::shift(a, b, CONFIDENCE)?;
        [low, high]
    } else {
        let sampled = rows.iter().flatten().any(|row| row.basis == Basis::Sampled);
        let ends =
            |row: Option<&Row>| row.map_or((0.0, 0.0), |r| (r.low_ns as f64, r.high_ns as f64));
        let (a, b) = (ends(rows[0]), ends(rows[1]));
        sampled.then_some([b.0 - a.1, b.1 - a.0])?
    };
    #[expect(clippy::cast_possible_truncation, reason = "differences of times in ns, saturating")]
    let [low, high] = ends.map(|end| end.round() as i64);
    Some([low.min(difference_ns), high.max(difference_ns)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    fn report(rows: &[(&str, &[u64])]) -> Report {
        let ledger = rows.iter().map(|(account, each)| Row {
            account: (*account).into(),
            ns: each.iter().sum::<u64>() / each.len() as u64,
            each_ns: each.to_vec(),
            ..Row::default()
        });
        Report { ledger: ledger.collect(), ..Report::default() }
    }

    #[test]
    fn rows_are_one_family_and_each_has_an_interval() {
        let a = report(&[
            ("tiny-reads", &[900, 910, 920, 930, 940, 950, 960]),
            ("net-work", &[100, 101, 102, 103, 104, 105, 106]),
        ]);
        let b = report(&[
            ("net-work", &[101, 102, 100, 104, 103, 106, 105]),
            ("start-up", &[10, 11, 12, 13, 14, 15, 16]),
        ]);
        let rows = differences(&a, &b, -917);
        let of = |account| rows.iter().find(|row| row.account == account).unwrap();
        // Both sides wholly apart: 2 of the 3 432 orders, times the three rows that were asked.
        assert!((of("tiny-reads").p.unwrap() - 3.0 * 2.0 / 3432.0).abs() < 1e-9, "{rows:?}");
        assert!(!of("tiny-reads").is_chance() && !of("start-up").is_chance());
        assert!(of("net-work").is_chance(), "{rows:?}");
        let [low, high] = of("tiny-reads").interval_ns.unwrap();
        assert!((-960..=-930).contains(&low) && (-930..=-900).contains(&high), "{low} {high}");
    }

    #[test]
    fn few_traced_runs_give_no_p_value_and_one_exact_run_no_interval() {
        let few = [&[5_u64, 6, 7][..], &[50, 60, 70]].map(|each| report(&[("exit", each)]));
        let rows = differences(&few[0], &few[1], 54);
        assert_eq!((rows[0].p, rows[0].interval_ns), (None, Some([43, 65])));
        let one = |ns, basis| {
            let row = Row {
                account: "x".into(),
                ns,
                basis,
                low_ns: ns - 1,
                high_ns: ns + 2,
                ..Row::default()
            };
            Report { ledger: vec![row], ..Report::default() }
        };
        let exact = differences(&one(5, Basis::Exact), &one(9, Basis::Exact), 4);
        assert_eq!(exact[0].interval_ns, None);
        let sampled = differences(&one(5, Basis::Sampled), &one(9, Basis::Exact), 4);
        assert_eq!(sampled[0].interval_ns, Some([1, 7]));
    }

    #[test]
    fn a_thousand_pairs_of_one_ledger_raise_few_alarms_in_any_row() {
        let mut random = Random::new(17);
        let mut draw = |base: u64| base + (random.number() >> 33) % base;
        let mut ledger = || {
            let mut row = |base| (0..10).map(|_| draw(base)).collect::<Vec<u64>>();
            let rows: Vec<Vec<u64>> = [7, 50, 300, 900, 2000, 5000].map(&mut row).into();
            let names = ["a", "b", "c", "d", "e", "f"];
            let named: Vec<(&str, &[u64])> =
                names.iter().zip(&rows).map(|(n, r)| (*n, r.as_slice())).collect();
            report(&named)
        };
        let alarms = (0..1000)
            .filter(|_| {
                let (a, b) = (ledger(), ledger());
                differences(&a, &b, 1).iter().any(|row| !row.is_chance())
            })
            .count();
        assert!(alarms <= 10, "{alarms} of 1000");
    }
}
