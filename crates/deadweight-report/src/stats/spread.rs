//! Anomalies of a series of run times: outliers, two modes, a cold start, drift.
//!
//! Hints for people, as values; nothing is removed from the series. The thresholds are rules of thumb, chosen so that
//! twenty values without anomalies give no hint (tested). Not for medians; see `median`.

use crate::stats::median;

/// A reason to doubt that a series has one typical value.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Doubt {
    /// The first run was much slower than all others: caches were cold.
    ColdStart {
        /// The first value over the median of the others.
        factor: f64,
    },
    /// Some values are far from the rest.
    Outliers {
        /// How many.
        count: usize,
        /// The farthest one over the median.
        factor: f64,
    },
    /// The values fall into two groups with nothing between.
    TwoModes {
        /// Median of the faster group.
        fast: u64,
        /// Median of the slower group.
        slow: u64,
        /// How many values are in the slower group.
        slow_count: usize,
    },
    /// The second half is slower or faster than the first, without overlap of their intervals.
    Drift {
        /// Median of the second half over that of the first.
        factor: f64,
    },
}

/// Fewer values than this show nothing about their distribution.
const FEWEST: usize = 5;
/// An outlier is this many median deviations away from the median ...
const DEVIATIONS: u64 = 10;
/// ... and at least one part in this many of the median: runs of a quiet machine differ by less.
const NOTABLE: u64 = 5;

/// The anomalies of `values`, which are in order of running.
#[must_use]
pub fn doubts(values: &[u64]) -> Vec<Doubt> {
    let mut found = Vec::new();
    let Some((first, rest)) = values.split_first() else { return found };
    if values.len() < FEWEST {
        return found;
    }
    let cold = Usual::of(rest).is_far(*first) && first > rest.iter().max().unwrap_or(first);
    let series = if cold {
        let typical = median::summarise(rest).interval.median;
        found.push(Doubt::ColdStart { factor: ratio(*first, typical) });
        rest
    } else {
        values
    };
    let modes = two_modes(series);
    found.extend(modes);
    if modes.is_none() {
        found.extend(outliers(series));
        found.extend(drift(series));
    }
    found
}

/// Which values are far from the rest.
#[must_use]
pub fn are_outliers(values: &[u64]) -> Vec<bool> {
    let usual = Usual::of(values);
    values.iter().map(|value| usual.is_far(*value)).collect()
}

/// Where most values are, and how far from there a value is an outlier.
struct Usual {
    centre: u64,
    reach: u64,
}

impl Usual {
    fn of(values: &[u64]) -> Self {
        let centre = median::summarise(values).interval.median;
        let deviations: Vec<u64> = values.iter().map(|v| v.abs_diff(centre)).collect();
        let deviation = median::summarise(&deviations).interval.median;
        let reach = deviation.saturating_mul(DEVIATIONS).max(centre / NOTABLE);
        Self { centre, reach }
    }

    fn is_far(&self, value: u64) -> bool {
        value.abs_diff(self.centre) > self.reach
    }
}

/// Values far from the rest.
fn outliers(values: &[u64]) -> Option<Doubt> {
    let usual = Usual::of(values);
    let far = values.iter().copied().filter(|v| usual.is_far(*v));
    let worst = far.clone().max_by_key(|v| v.abs_diff(usual.centre))?;
    Some(Doubt::Outliers { count: far.count(), factor: ratio(worst, usual.centre) })
}

/// Two groups, each of at least a fifth of the values, whose gap is wider than either group.
fn two_modes(values: &[u64]) -> Option<Doubt> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let fewest = (sorted.len() / 5).max(2);
    let last = sorted.len().checked_sub(fewest)?;
    let gap_before =
        |i: &usize| match (sorted.get(*i), i.checked_sub(1).and_then(|j| sorted.get(j))) {
            (Some(upper), Some(lower)) => upper - lower,
            _ => 0,
        };
    let split = (fewest..=last).max_by_key(gap_before)?;
    let (fast, slow) = sorted.split_at(split);
    let width = |group: &[u64]| match (group.first(), group.last()) {
        (Some(least), Some(most)) => most - least,
        _ => 0,
    };
    let gap = gap_before(&split);
    let typical = median::summarise(fast).interval.median;
    if gap <= width(fast).max(width(slow)) || gap < typical / NOTABLE {
        return None;
    }
    let slow_median = median::summarise(slow).interval.median;
    Some(Doubt::TwoModes { fast: typical, slow: slow_median, slow_count: slow.len() })
}

/// Halves whose intervals lie apart.
fn drift(values: &[u64]) -> Option<Doubt> {
    let (early, late) = values.split_at(values.len() / 2);
    if early.len() < median::needed() {
        return None;
    }
    let (early, late) = (median::summarise(early).interval, median::summarise(late).interval);
    let apart = early.high < late.low || late.high < early.low;
    let notable = early.median.abs_diff(late.median) > early.median / NOTABLE;
    (apart && notable).then(|| Doubt::Drift { factor: ratio(late.median, early.median) })
}

fn ratio(value: u64, of: u64) -> f64 {
    value as f64 / of.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_series_has_no_anomaly() {
        let even: Vec<u64> = (0..20).map(|i| 1000 + (i * 37) % 50).collect();
        assert_eq!(doubts(&even), []);
        assert_eq!(doubts(&[100; 9]), []);
        assert_eq!(doubts(&[1, 900, 3]), [], "too few to say");
    }

    #[test]
    fn a_slow_first_run_is_a_cold_start_not_an_outlier() {
        let mut series = vec![1002; 9];
        series[0] = 3006;
        assert_eq!(doubts(&series), [Doubt::ColdStart { factor: 3.0 }]);
    }

    #[test]
    fn outliers_are_counted_and_the_worst_named() {
        let series = [100, 101, 99, 100, 300, 98, 102, 100, 99, 150, 101, 100];
        assert_eq!(doubts(&series), [Doubt::Outliers { count: 2, factor: 3.0 }]);
    }

    #[test]
    fn two_groups_are_two_modes_not_outliers() {
        let series = [100, 205, 101, 199, 102, 201, 99, 98, 200, 100];
        assert_eq!(doubts(&series), [Doubt::TwoModes { fast: 100, slow: 200, slow_count: 4 }]);
    }

    #[test]
    fn a_slow_second_half_is_drift() {
        let series = [100, 104, 98, 107, 101, 95, 99, 125, 131, 128, 124, 136, 129, 140];
        assert_eq!(doubts(&series), [Doubt::Drift { factor: 1.29 }]);
    }
}
