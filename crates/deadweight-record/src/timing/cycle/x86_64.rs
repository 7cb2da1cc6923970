//! A chain of additions on x86-64: no compiler's, so that it is the same where this program is not optimised.

use std::arch::asm;

/// In each turn of the loop.
const IN_TURN: u64 = 100;

/// Makes at least so many additions, each of the result of the one before. Returns how many.
pub(super) fn add(least: u64) -> Option<u64> {
    let turns = least.div_ceil(IN_TURN);
    // SAFETY: it changes two registers and the flags.
    unsafe {
        asm!(
            "2:",
            ".rept 100",
            "add {sum}, 1",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            sum = inout(reg) 0_u64 => _,
            turns = inout(reg) turns => _,
            options(nostack, nomem),
        );
    }
    Some(turns * IN_TURN)
}
