//! A quick hash for keys that are addresses and small numbers.
//!
//! Such keys come from the program's layout, not from an attacker. Tables with strings from files use the standard
//! hasher.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`Fast`] hashers.
pub type ByFast = BuildHasherDefault<Fast>;

/// An odd number with well mixed bits: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes `word` into `hash`.
#[must_use]
pub fn fold(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(SPREAD);
    mixed ^ (mixed >> 29)
}

/// The hasher.
#[derive(Copy, Clone, Debug, Default)]
pub struct Fast(u64);

impl Hasher for Fast {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = fold(self.0, u64::from(*byte));
        }
    }

    fn write_u16(&mut self, word: u16) {
        self.0 = fold(self.0, u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.0 = fold(self.0, u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = fold(self.0, word);
    }

    fn write_usize(&mut self, word: usize) {
        self.0 = fold(self.0, word as u64);
    }
}
