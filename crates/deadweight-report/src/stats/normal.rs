//! The normal distribution, for large samples. Not for small ones: `median` and `rank_tests` count exactly.

/// The value below which the standard normal distribution lies with probability `p`, between 0 and
/// 1 exclusively: found by bisection of the distribution function.
#[must_use]
pub fn quantile(p: f64) -> f64 {
    // Beyond nine deviations f64 cannot tell the probability from 0 or 1.
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if below(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Probability that a standard normal value is below `x`.
#[must_use]
pub fn below(x: f64) -> f64 {
    libm::erfc(-x / std::f64::consts::SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_invert_the_distribution() {
        assert!((quantile(0.975) - 1.959_963_985).abs() < 1e-8);
        assert!(quantile(0.5).abs() < 1e-12);
        for p in [0.001, 0.2, 0.8, 0.999] {
            assert!((below(quantile(p)) - p).abs() < 1e-12, "{p}");
        }
    }
}
