//! Additions to memory in Rust: slower than a program's where this one is not optimised.

use std::sync::atomic::{AtomicU64, Ordering};

/// Adds 1 to a word so many times, at least once; not atomically.
pub(super) fn add(word: &AtomicU64, turns: u64) {
    for _ in 0..turns.max(1) {
        word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}
