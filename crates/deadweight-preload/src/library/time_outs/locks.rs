//! Waits of threads for each other: condition variables, semaphores, and futexes by `syscall`.

use super::clock::{MOMENT, MONOTONIC, REALTIME, Time, Wait, ahead, clock_of, now};
use crate::real::real;
use crate::{c, kernel};
use core::ffi::{c_int, c_long, c_void};

const ETIMEDOUT: c_int = 110;

real!(fn pthread_cond_clockwait as real_clockwait(of: *mut c_void, mutex: *mut c_void, clock: c_int, until: *const Time) -> c_int);
real!(fn pthread_cond_timedwait as real_timedwait(of: *mut c_void, mutex: *mut c_void, until: *const Time) -> c_int);
real!(fn sem_timedwait as real_sem_timedwait(of: *mut c_void, until: *const Time) -> c_int);
real!(fn sem_clockwait as real_sem_clockwait(of: *mut c_void, clock: c_int, until: *const Time) -> c_int);

/// A moment from now.
unsafe fn soon(clock: c_int) -> Time {
    Time::of(now(clock).saturating_add(MOMENT))
}

/// A time of the program's clock by the kernel's.
fn real_time(until: i64) -> Time {
    Time::of(until.saturating_sub(ahead()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_cond_clockwait(
    of: *mut c_void,
    mutex: *mut c_void,
    clock: c_int,
    until: *const Time,
) -> c_int {
    let until = (*until).ns();
    let Some(wait) = Wait::until(clock, until) else {
        return real_clockwait(of, mutex, clock, &real_time(until));
    };
    let result = real_clockwait(of, mutex, clock, &soon(clock));
    if result == ETIMEDOUT {
        wait.is_over();
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_cond_timedwait(
    of: *mut c_void,
    mutex: *mut c_void,
    until: *const Time,
) -> c_int {
    let until = (*until).ns();
    let clock = clock_of(until);
    let Some(wait) = Wait::until(clock, until) else {
        return real_timedwait(of, mutex, &real_time(until));
    };
    let result = real_timedwait(of, mutex, &soon(clock));
    if result == ETIMEDOUT {
        wait.is_over();
    }
    result
}

/// The end of a wait for a semaphore that was cut short.
unsafe fn ended(result: c_int, wait: Wait) -> c_int {
    if result != 0 && *c::__errno_location() == ETIMEDOUT {
        wait.is_over();
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sem_timedwait(of: *mut c_void, until: *const Time) -> c_int {
    let until = (*until).ns();
    match Wait::until(REALTIME, until) {
        Some(wait) => ended(real_sem_timedwait(of, &soon(REALTIME)), wait),
        None => real_sem_timedwait(of, &real_time(until)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sem_clockwait(of: *mut c_void, clock: c_int, until: *const Time) -> c_int {
    let until = (*until).ns();
    match Wait::until(clock, until) {
        Some(wait) => ended(real_sem_clockwait(of, clock, &soon(clock)), wait),
        None => real_sem_clockwait(of, clock, &real_time(until)),
    }
}

/// A futex wait with a time-out: its wait, and the time-out that cuts it short.
unsafe fn futex(operation: usize, time: *const Time) -> (Option<Wait>, Time) {
    const WAIT: usize = 0;
    const WAIT_BITSET: usize = 9;
    const COMMAND: usize = 127;
    const BY_WALL_CLOCK: usize = 256;
    if operation & COMMAND == WAIT {
        return (Wait::of((*time).ns()), Time::of(MOMENT));
    }
    if operation & COMMAND != WAIT_BITSET {
        return (None, *time);
    }
    let clock = if operation & BY_WALL_CLOCK != 0 { REALTIME } else { MONOTONIC };
    let until = (*time).ns();
    match Wait::until(clock, until) {
        Some(wait) => (Some(wait), soon(clock)),
        None => (None, real_time(until)),
    }
}

/// Rust's standard library waits by this.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    const FUTEX: c_long = 202;
    let mut arguments = [a, b, c, d, e, f];
    let mut wait = None;
    let time;
    if number == FUTEX && waits(b) && d != 0 {
        let (is, short) = futex(b, d as *const Time);
        time = short;
        (wait, arguments[3]) = (is, &raw const time as usize);
    }
    let result = kernel::call_with_six(number, arguments);
    if let (Some(wait), Ok(-110)) = (wait, c_int::try_from(result)) {
        wait.is_over();
    }
    if (-4095..0).contains(&result) {
        c::set_errno(c_int::try_from(-result).unwrap_or(0));
        return -1;
    }
    result as c_long
}

/// Other operations have a number where these have a time-out.
fn waits(operation: usize) -> bool {
    matches!(operation & 127, 0 | 9)
}
