//! How far apart a recording's events were: the longer ago the last one, the more of what recording needs has left the
//! processor's caches, and the more an event costs. `session::calibrate` measures both ends.

/// A call that begins this long after another event, in ns, costs as much as an empty call among others ...
pub(crate) const WARM_CALL: f64 = 300.0;
/// ... and a fault as much as a first touch among others.
pub(crate) const WARM_FAULT: f64 = 2_000.0;
/// After this long, an event costs as much as after other work. Between them its cost grows with the logarithm: calls
/// that open, read and close files, 0.5 to 3 us apart, cost 1.2 to 2 times as much as empty ones.
const COLD: f64 = 40_000.0;

/// Events of one kind.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct ColdEvents {
    count: f64,
    /// Sum of the logarithms of their times as multiples of the warm one, at most [`COLD`].
    logarithms: f64,
}

impl ColdEvents {
    /// An event came so many ns after the previous event on its CPU. `warm`: one of the constants above.
    pub(crate) fn add(&mut self, gap: u64, warm: f64) {
        let gap = gap as f64;
        self.count += 1.0;
        if gap > warm {
            self.logarithms += (gap.min(COLD) / warm).ln();
        }
    }

    /// How many there were.
    pub(crate) fn number(self) -> f64 {
        self.count
    }

    /// How cold they were in the mean, with the same `warm`: 0 to 1.
    pub(crate) fn share(self, warm: f64) -> f64 {
        if self.count > 0.0 { self.logarithms / self.count / (COLD / warm).ln() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_events_are_warm_and_sparse_ones_cold() {
        let share = |gaps: &[u64]| {
            let mut events = ColdEvents::default();
            gaps.iter().for_each(|gap| events.add(*gap, 400.0));
            events.share(400.0)
        };
        assert!(share(&[]) + share(&[0, 300, 400]) < 1e-9);
        assert!((share(&[4_000]) - 0.5).abs() < 1e-9, "half of the decades between them");
        assert!((share(&[1_000_000, 100]) - 0.5).abs() < 1e-9);
    }
}
