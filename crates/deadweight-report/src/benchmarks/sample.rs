//! One benchmark's values: their centre, its interval, and whether two sets of values differ.
//!
//! Computed exactly as benchstat does, so that both print the same numbers; [`crate::stats`] has deadweight's own
//! statistics. Not for rows and columns; see `table`.

use crate::stats::normal::{below, quantile};
use crate::stats::rank_tests;

/// The confidence of intervals, as in benchstat.
pub const CONFIDENCE: f64 = 0.95;
/// benchstat's significance level: it prints `~` for larger p values.
pub const ALPHA: f64 = 0.05;
/// Up to this many values an interval is exact, and approximated beyond.
const COUNTED: usize = 30;

/// The centre of some values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Middle {
    /// The median; of exact values the most frequent one.
    pub value: f64,
    /// Its interval at [`CONFIDENCE`], if there are enough values.
    pub interval: Option<(f64, f64)>,
    /// What the reader should know.
    pub note: Option<String>,
}

/// The median of sorted values and its interval.
#[must_use]
pub fn middle(sorted: &[f64]) -> Middle {
    let n = sorted.len();
    let (low, high) = interval(n);
    let enough = low >= 1 && high <= n;
    let end = |order: usize| sorted.get(order - 1).copied();
    let interval = if enough { end(low).zip(end(high)) } else { None };
    let note = (!enough).then(|| {
        let needed = (2..=COUNTED).find(|n| {
            let (low, high) = self::interval(*n);
            low >= 1 && high <= *n
        });
        let needed = needed.unwrap_or(COUNTED);
        format!("need >= {needed} samples for confidence interval at level {CONFIDENCE}")
    });
    Middle { value: median(sorted), interval, note }
}

/// The most frequent of sorted values that should be all the same.
#[must_use]
pub fn mode(sorted: &[f64]) -> Middle {
    let (mut best, mut most) = (0.0, 0);
    let mut rest = sorted;
    while let Some(value) = rest.first() {
        let same = rest.iter().take_while(|v| v.total_cmp(value).is_eq()).count();
        if same > most {
            (best, most) = (*value, same);
        }
        rest = &rest[same..];
    }
    let (Some(low), Some(high)) = (sorted.first(), sorted.last()) else { return Middle::default() };
    let note = (most != sorted.len())
        .then(|| format!("exact distribution expected, but values range from {low} to {high}"));
    Middle { value: best, interval: Some((*low, *high)), note }
}

impl Middle {
    /// The distance of the interval's ends from the centre: `3%`, `∞` without an interval, `?` across zero.
    #[must_use]
    pub fn reach(&self) -> String {
        let Some((low, high)) = self.interval else { return "∞".into() };
        let sign = |v: f64| {
            if v == 0.0 {
                0
            } else if v > 0.0 {
                1
            } else {
                -1
            }
        };
        let middle = self.value;
        if sign(low) != sign(middle) || sign(high) != sign(middle) {
            return "?".into();
        }
        if middle == 0.0 {
            return "0%".into();
        }
        format!("{:.0}%", 100.0 * (high / middle - 1.0).max(1.0 - low / middle))
    }
}

