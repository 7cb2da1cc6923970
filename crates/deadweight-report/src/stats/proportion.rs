//! The interval of a share of time, from a share of samples.
//!
//! Not for wall times of runs; see `median`.

/// 1.96 standard deviations hold 95 % of a normal distribution.
const Z: f64 = 1.96;

/// The 95 % interval of a share, of which `samples` independent samples showed `share`: Wilson's score
/// interval (E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927,
/// p. 209). It lies within 0..=1 and is useful at its ends: 0 of 20 is not "certainly nothing", but 0 to 16 %. Without samples it is 0..=1.
#[must_use]
pub fn proportion(share: f64, samples: u64) -> (f64, f64) {
    if samples == 0 {
        return (0.0, 1.0);
    }
    let n = samples as f64;
    let p = share.clamp(0.0, 1.0);
    let scale = 1.0 + Z * Z / n;
    let middle = (p + Z * Z / (2.0 * n)) / scale;
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    ((middle - half).clamp(0.0, p), (middle + half).clamp(p, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent((low, high): (f64, f64)) -> (f64, f64) {
        ((low * 1000.0).round() / 10.0, (high * 1000.0).round() / 10.0)
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Computed by hand from the published formula.
        assert_eq!(percent(proportion(0.0, 20)), (0.0, 16.1));
        assert_eq!(percent(proportion(1.0, 20)), (83.9, 100.0));
        assert_eq!(percent(proportion(0.5, 100)), (40.4, 59.6));
        assert_eq!(proportion(0.3, 0), (0.0, 1.0));
    }

    #[test]
    fn more_samples_narrow_it_around_the_share() {
        let mut width = 1.0;
        for samples in [10, 100, 1_000, 100_000] {
            let (low, high) = proportion(0.2, samples);
            assert!(low <= 0.2 && 0.2 <= high && high - low < width);
            width = high - low;
        }
    }
}
