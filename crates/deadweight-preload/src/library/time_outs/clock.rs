//! The program's clock: the kernel's, and the time that was left out.

use crate::real::real;
use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicI64, Ordering};

/// `struct timespec`, and `struct timeval` with microseconds.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Time {
    pub(super) seconds: i64,
    pub(super) fraction: c_long,
}

pub(super) const REALTIME: c_int = 0;
pub(super) const MONOTONIC: c_int = 1;
const SECOND: i64 = 1_000_000_000;
/// How long a wait looks for its event. The kernel adds up to 50 µs.
pub(super) const MOMENT: i64 = 20_000;
/// A time later than this is one of the wall clock.
const YEARS: i64 = 1_000_000_000 * SECOND;

/// Nanoseconds by which the program's clock is ahead.
static AHEAD: AtomicI64 = AtomicI64::new(0);

real!(fn clock_gettime as real_clock_gettime(clock: c_int, now: *mut Time) -> c_int);

impl Time {
    pub(super) fn of(ns: i64) -> Time {
        Time { seconds: ns.div_euclid(SECOND), fraction: ns.rem_euclid(SECOND) }
    }

    pub(super) fn ns(self) -> i64 {
        self.seconds.saturating_mul(SECOND).saturating_add(self.fraction)
    }
}

pub(super) fn ahead() -> i64 {
    AHEAD.load(Ordering::Relaxed)
}

/// The kernel's time.
pub(super) unsafe fn now(clock: c_int) -> i64 {
    let mut time = Time::default();
    real_clock_gettime(clock, &raw mut time);
    time.ns()
}

/// The clock of a time that a condition variable waits for: it was chosen when the variable was made.
pub(super) fn clock_of(until: i64) -> c_int {
    if until > YEARS { REALTIME } else { MONOTONIC }
}

/// A wait until a time of the program's clock.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    clock: c_int,
    until: i64,
}

impl Wait {
    /// A wait that is longer than a moment.
    pub(super) unsafe fn until(clock: c_int, until: i64) -> Option<Wait> {
        let left = until.saturating_sub(ahead()).saturating_sub(now(clock));
        (left > MOMENT).then_some(Wait { clock, until })
    }

    /// The same for a time from now on.
    pub(super) unsafe fn of(ns: i64) -> Option<Wait> {
        let until = now(MONOTONIC).saturating_add(ahead()).saturating_add(ns);
        (ns > MOMENT).then_some(Wait { clock: MONOTONIC, until })
    }

    /// Nothing came: its time is over.
    pub(super) unsafe fn is_over(self) {
        AHEAD.fetch_max(self.until.saturating_sub(now(self.clock)), Ordering::Relaxed);
    }
}

fn is_wall_time(clock: c_int) -> bool {
    // Not the CPU times of processes and threads.
    matches!(clock, 0 | 1 | 4..=9 | 11)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: c_int, to: *mut Time) -> c_int {
    let result = real_clock_gettime(clock, to);
    if result == 0 && ahead() != 0 && is_wall_time(clock) {
        *to = Time::of((*to).ns().saturating_add(ahead()));
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gettimeofday(to: *mut Time, _zone: *mut c_void) -> c_int {
    if !to.is_null() {
        let Time { seconds, fraction } = Time::of(now(REALTIME).saturating_add(ahead()));
        *to = Time { seconds, fraction: fraction / 1000 };
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn time(to: *mut i64) -> i64 {
    let seconds = Time::of(now(REALTIME).saturating_add(ahead())).seconds;
    if !to.is_null() {
        *to = seconds;
    }
    seconds
}
