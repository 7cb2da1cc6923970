//! The factor between two series, with a distribution-free interval.
//!
//! The Hodges-Lehmann estimate on logarithms: for pairs, the median of all means of two log ratios; for independent
//! series, the median of the log ratios of all value pairs. The interval holds the values that the tests of `rank_tests`
//! do not reject. Order statistics of the millions of means are found by counting, not by sorting. Not for p values.

use super::normal::quantile;

/// A factor with its interval.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Factor {
    /// The estimate; above 1, the second series has the larger values.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The factor from `a` to `b`, whose values are paired: as many of both, all positive.
/// None without a pair. `confidence` is between 0 and 1; few pairs give smallest to largest.
#[must_use]
pub fn of_pairs(a: &[f64], b: &[f64], confidence: f64) -> Option<Factor> {
    let mut logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
    logs.sort_by(f64::total_cmp);
    let n = logs.len() as u64;
    let all = n * (n + 1) / 2;
    // Wilcoxon's statistic has this variance where pairs are alike.
    let spread = (n as f64 * (n as f64 + 1.0) * (2.0 * n as f64 + 1.0) / 24.0).sqrt();
    let count = |x: f64| means_up_to(&logs, x);
    let range = (*logs.first()?, *logs.last()?);
    let [value, low, high] = estimate(all, spread, confidence, range, &count).map(f64::exp);
    Some(Factor { value, low, high })
}

/// The factor from `a` to `b`, for independent series; all values positive. None if one is empty.
#[must_use]
pub fn of_independent(a: &[f64], b: &[f64], confidence: f64) -> Option<Factor> {
    let logs = |values: &[f64]| -> Vec<f64> { values.iter().map(|v| v.ln()).collect() };
    let [value, low, high] = shift(&logs(a), &logs(b), confidence)?.map(f64::exp);
    Some(Factor { value, low, high })
}

/// How much larger `b` is than `a`, for independent series: the estimate and the ends of its interval.
/// None if one is empty.
#[must_use]
pub fn shift(a: &[f64], b: &[f64], confidence: f64) -> Option<[f64; 3]> {
    let sorted = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    let (a, b) = (sorted(a), sorted(b));
    let (m, n) = (a.len() as u64, b.len() as u64);
    // Mann and Whitney's statistic has this variance where the series are alike.
    let spread = ((m * n) as f64 * (m + n + 1) as f64 / 12.0).sqrt();
    let count = |x: f64| differences_up_to(&a, &b, x);
    let range = (b.first()? - a.last()?, b.last()? - a.first()?);
    Some(estimate(m * n, spread, confidence, range, &count))
}

/// Median and interval of `all` values of which `count(x)` are at most x.
fn estimate(
    all: u64,
    spread: f64,
    confidence: f64,
    range: (f64, f64),
    count: &dyn Fn(f64) -> u64,
) -> [f64; 3] {
    let reach = quantile(0.5 + confidence / 2.0) * spread;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let rank = (all as f64 / 2.0 - reach).floor().max(0.0) as u64;
    let at = |rank: u64| order_statistic(rank, range, count);
    let middle = (at((all - 1) / 2) + at(all / 2)) / 2.0;
    [middle, at(rank), at(all - 1 - rank)]
}

