//! Values that are no level of the series: something disturbed their measurement.
//!
//! Not for outliers among the runs of one commit; see `stats::spread`.

use crate::stats::median::median_of;

/// A level has at least this many values, one after the other. Fewer are a disturbance.
pub(super) const LASTING: usize = 3;
/// Values of one level differ by at most this many standard deviations.
const DEVIATIONS: f64 = 4.0;

/// The indices of the values that no disturbance explains: at least two of the six nearest values are near. So the
/// values beside a change are kept, and one or two values apart from all others are not.
///
/// Differences from a median of neighbours would do as well, but the last three values of a series have none.
pub(super) fn undisturbed(series: &[f64]) -> Vec<usize> {
    let all = 2 * LASTING + 1;
    if series.len() < all {
        return (0..series.len()).collect();
    }
    let far = DEVIATIONS * deviation(series);
    let is_kept = |i: &usize| {
        let start = i.saturating_sub(LASTING).min(series.len() - all);
        let near = series[start..start + all].iter().filter(|v| (*v - series[*i]).abs() <= far);
        // The value itself is one of them.
        near.count() >= LASTING
    };
    (0..series.len()).filter(is_kept).collect()
}

/// The standard deviation of a series around its level, from the steps between neighbours: changes and drift do not
/// count, and few disturbances hardly do.
fn deviation(series: &[f64]) -> f64 {
    let steps: Vec<f64> = series.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let typical = match median_of(&steps) {
        // Most values are equal.
        step if step <= 0.0 => steps.iter().sum::<f64>() / steps.len().max(1) as f64,
        step => step,
    };
    // Of normal values: half of the steps are within 0.6745 of their deviation, which is the root of 2 times as large.
    typical / 0.6745 / std::f64::consts::SQRT_2
}

#[cfg(test)]
mod tests {
    use super::undisturbed;

    fn disturbed(series: &[f64]) -> Vec<usize> {
        let kept = undisturbed(series);
        (0..series.len()).filter(|i| !kept.contains(i)).collect()
    }

    #[test]
    fn one_or_two_values_are_a_disturbance_and_three_are_a_level() {
        let mut series: Vec<f64> = (0..30).map(|i| 100.0 + f64::from(i * 7 % 3)).collect();
        assert!(disturbed(&series).is_empty());
        series[0] = 120.0;
        assert_eq!(disturbed(&series), [0]);
        series[0] = 100.0;
        series[12] = 130.0;
        assert_eq!(disturbed(&series), [12]);
        series[13] = 129.0;
        assert_eq!(disturbed(&series), [12, 13]);
        series[14] = 131.0;
        assert!(disturbed(&series).is_empty());
    }

    #[test]
    fn the_values_beside_a_step_are_kept() {
        for at in 3..=17 {
            let series: Vec<f64> =
                (0..20).map(|i| if i < at { 100.0 } else { 110.0 } + f64::from(i % 2)).collect();
            assert!(disturbed(&series).is_empty(), "step at {at}");
        }
    }

    #[test]
    fn values_that_often_repeat_are_no_disturbance() {
        let series: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i32::from(i % 4 == 0))).collect();
        assert!(disturbed(&series).is_empty());
        assert!(disturbed(&[1.0, 9.0]).is_empty());
        assert!(disturbed(&[]).is_empty());
    }
}
