//! CPU time of all tasks over time, by row of the ledger.
//!
//! The sum of each interval is exact. Within it, the program's own time is divided by the samples of that interval, or
//! of the whole run where it has none.

use deadweight_core::OneRun;
use deadweight_core::timeline::{Run, Within};
use deadweight_report::account::{AccountId, NET_WORK, OBSERVER};
use deadweight_report::stats::apportion::apportion;
use deadweight_trace::ids::{StackId, TaskId};
use serde::Serialize;
use std::collections::BTreeMap;

/// The number of intervals.
const INTERVALS: u64 = 240;

/// CPU time over time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Usage {
    /// The length of an interval.
    pub interval_ns: u64,
    /// Rows by account: its id, and ns in each interval; largest first.
    pub rows: Vec<(&'static str, Vec<u64>)>,
}

/// Sums of one run.
struct Sums {
    interval: u64,
    by_account: BTreeMap<AccountId, Vec<u64>>,
    /// The program's own time.
    own: Vec<u64>,
    /// Its samples.
    samples: BTreeMap<AccountId, Vec<u64>>,
}

/// The CPU time of a run's tasks over time.
pub(super) fn usage(run: &OneRun<'_, '_>) -> Usage {
    let subject = &run.path().subject;
    let wall = subject.wall().0;
    let interval = wall.div_ceil(INTERVALS).max(1);
    let count = usize::try_from(wall.div_ceil(interval)).unwrap_or(1).max(1);
    let mut sums = Sums {
        interval,
        by_account: BTreeMap::new(),
        own: vec![0; count],
        samples: BTreeMap::new(),
    };
    for index in (0..run.timeline().tasks.len()).filter(|at| subject.owns(TaskId::at(*at))) {
        task(run, TaskId::at(index), &mut sums);
    }
    let mut rows = sums.divided();
    rows.sort_by_key(|(_, times)| std::cmp::Reverse(times.iter().sum::<u64>()));
    Usage { interval_ns: interval, rows }
}

/// Adds the time of one task.
fn task(run: &OneRun<'_, '_>, id: TaskId, sums: &mut Sums) {
    let subject = &run.path().subject;
    let task = run.timeline().task(id);
    let mut sampled = 0;
    for (index, span) in task.spans.iter().enumerate() {
        let end = task.span_end(index);
        let from = sampled;
        while task.samples.get(sampled).is_some_and(|sample| sample.at < end) {
            sampled += 1;
        }
        let (start, end) = (span.start.max(subject.start), end.min(subject.end));
        if start >= end || !matches!(span.run(), Run::OnCpu(_)) {
            continue;
        }
        let account = run.account_of_span(id, index).unwrap_or(NET_WORK);
        let own = span.within() == Within::User && account == NET_WORK;
        let overhead = run.overhead_in_span(id, index, sampled - from).min(end - start);
        let at = (start - subject.start).0;
        sums.add((!own).then_some(account), at, (end - start - overhead).0);
        sums.add(Some(OBSERVER), at + (end - start - overhead).0, overhead.0);
        for sample in task.samples[from..sampled].iter().filter(|_| own) {
            if !sample.kernel && sample.stack != StackId(0) && sample.at >= subject.start {
                let at = sums.place((sample.at - subject.start).0);
                let account = run.account_of_sample(sample.stack);
                let length = sums.own.len();
                sums.samples.entry(account).or_insert_with(|| vec![0; length])[at] += 1;
            }
        }
    }
}

impl Sums {
    fn place(&self, at: u64) -> usize {
        usize::try_from(at / self.interval).unwrap_or(usize::MAX).min(self.own.len() - 1)
    }

    /// Adds time from `start` on to an account, or to the program's own time.
    fn add(&mut self, account: Option<AccountId>, mut start: u64, mut length: u64) {
        let count = self.own.len();
        while length > 0 {
            let place = self.place(start);
            let left = if place + 1 == count {
                length
            } else {
                ((place as u64 + 1) * self.interval - start).min(length)
            };
            let times = match account {
                None => &mut self.own,
                Some(account) => self.by_account.entry(account).or_insert_with(|| vec![0; count]),
            };
            times[place] += left;
            (start, length) = (start + left, length - left);
        }
    }

    /// The rows, with the program's own time divided.
    fn divided(mut self) -> Vec<(&'static str, Vec<u64>)> {
        let accounts: Vec<AccountId> = self.samples.keys().copied().collect();
        let whole: Vec<u64> = self.samples.values().map(|times| times.iter().sum()).collect();
        let count = self.own.len();
        for place in 0..count {
            let here: Vec<u64> = self.samples.values().map(|times| times[place]).collect();
            let weights = if here.iter().sum::<u64>() > 0 { &here } else { &whole };
            if weights.iter().sum::<u64>() == 0 {
                self.by_account.entry(NET_WORK).or_insert_with(|| vec![0; count])[place] +=
                    self.own[place];
                continue;
            }
            for (account, ns) in accounts.iter().zip(apportion(self.own[place], weights)) {
                self.by_account.entry(*account).or_insert_with(|| vec![0; count])[place] += ns;
            }
        }
        let rows = self.by_account.into_iter().filter(|(_, times)| times.iter().any(|ns| *ns > 0));
        rows.map(|(account, times)| (account.id(), times)).collect()
    }
}