/// The value with `rank` others below it, to a relative precision of 1e-12 of the factor.
fn order_statistic(rank: u64, (low, high): (f64, f64), count: &dyn Fn(f64) -> u64) -> f64 {
    let (mut low, mut high) = (low, high);
    if count(low) > rank {
        return low;
    }
    while high - low > 1e-12 {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if count(middle) > rank {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// How many means of two of `sorted` (a value with itself too) are at most `x`.
fn means_up_to(sorted: &[f64], x: f64) -> u64 {
    let mut fitting = sorted.len();
    let mut count = 0;
    for (i, value) in sorted.iter().enumerate() {
        while fitting > 0 && value.midpoint(sorted[fitting - 1]) > x {
            fitting -= 1;
        }
        count += fitting.saturating_sub(i) as u64;
    }
    count
}

/// How many differences of a value of `b` and one of `a`, both sorted, are at most `x`.
fn differences_up_to(a: &[f64], b: &[f64], x: f64) -> u64 {
    let mut fitting = 0;
    a.iter()
        .map(|from| {
            while fitting < b.len() && b[fitting] - from <= x {
                fitting += 1;
            }
            fitting as u64
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    #[test]
    fn a_factor_between_equal_shapes_is_found() {
        let a: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i * 37 % 11)).collect();
        let b: Vec<f64> = a.iter().map(|v| v * 1.25).collect();
        for found in [of_pairs(&a, &b, 0.95), of_independent(&a, &b, 0.95)] {
            let found = found.unwrap();
            assert!((found.value - 1.25).abs() < 1e-9, "{found:?}");
            assert!(found.low <= 1.25 + 1e-9 && found.high >= 1.25 - 1e-9, "{found:?}");
        }
        assert_eq!(of_pairs(&[], &[], 0.95), None);
        assert_eq!(of_independent(&[1.0], &[], 0.95), None);
    }

    #[test]
    fn counted_order_statistics_are_the_sorted_ones() {
        let mut random = Random::new(3);
        for n in [1, 2, 5, 12] {
            let a: Vec<f64> = (0..n).map(|_| 1.0 + random.uniform()).collect();
            let b: Vec<f64> = (0..n).map(|_| 1.0 + random.uniform()).collect();
            let logs: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (b / a).ln()).collect();
            let mut means: Vec<f64> = (0..n)
                .flat_map(|i| (i..n).map(move |j| (i, j)))
                .map(|(i, j)| logs[i].midpoint(logs[j]))
                .collect();
            means.sort_by(f64::total_cmp);
            let middle = means[(means.len() - 1) / 2].midpoint(means[means.len() / 2]).exp();
            let found = of_pairs(&a, &b, 0.95).unwrap();
            assert!((found.value - middle).abs() < 1e-9, "{found:?} {middle}");
        }
    }

    #[test]
    fn the_interval_covers_the_factor_at_its_confidence() {
        let mut random = Random::new(11);
        let (mut pairs, mut alone, rounds) = (0, 0, 500);
        for _ in 0..rounds {
            // Skewed noise, and a disturbance that both members of a pair share.
            let noise = |random: &mut Random| 1.0 + 0.1 * -random.uniform().ln();
            let shared: Vec<f64> = (0..20).map(|_| noise(&mut random)).collect();
            let a: Vec<f64> = shared.iter().map(|s| s * noise(&mut random)).collect();
            let b: Vec<f64> = shared.iter().map(|s| 1.1 * s * noise(&mut random)).collect();
            let holds = |f: Factor| i32::from(f.low <= 1.1 && 1.1 <= f.high);
            pairs += holds(of_pairs(&a, &b, 0.95).unwrap());
            alone += holds(of_independent(&a, &b, 0.95).unwrap());
        }
        assert!(pairs * 100 >= rounds * 93 && pairs < rounds, "{pairs} of {rounds}");
        assert!(alone * 100 >= rounds * 93 && alone < rounds, "{alone} of {rounds}");
    }

    #[test]
    fn ten_thousand_runs_are_fast() {
        let mut random = Random::new(5);
        let a: Vec<f64> = (0..10_000).map(|_| 1.0 + random.uniform()).collect();
        let b: Vec<f64> = (0..10_000).map(|_| 1.0 + random.uniform()).collect();
        let pairs = of_pairs(&a, &b, 0.95).unwrap();
        let alone = of_independent(&a, &b, 0.95).unwrap();
        assert!((pairs.value - alone.value).abs() < 0.02, "{pairs:?} {alone:?}");
    }
}
