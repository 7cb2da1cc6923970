//! What to do about a lock that others wait for.

use deadweight_trace::units::Ns;

/// If a lock is waited for less than this on average, what is done under it is brief: taking it often is the cost.
const BRIEF: Ns = Ns(100_000);
/// What to do about such a lock.
const OFTEN: &str = "The lock is held only briefly, but taken often: collect in each thread and add it up under the lock once \
    per batch or at the end, or split the lock so that unrelated work uses different locks.";

/// The advice for a program in this language whose waits take `typical` on average.
pub(super) fn remedy(language: &str, typical: Ns) -> String {
    if typical < BRIEF {
        return OFTEN.into();
    }
    let lock = match language {
        "Rust" => "drop the guard before it and lock again to store the result",
        "Go" => "call Unlock before it and Lock again to store the result",
        "C++" => "end the lock_guard's scope before it and lock again to store the result",
        _ => "unlock before it and lock again to store the result",
    };
    format!(
        "Do the long part outside the lock: {lock} (two tasks may then do the same work twice, \
         which a per-key lock avoids). Or split the lock so that unrelated work uses different locks."
    )
}
