//! The median and an interval for it that holds for any distribution.
//!
//! The true median lies between the k-th smallest and the k-th largest of n values with a probability from the binomial
//! distribution: that a fair coin, thrown n times, shows at least k and at most n-k heads. No normal distribution is
//! assumed. With fewer than six values even the full range falls short of 95 %, and the summary says so. Not for
//! comparing two series; see `rank_tests` and `ratio`.

use crate::report::Interval;

/// The confidence aimed at.
pub const CONFIDENCE: f64 = 0.95;

/// A median, its interval, and the interval's confidence.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Median and the interval's ends; all zero without values.
    pub interval: Interval,
    /// Probability that the interval holds the true median, 0 to 1. Below [`CONFIDENCE`] when
    /// there are fewer than [`needed`] values.
    pub confidence: f64,
}

impl Summary {
    /// Half the interval's width as a share of the median; infinite without an interval.
    #[must_use]
    pub fn precision(&self) -> f64 {
        let Interval { median, low, high } = self.interval;
        if median == 0 || self.confidence < CONFIDENCE {
            return f64::INFINITY;
        }
        (high - low) as f64 / 2.0 / median as f64
    }
}

/// Summarises `values`, in any order. An even number of values has the mean of the middle two as
/// its median, rounded down.
#[must_use]
pub fn summarise(values: &[u64]) -> Summary {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let n = sorted.len();
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
        return Summary::default();
    };
    let (rank, confidence) = rank(n);
    let median = middle(&sorted);
    let low = sorted.get(rank - 1).unwrap_or(least);
    let high = sorted.get(n - rank).unwrap_or(most);
    Summary { interval: Interval { median, low: *low, high: *high }, confidence }
}

/// The median of values in any order and the ends of its interval, which is [`CONFIDENCE`] where there are [`needed`]
/// values, else their range; 0 of none.
#[must_use]
pub fn interval_of(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    let rank = rank(sorted.len()).0;
    [median_of(&sorted), at(rank - 1), at(sorted.len().saturating_sub(rank))]
}

/// The median of values in any order; 0 of none.
#[must_use]
pub fn median_of(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match (sorted.get(half), half.checked_sub(1).and_then(|i| sorted.get(i))) {
        (Some(upper), Some(lower)) if sorted.len().is_multiple_of(2) => {
            f64::midpoint(*lower, *upper)
        }
        (Some(middle), _) => *middle,
        (None, _) => 0.0,
    }
}

/// How many values an interval of [`CONFIDENCE`] needs.
#[must_use]
pub fn needed() -> usize {
    (1..).find(|n| coverage(*n, 1) >= CONFIDENCE).unwrap_or(usize::MAX)
}

/// The median of sorted values, 0 of none.
fn middle(sorted: &[u64]) -> u64 {
    let half = sorted.len() / 2;
    match (sorted.get(half), half.checked_sub(1).and_then(|i| sorted.get(i))) {
        (Some(upper), Some(lower)) if sorted.len().is_multiple_of(2) => lower + (upper - lower) / 2,
        (Some(middle), _) => *middle,
        (None, _) => 0,
    }
}

/// The largest k for which the k-th smallest and k-th largest of `n` values enclose the median
/// with [`CONFIDENCE`], and the confidence reached. At least 1.
fn rank(n: usize) -> (usize, f64) {
    let mut best = (1, coverage(n, 1));
    for (k, reached) in (1..=n.div_ceil(2)).zip(coverages(n)).skip(1) {
        if reached < CONFIDENCE {
            break;
        }
        best = (k, reached);
    }
    best
}

/// Probability that the median lies between the k-th smallest and the k-th largest of n values:
/// 1 - 2 P(heads < k in n throws).
fn coverage(n: usize, k: usize) -> f64 {
    coverages(n).nth(k - 1).unwrap_or(0.0)
}

/// [`coverage`] for k = 1, 2, ...
fn coverages(n: usize) -> impl Iterator<Item = f64> {
    // In logarithms, because 2^-n leaves the range of f64 at about a thousand throws.
    let mut ln_term = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    (0..n).map(move |heads| {
        below += ln_term.exp();
        ln_term += ((n - heads) as f64).ln() - ((heads + 1) as f64).ln();
        (1.0_f64 - 2.0 * below).max(0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// The same probability by counting in whole numbers.
    fn counted(n: u32, k: u32) -> f64 {
        let mut row = vec![1_u128];
        for _ in 0..n {
            let inner: Vec<u128> = row.windows(2).map(|w| w[0] + w[1]).collect();
            row = [vec![1], inner, vec![1]].concat();
        }
        let below: u128 = row.iter().take(k as usize).sum();
        1.0 - 2.0 * below as f64 / 2_f64.powi(n.try_into().unwrap())
    }

    #[test]
    fn coverage_agrees_with_pascals_triangle() {
        for n in 1..=100_u32 {
            for k in 1..=n.div_ceil(2) {
                let (ours, theirs) = (coverage(n as usize, k as usize), counted(n, k).max(0.0));
                assert!((ours - theirs).abs() < 1e-9, "n {n} k {k}: {ours} {theirs}");
            }
        }
    }

    #[test]
    fn six_values_are_needed_and_no_narrower_rank_would_do() {
        assert_eq!(needed(), 6);
        for n in 6..400 {
            let (k, confidence) = rank(n);
            assert!(confidence >= CONFIDENCE, "n {n}");
            assert!(k == n.div_ceil(2) || coverage(n, k + 1) < CONFIDENCE, "n {n}");
        }
    }

    #[test]
    fn small_samples_have_low_confidence() {
        assert_eq!(summarise(&[]), Summary::default());
        let one = summarise(&[7]);
        assert_eq!(one.interval, Interval { median: 7, low: 7, high: 7 });
        assert!(one.confidence < 1e-9 && one.precision().is_infinite());
        let five = summarise(&[5, 1, 4, 2, 3]);
        assert_eq!(five.interval, Interval { median: 3, low: 1, high: 5 });
        assert!((five.confidence - 0.9375).abs() < 1e-9);
        let six = summarise(&[10, 20, 30, 41, 50, 60]);
        assert_eq!(six.interval, Interval { median: 35, low: 10, high: 60 });
        assert!((six.precision() - 25.0 / 35.0).abs() < 1e-9);
    }

    #[test]
    fn large_samples_keep_a_narrow_interval() {
        let values: Vec<u64> = (0..10_001).collect();
        let Interval { median, low, high } = summarise(&values).interval;
        assert_eq!(median, 5000);
        // Half a width of 1.96 standard deviations of a fair coin: 98 throws.
        assert!((4900..=4904).contains(&low) && (5096..=5100).contains(&high), "{low} {high}");
    }

    #[test]
    fn the_interval_covers_the_median_at_its_confidence() {
        // A skewed distribution: squares of a linear congruential sequence.
        let mut random = Random::new(1);
        let mut draw = || {
            let x = random.number() >> 40;
            x * x
        };
        let truth = (1_u64 << 23) * (1 << 23);
        for n in [6, 9, 15, 30] {
            let (mut inside, rounds) = (0, 2000);
            for _ in 0..rounds {
                let values: Vec<u64> = (0..n).map(|_| draw()).collect();
                let Interval { low, high, .. } = summarise(&values).interval;
                inside += i32::from((low..=high).contains(&truth));
            }
            assert!(inside * 100 > rounds * 94, "n {n}: {inside} of {rounds}");
        }
    }
}
