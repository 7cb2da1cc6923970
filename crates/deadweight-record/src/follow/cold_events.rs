//! How far apart a recording's events were: the longer ago the last one, the more of what recording needs has left the
//! processor's caches, and the more an event costs. `session::calibrate` measures both ends.

/// An event up to this long after another one, in ns, costs no more than in a dense sequence ...
const WARM: f64 = 2_000.0;
/// ... and after this long as much as after other work. Between them the cost grows evenly; measured for walks through
/// 64 KiB to 4 MiB of memory.
const COLD: f64 = 40_000.0;

/// Events of one kind.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct ColdEvents {
    count: f64,
    cold: f64,
}

impl ColdEvents {
    /// An event came so many ns after the previous event on its CPU.
    pub(crate) fn add(&mut self, gap: u64) {
        self.count += 1.0;
        self.cold += ((gap as f64 - WARM) / (COLD - WARM)).clamp(0.0, 1.0);
    }

    /// How cold they were in the mean: 0 to 1.
    pub(crate) fn share(self) -> f64 {
        if self.count > 0.0 { self.cold / self.count } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_events_are_warm_and_sparse_ones_cold() {
        let share = |gaps: &[u64]| {
            let mut events = ColdEvents::default();
            gaps.iter().for_each(|gap| events.add(*gap));
            events.share()
        };
        assert!(share(&[]) + share(&[300, 2_000]) < 1e-9);
        assert!((share(&[21_000]) - 0.5).abs() < 1e-9);
        assert!((share(&[1_000_000, 1_000]) - 0.5).abs() < 1e-9);
    }
}
