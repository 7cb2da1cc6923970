//! Student's t distribution: the two-sided p value of a t test.
//!
//! Not for skewed values or few of them: `rank_tests` assumes no distribution.

/// Terms of the continued fraction at most. It converges in about as many as the root of the degrees of freedom.
const TERMS: u32 = 10_000;

/// Probability that a value of Student's distribution with so many degrees of freedom is as far from 0 as `t`, on
/// either side. Not a number if `t` is none.
#[must_use]
pub fn two_sided(t: f64, degrees: f64) -> f64 {
    if t.is_nan() {
        return t;
    }
    // Abramowitz and Stegun, 26.7.1: the incomplete beta function at degrees / (degrees + t²).
    let odds = t * t / degrees;
    if odds.is_infinite() {
        return 0.0;
    }
    incomplete_beta(degrees / 2.0, 0.5, odds)
}

/// The regularised incomplete beta function I(a, b) at x = 1 / (1 + odds). The odds are given, because x itself is
/// rounded to 1 where they are small.
fn incomplete_beta(a: f64, b: f64, odds: f64) -> f64 {
    if odds <= 0.0 {
        return 1.0;
    }
    let (x, rest) = (1.0 / (1.0 + odds), odds / (1.0 + odds));
    let (ln_x, ln_rest) = (-odds.ln_1p(), odds.ln() - odds.ln_1p());
    let ln_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = (a * ln_x + b * ln_rest - ln_beta).exp();
    // The fraction converges fast below the distribution's mean; beyond it, the complement's does.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, rest) / b
    }
}

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun, 26.5.8), evaluated by Lentz's method.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut upper = 1.0;
    let mut lower = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = lower;
    for m in (1..TERMS).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            lower = 1.0 / away_from_zero(1.0 + term * lower);
            upper = away_from_zero(1.0 + term / upper);
            factor = lower * upper;
            value *= factor;
        }
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::two_sided;
    use crate::stats::normal;

    fn assert_near(found: f64, expected: f64, precision: f64) {
        assert!((found / expected - 1.0).abs() < precision, "{found:e} instead of {expected:e}");
    }

    #[test]
    fn one_and_two_degrees_have_closed_forms() {
        for t in [1e-3_f64, 0.2, 1.0, 3.0, 50.0, 1e6] {
            let cauchy = 2.0 * (1.0 / t).atan() / std::f64::consts::PI;
            assert_near(two_sided(t, 1.0), cauchy, 1e-12);
            assert_near(two_sided(-t, 1.0), cauchy, 1e-12);
            let root = (2.0 + t * t).sqrt();
            assert_near(two_sided(t, 2.0), 2.0 / (root * (root + t)), 1e-12);
        }
    }

    #[test]
    fn critical_values_are_those_of_the_tables() {
        for (degrees, t) in [(5.0, 2.570_581_8), (10.0, 2.228_138_9), (30.0, 2.042_272_5)] {
            assert_near(two_sided(t, degrees), 0.05, 1e-6);
        }
    }

    #[test]
    fn many_degrees_are_the_normal_distribution() {
        for t in [0.1, 1.0, 2.5, 6.0] {
            assert_near(two_sided(t, 1e7), 2.0 * normal::below(-t), 1e-4);
        }
    }

    #[test]
    fn the_ends_have_values() {
        assert_near(two_sided(0.0, 4.0), 1.0, 1e-15);
        assert!(two_sided(f64::INFINITY, 4.0) <= 0.0 && two_sided(f64::NAN, 4.0).is_nan());
        assert!(two_sided(1e200, 1e5) <= 0.0);
    }
}
