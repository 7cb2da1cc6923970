//! How many paths calls are about, by a sample of them.

use std::collections::BTreeMap;

/// More distinct paths are not counted.
const MOST: usize = 1 << 15;
/// A smaller sample says nothing.
const LEAST: u64 = 20;
/// Nor do the pairs of fewer calls, or fewer pairs of calls about one path.
const ENOUGH: u64 = 500;
const PAIRS: u64 = 40;

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
    /// less than half. A sample with fewer calls than paths shows it by its pairs, see [`Self::evenly`].
    pub(crate) fn distinct(&self) -> Option<u64> {
        let once = self.each.values().filter(|count| **count == 1).count() as u64;
        let again = self.calls.saturating_sub(once);
        let known = self.calls >= LEAST && self.each.len() < MOST && again * 2 >= self.calls;
        known
            .then(|| (self.each.len() as u64 * self.calls).div_ceil(again))
            .or_else(|| self.evenly())
    }

    /// The same from a sample in which most paths are there once. If a part `q` of all calls is about `paths` paths, evenly,
    /// and the others are about paths of their own, two calls are about the same with the probability `q² / paths`, and
    /// three with `q³ / paths²`: the square of the first, divided by the second, is `q`. Each is taken one standard deviation
    /// to the side that proves less. None if `q` is less than half.
    fn evenly(&self) -> Option<u64> {
        let pairs_of = |n: u64| n * n.saturating_sub(1) / 2;
        let triples_of = |n: u64| pairs_of(n) as f64 * n.saturating_sub(2) as f64 / 3.0;
        let each = || self.each.values().map(|count| u64::from(*count));
        let pairs: u64 = each().map(pairs_of).sum();
        if self.each.len() >= MOST || pairs < PAIRS || self.calls < ENOUGH {
            return None;
        }
        let all = pairs_of(self.calls);
        let certain = pairs - pairs.isqrt();
        let two = certain as f64 / all as f64;
        let triples: f64 = each().map(triples_of).sum();
        let three = (triples + triples.sqrt() + 2.0) / triples_of(self.calls);
        (two * two / three >= 0.5).then(|| all.div_ceil(certain))
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

    /// A number by chance.
    fn scattered(call: u64) -> u64 {
        let number = (call + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (number ^ number >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
    }

    #[test]
    fn a_sample_smaller_than_the_paths_shows_them_by_its_pairs() {
        let of_8000 = of(2500, |call| scattered(call) % 8000).unwrap();
        assert!((7000..10_000).contains(&of_8000), "{of_8000}");
    }

    #[test]
    fn paths_that_come_once_and_few_calls_are_refused() {
        assert_eq!(of(1000, |call| call), None);
        assert_eq!(of(10, |_| 1), None);
        assert_eq!(of(1000, |call| if call % 3 == 0 { 0 } else { call }), None);
        // Most of the pairs are of 20 paths with a fifth of the calls.
        let few = |call: u64| if call.is_multiple_of(5) { call / 5 % 20 } else { scattered(call) };
        assert_eq!(of(3000, few), None);
    }
}
