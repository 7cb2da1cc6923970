//! Runs of a series between two change points: their mean and variance, and the t test of two neighbours.
//!
//! Not for where a series is split.

use crate::stats::student;

/// Count, mean and variance of consecutive values.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Segment {
    count: f64,
    pub(super) mean: f64,
    /// Sum of the squared differences from the mean.
    pub(super) squares: f64,
}

impl Segment {
    /// Of `values`, of which there is at least one.
    pub(super) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        // Differences from the first value: so equal values have exactly their mean, and no variance.
        let origin = values.first().copied().unwrap_or_default();
        let mean = origin + values.iter().map(|v| v - origin).sum::<f64>() / count;
        let squares = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        Self { count, mean, squares }
    }

    /// This one and the next as one, without a second look at the values. Differences of sums over the whole series
    /// would be as fast, but lose the digits of a small variance.
    pub(super) fn joined(&self, next: &Self) -> Self {
        let count = self.count + next.count;
        let difference = next.mean - self.mean;
        let between = difference * difference * self.count * next.count / count;
        Self {
            count,
            mean: self.mean + difference * next.count / count,
            squares: self.squares + next.squares + between,
        }
    }

    /// The standard deviation of the values themselves: divided by n, not n - 1.
    pub(super) fn deviation(&self) -> f64 {
        (self.squares / self.count).sqrt()
    }

    /// Student's t test of two segments: the two-sided p value. Not a number for equal values throughout.
    pub(super) fn sample_p(&self, next: &Self) -> f64 {
        self.t_test(next, |s| s.squares)
    }

    /// Otava's t test, in which the deviation of the values stands where the test has the estimate with n - 1. So p is a
    /// little smaller than it should be.
    pub(super) fn p(&self, next: &Self) -> f64 {
        self.t_test(next, |s| s.squares * (s.count - 1.0) / s.count)
    }

    /// With a segment's squares as given. 1 for one value each.
    fn t_test(&self, next: &Self, squares: impl Fn(&Self) -> f64) -> f64 {
        let degrees = self.count + next.count - 2.0;
        if degrees <= 0.0 {
            return 1.0;
        }
        let pooled = (squares(self) + squares(next)) / degrees;
        let error = (pooled * (1.0 / self.count + 1.0 / next.count)).sqrt();
        student::two_sided((self.mean - next.mean) / error, degrees)
    }
}

#[cfg(test)]
mod tests {
    use super::Segment;

    #[test]
    fn joined_segments_are_the_segment_of_both() {
        let values = [3.0, 7.0, 4.0, 1e3, 2.0, 9.0];
        let whole = Segment::of(&values);
        let joined = Segment::of(&values[..2]).joined(&Segment::of(&values[2..]));
        assert!((joined.mean / whole.mean - 1.0).abs() < 1e-14);
        assert!((joined.squares / whole.squares - 1.0).abs() < 1e-14);
    }

    #[test]
    fn equal_values_have_no_variance() {
        let tenths = Segment::of(&[0.1; 10]);
        assert!(tenths.deviation() <= 0.0);
        assert!(tenths.p(&Segment::of(&[0.1; 3])).is_nan());
        assert!(tenths.p(&Segment::of(&[0.2; 3])) <= 0.0);
        assert!(Segment::of(&[1.0]).p(&Segment::of(&[2.0])) >= 1.0);
    }
}
