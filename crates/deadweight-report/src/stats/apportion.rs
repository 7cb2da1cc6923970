//! Dividing a whole number among shares so that the parts add up to it exactly.
//!
//! By largest remainder: each part is within one unit of its exact share, and a share of zero gets nothing. Not for
//! rounding single numbers.

/// Divides `total` in proportion to `weights`. The parts add up to `total`, each within one unit
/// of its exact share; a weight of 0 gets 0. Ties go to the earlier part. If all weights are zero
/// there is nothing to divide by, and all parts are 0.
#[must_use]
pub fn apportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|w| u128::from(*w)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let exact = |w: &u64| u128::from(total) * u128::from(*w);
    let mut parts: Vec<u64> = weights.iter().map(|w| narrow(exact(w) / sum)).collect();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by_key(|i| std::cmp::Reverse(weights.get(*i).map_or(0, |w| exact(w) % sum)));
    let left = total - parts.iter().sum::<u64>();
    for index in by_remainder.into_iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
        if let Some(part) = parts.get_mut(index) {
            *part += 1;
        }
    }
    parts
}

/// A quotient that is at most `total`, so it fits.
fn narrow(part: u128) -> u64 {
    u64::try_from(part).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::apportion;
    use proptest::prelude::*;

    #[test]
    fn the_largest_remainders_get_what_is_left() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(1000, &[846, 55, 40, 36, 16, 7]), [846, 55, 40, 36, 16, 7]);
        assert_eq!(apportion(100, &[0, 999, 1]), [0, 100, 0]);
        assert_eq!(apportion(5, &[0, 0]), [0, 0]);
        assert_eq!(apportion(5, &[]), Vec::<u64>::new());
    }

    proptest! {
        #[test]
        fn parts_add_up_and_keep_to_their_share(
            total in any::<u64>(),
            weights in prop::collection::vec(any::<u64>(), 1..40),
        ) {
            let parts = apportion(total, &weights);
            let sum: u128 = weights.iter().map(|w| u128::from(*w)).sum();
            prop_assume!(sum > 0);
            prop_assert_eq!(parts.iter().map(|p| u128::from(*p)).sum::<u128>(), u128::from(total));
            for (part, weight) in parts.iter().zip(&weights) {
                let floor = u128::from(total) * u128::from(*weight) / sum;
                prop_assert!(u128::from(*part) == floor || u128::from(*part) == floor + 1);
                prop_assert!(*weight > 0 || *part == 0);
            }
        }
    }
}
