//! Which threads work in one function at once, by samples: those that may divide its work.

use super::MEMBERS;
use deadweight_trace::ids::{NameId, TaskId};
use std::collections::{BTreeMap, BTreeSet};

/// They are in it at once for this part of its samples, at least.
const AT_ONCE: f64 = 0.02;
/// A team's thread has so many samples in the function, at least.
const SAMPLES: usize = 3;
/// ... and one in so many of those of the thread with most: who does less only reads or writes for it.
const HANDS: usize = 20;

/// What the samples show of one function.
#[derive(Default)]
pub(super) struct Inside {
    /// How many samples of which thread were in it.
    each: BTreeMap<TaskId, usize>,
    /// The threads of the latest sample and of the one before.
    latest: [Option<TaskId>; 2],
    /// Samples between two of another thread.
    at_once: usize,
    /// The outermost functions of the program in threads that were started for it.
    pub(super) starts: BTreeSet<NameId>,
    /// It is not far from where such a thread begins.
    pub(super) near: bool,
}

impl Inside {
    pub(super) fn add(&mut self, id: TaskId) {
        let [latest, before] = self.latest;
        self.at_once += usize::from(before == Some(id) && latest != before);
        self.latest = [Some(id), latest];
        *self.each.entry(id).or_default() += 1;
    }

    /// The threads that are in it at the same times, if they all start alike: a sample of one is between two of another.
    /// A goroutine that moves from thread to thread is in one of them at a time.
    pub(super) fn team(mut self) -> Option<BTreeSet<TaskId>> {
        let samples: usize = self.each.values().sum();
        let most = self.each.values().copied().max().unwrap_or_default();
        self.each.retain(|_, samples| *samples >= SAMPLES && *samples * HANDS >= most);
        let team = self.near
            && self.starts.len() == 1
            && MEMBERS.contains(&self.each.len())
            && self.at_once >= SAMPLES
            && self.at_once as f64 >= samples as f64 * AT_ONCE;
        team.then(|| self.each.into_keys().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_writes_for_the_one_that_works_divides_nothing() {
        let team = |of_other: usize| {
            let each = [(TaskId(0), 473), (TaskId(1), of_other)].into();
            Inside {
                each,
                at_once: 12,
                starts: [NameId(1)].into(),
                near: true,
                ..Inside::default()
            }
        };
        assert!(team(9).team().is_none() && team(60).team().is_some());
    }
}
