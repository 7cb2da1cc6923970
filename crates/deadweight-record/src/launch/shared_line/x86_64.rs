//! Additions to memory on x86-64: an optimised program's, also where this one is not optimised.

use std::arch::asm;
use std::sync::atomic::AtomicU64;

/// Adds 1 to a word so many times, at least once; not atomically.
pub(super) fn add(word: &AtomicU64, turns: u64) {
    // SAFETY: the word lives, and only this thread writes it. It changes the flags.
    unsafe {
        asm!(
            "2: add qword ptr [{word}], 1",
            "dec {turns}",
            "jnz 2b",
            word = in(reg) word.as_ptr(),
            turns = inout(reg) turns.max(1) => _,
            options(nostack),
        );
    }
}
