//! How many paths calls are about, by a sample of them.

use std::collections::BTreeMap;

/// More distinct paths are not counted.
const MOST: usize = 1 << 15;
/// A smaller sample says nothing.
const LEAST: u64 = 20;

/// Calls whose path is known: how many of each path.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathSample {
    each: BTreeMap<[u64; 4], u32>,
    /// How many calls.
    pub(crate) calls: u64,
}

impl PathSample {
    /// Counts a call with this path: its arguments up to the path, then zeros.
    pub(crate) fn add(&mut self, path: [u64; 4]) {
        self.calls += 1;
        if self.each.len() < MOST || self.each.contains_key(&path) {
            *self.each.entry(path).or_default() += 1;
        }
    }

    /// About how many paths all calls have on average share: the paths of the sample, divided by the part of all calls
    /// that are about them (Good and Turing: one less the part of the sample whose path is there once). None if that is
    /// less than half.
    pub(crate) fn distinct(&self) -> Option<u64> {
        let once = self.each.values().filter(|count| **count == 1).count() as u64;
        let again = self.calls.saturating_sub(once);
        let known = self.calls >= LEAST && self.each.len() < MOST && again * 2 >= self.calls;
        known.then(|| (self.each.len() as u64 * self.calls).div_ceil(again))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(calls: u64, path: impl Fn(u64) -> u64) -> Option<u64> {
        let mut sample = PathSample::default();
        (0..calls).for_each(|call| sample.add([path(call), 0, 0, 0]));
        sample.distinct()
    }

    #[test]
    fn paths_that_come_again_are_few() {
        assert_eq!(of(100, |_| 1), Some(1));
        assert_eq!(of(4000, |call| call % 1000), Some(1000));
        // 500 of 1 000 come again, which are half of the calls at least.
        assert_eq!(of(1500, |call| call % 1000), Some(1500));
    }

    #[test]
    fn paths_that_come_once_and_few_calls_are_refused() {
        assert_eq!(of(1000, |call| call), None);
        assert_eq!(of(10, |_| 1), None);
        assert_eq!(of(1000, |call| if call % 3 == 0 { 0 } else { call }), None);
    }
}
