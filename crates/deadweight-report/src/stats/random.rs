//! Random numbers for the simulations in tests: the same ones in every run.
//!
//! Not for the statistics themselves, which use none.

/// A linear congruential generator.
pub(crate) struct Random(u64);

impl Random {
    /// A generator that starts at `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number; its high bits are the random ones.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        self.0
    }

    /// Uniform between 0 and 1, never 0.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.number() >> 11) as f64 / (1_u64 << 53) as f64).max(1e-9)
    }
}