/// Interpolated so that the estimate is unbiased whatever the distribution (the eighth of Hyndman
/// and Fan's definitions): for an odd number the middle value, up to rounding.
fn median(sorted: &[f64]) -> f64 {
    let place = 1.0 / 3.0 + 0.5 * (sorted.len() as f64 + 1.0 / 3.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a length")]
    let before = place.floor() as usize;
    match (before.checked_sub(1).and_then(|i| sorted.get(i)), sorted.get(before)) {
        (Some(lower), Some(upper)) => lower + (place - place.floor()) * (upper - lower),
        (None, _) => sorted.first().copied().unwrap_or_default(),
        (Some(last), None) => *last,
    }
}

/// The ranks, from 1, of the two values that bound the median's interval; 0 or n + 1 if there are too few. From the
/// binomial distribution; if both directions cover equally much, the lower one is taken.
fn interval(n: usize) -> (usize, usize) {
    if n > COUNTED {
        return approximate_interval(n);
    }
    let share = |heads: Option<usize>| match heads {
        Some(k) if k <= n => choices(n, k) / 2_f64.powi(i32::try_from(n).unwrap_or(0)),
        _ => 0.0,
    };
    let start = (n + 1).div_ceil(2) - 1;
    let (mut low, mut high) = (start, start + 1);
    let mut reached = share(Some(start));
    while reached < CONFIDENCE {
        let (left, right) = (share(low.checked_sub(1)), share(Some(high)));
        if left <= 0.0 && right <= 0.0 {
            break;
        }
        if left >= right {
            low -= 1;
            reached += left;
        } else {
            high += 1;
            reached += right;
        }
    }
    (low, high)
}

fn approximate_interval(n: usize) -> (usize, usize) {
    let (mean, deviation) = (n as f64 / 2.0, (n as f64 / 4.0).sqrt());
    let least = mean + deviation * quantile((1.0 - CONFIDENCE) / 2.0);
    let low = (least - 0.5).floor() + 1.0;
    let mut high = (2.0 * mean - least - 0.5).ceil() + 1.0;
    let covered = |from: f64, to: f64| {
        below((to - 0.5 - mean) / deviation) - below((from - 0.5 - mean) / deviation)
    };
    let narrower = covered(low, high - 1.0);
    if narrower >= CONFIDENCE && narrower < covered(low, high) {
        high -= 1.0;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to n + 1")]
    let whole = |v: f64| v.clamp(0.0, n as f64 + 1.0) as usize;
    (whole(low), whole(high))
}

/// How many ways to choose `k` of `n`, which is at most 30. Rounding decides between two intervals
/// that cover equally much, so it has to be benchstat's: exact up to 20, by logarithms beyond.
fn choices(n: usize, k: usize) -> f64 {
    if n <= 20 {
        return (0..k.min(n - k)).fold(1.0, |ways, i| ways * (n - i) as f64 / (i + 1) as f64);
    }
    let ln_factorial = |n: usize| libm::lgamma(n as f64 + 1.0);
    (ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)).exp()
}

/// Whether two samples differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// The p value; 0 for exact values.
    pub p: f64,
    /// What the reader should know.
    pub note: Option<String>,
}

/// The Mann-Whitney U test, as benchstat computes it.
#[must_use]
pub fn difference(a: &[f64], b: &[f64]) -> Difference {
    let first = a.first().copied().unwrap_or_default();
    if a.iter().chain(b).all(|v| v.total_cmp(&first).is_eq()) {
        return Difference { p: 1.0, note: Some("all samples are equal".into()) };
    }
    let p = rank_tests::lower_tail_doubled(a, b);
    let needed = (1..).find(|n| least_p(*n, *n) <= ALPHA).unwrap_or(usize::MAX);
    let note = (p > ALPHA && a.len() < needed && b.len() < needed)
        .then(|| format!("need >= {needed} samples to detect a difference at alpha level {ALPHA}"));
    Difference { p, note }
}

/// The smallest probability that the test can give: all values of one sample below all others.
#[must_use]
pub fn least_p(m: usize, n: usize) -> f64 {
    let choices: f64 = (1..=m.min(n)).map(|i| (m.max(n) + i) as f64 / i as f64).product();
    (2.0 / choices).min(1.0)
}

/// The geometric mean; None unless all are positive and there is one.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let (mut mean, mut count) = (0.0, 0.0);
    for value in values {
        count += 1.0;
        mean += (value.ln() - mean) / count;
    }
    Some(mean.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_cover_the_median_at_their_confidence() {
        assert_eq!(interval(5), (0, 5), "too few");
        assert_eq!(interval(6), (1, 6));
        for n in 6..=COUNTED {
            let (low, high) = interval(n);
            let ways: f64 = (low..high).map(|k| choices(n, k)).sum();
            let covered = ways / 2_f64.powi(i32::try_from(n).unwrap());
            assert!((CONFIDENCE..0.985).contains(&covered), "{n}: {covered}");
        }
        for n in COUNTED + 1..200 {
            let (low, high) = interval(n);
            let counted = crate::stats::median::summarise(&(1..=n as u64).collect::<Vec<_>>());
            assert!(counted.interval.low.abs_diff(low as u64) <= 1, "{n}: {low}");
            assert!(counted.interval.high.abs_diff(high as u64) <= 1, "{n}: {high}");
        }
    }

    #[test]
    fn the_reach_is_in_per_cent_if_that_is_defined() {
        let middle = |value, interval| Middle { value, interval, note: None };
        assert_eq!(middle(100.0, Some((98.0, 103.0))).reach(), "3%");
        assert_eq!(middle(1.0, None).reach(), "∞");
        assert_eq!(middle(1.0, Some((-1.0, 2.0))).reach(), "?");
        assert_eq!(middle(0.0, Some((0.0, 0.0))).reach(), "0%");
    }

    #[test]
    fn too_few_values_get_a_note() {
        let few = difference(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]);
        assert!((few.p - 0.1).abs() < 1e-12);
        assert!(few.note.is_some_and(|note| note.starts_with("need >= 4 samples")));
        assert!((least_p(4, 4) - 2.0 / 70.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert!(geometric_mean(&[2.0, 8.0]).is_some_and(|mean| (mean - 4.0).abs() < 1e-12));
    }
}
