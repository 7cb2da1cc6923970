//! Which samples of a long recording keep more than their stack.

/// All samples up to this one.
const ALL: u64 = 1 << 14;
/// The length of a stretch of samples in turn: what moves from one sample to the next can be seen in it.
const STRETCH: u64 = 1 << 8;

/// Chooses all samples at first; then, each time that their number has doubled, half as many as before of each
/// doubling: the number of chosen ones grows with the logarithm of all.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    seen: u64,
}

impl Stretches {
    /// Whether the next sample is chosen.
    pub(super) fn next(&mut self) -> bool {
        let at = self.seen;
        self.seen += 1;
        let doublings = (at / ALL).checked_ilog2().map_or(0, |n| n + 1);
        let stretch = at / STRETCH;
        stretch.is_multiple_of(1 << doublings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_samples_at_first_and_then_stretches_of_them() {
        let mut stretches = Stretches::default();
        let mut count = |samples: u64| (0..samples).filter(|_| stretches.next()).count() as u64;
        assert_eq!(count(ALL), ALL);
        assert_eq!(count(ALL), ALL / 2);
        assert_eq!(count(2 * ALL), ALL / 2);
        assert!(count(100 * ALL) < 4 * ALL);
    }
}
