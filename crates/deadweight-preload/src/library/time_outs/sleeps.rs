//! Sleeps.

use super::clock::{MOMENT, MONOTONIC, Time, Wait, ahead};
use crate::c;
use crate::real::real;
use core::ffi::{c_int, c_uint};

const ABSOLUTE: c_int = 1;

real!(fn clock_nanosleep as real_sleep(clock: c_int, flags: c_int, time: *const Time, left: *mut Time) -> c_int);

/// Sleeps for a moment. An error number, or 0.
pub(super) unsafe fn moment() -> c_int {
    let moment = Time::of(MOMENT);
    real_sleep(MONOTONIC, 0, &raw const moment, core::ptr::null_mut())
}

/// Sleeps for a moment in place of a wait. An error number, or 0.
unsafe fn instead_of(wait: Wait) -> c_int {
    let result = moment();
    if result == 0 {
        wait.is_over();
    }
    result
}

unsafe fn as_result(error: c_int) -> c_int {
    if error == 0 {
        return 0;
    }
    c::set_errno(error);
    -1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    time: *const Time,
    left: *mut Time,
) -> c_int {
    let ns = (*time).ns();
    if flags & ABSOLUTE == 0 {
        return match Wait::of(ns) {
            Some(wait) => instead_of(wait),
            None => real_sleep(clock, flags, time, left),
        };
    }
    match Wait::until(clock, ns) {
        Some(wait) => instead_of(wait),
        None => {
            let real = Time::of(ns.saturating_sub(ahead()));
            real_sleep(clock, flags, &raw const real, left)
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nanosleep(time: *const Time, left: *mut Time) -> c_int {
    as_result(clock_nanosleep(MONOTONIC, 0, time, left))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn usleep(us: c_uint) -> c_int {
    let time = Time::of(i64::from(us) * 1000);
    as_result(clock_nanosleep(MONOTONIC, 0, &raw const time, core::ptr::null_mut()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sleep(seconds: c_uint) -> c_uint {
    let time = Time { seconds: i64::from(seconds), fraction: 0 };
    match clock_nanosleep(MONOTONIC, 0, &raw const time, core::ptr::null_mut()) {
        0 => 0,
        _ => seconds,
    }
}
