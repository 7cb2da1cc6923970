//! Timing short pieces of work: the shortest of a few tries, and the duration of an empty system call. For what a
//! recording costs a program see `session::calibrate`.

pub(crate) mod cycle;

use crate::clock::now;
use std::mem::MaybeUninit;

/// The shortest of this many tries counts; other tasks disturbed the rest. Many short tries are better than a few
/// long ones: a short try is more likely to be undisturbed.
pub(crate) const TRIES: usize = 6;

/// Number of empty calls per try: too few for the BPF programs to report their counts meanwhile.
pub(crate) const EMPTY: u64 = 100;

/// Makes that many empty calls on the calling thread.
pub(crate) fn empty_calls() {
    for _ in 0..EMPTY {
        // SAFETY: there is no such descriptor.
        unsafe { libc::syscall(libc::SYS_lseek, -1, 0, 0) };
    }
}

/// Durations of calls that are not recorded, in ns; 0 if not measured.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Unrecorded {
    /// An empty call.
    pub(crate) empty: f64,
    /// A short call, see [`short_calls`].
    pub(crate) short: f64,
}

/// Number of short calls per try: so many that the first ones, which are slower, matter little.
pub(crate) const SHORT: u64 = 400;

/// Makes [`SHORT`] calls on the calling thread that do a little: counting a call costs less beside the work of a real
/// one. They use no descriptor, which takes longer in a process with several threads.
pub(crate) fn short_calls() {
    for _ in 0..SHORT {
        let mut names = MaybeUninit::<libc::utsname>::uninit();
        // SAFETY: fills in the names.
        unsafe { libc::syscall(libc::SYS_uname, names.as_mut_ptr()) };
    }
}

/// Moves the kernel entry and exit cost of a call from `inside` (between the call's two records) to `around` (outside
/// of them), both in ns. Recording costs `around` and `inside`; entry and exit lie outside of the records and would
/// look like the program's own work. An unrecorded empty call (`bare_call`) consists of little else.
pub(crate) fn with_entry_cost(bare_call: f64, around: f64, inside: f64) -> [f64; 2] {
    /// The call's instructions on the user side: its arguments, and the library's wrapper.
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
