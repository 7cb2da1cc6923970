//! Timing short pieces of work: the shortest of a few tries, and what an empty system call takes. Not for what a
//! recording costs a program: see `session::calibrate`.

use crate::clock::now;

/// The best of so many tries counts: the others were disturbed. Many short ones, because the
/// shorter a try, the likelier is one that nothing disturbs.
pub(crate) const TRIES: usize = 6;

/// So many empty calls are tried at a time: too few for counted ones to be told.
pub(crate) const EMPTY: u64 = 100;

/// Makes them, on the calling thread.
pub(crate) fn empty_calls() {
    for _ in 0..EMPTY {
        // SAFETY: there is no such descriptor.
        unsafe { libc::syscall(libc::SYS_lseek, -1, 0, 0) };
    }
}

/// What an observed call costs `around` its records and `inside` of them, in ns, so that what is left around
/// them is the program's own, and inside all that the kernel does for the call: the way across the kernel's
/// border lies outside of the records, and would look like the program's own work. Of an empty call that
/// nobody observes it is next to all.
pub(crate) fn with_entry_cost(bare_call: f64, around: f64, inside: f64) -> [f64; 2] {
    /// A call's instructions on the program's side: its arguments, and the wrapper of a library.
    const OWN: f64 = 5.0;
    let border = (bare_call - OWN).clamp(0.0, inside.max(0.0));
    [around + border, inside - border]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to some millions")]
pub(crate) fn whole(ns: f64) -> u64 {
    ns.round().clamp(0.0, 1e8) as u64
}

/// The shortest of a few tries, divided by `count`, in ns.
pub(crate) fn best(count: u64, mut act: impl FnMut()) -> f64 {
    let tries = (0..TRIES).map(|_| {
        let start = now();
        act();
        now() - start
    });
    tries.min().unwrap_or(0) as f64 / count as f64
}
