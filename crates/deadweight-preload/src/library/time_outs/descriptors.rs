//! Waits for descriptors: `poll`, `select`, `epoll_wait`.

use super::clock::{MOMENT, Time, Wait};
use super::sleeps::moment;
use crate::real::real;
use core::ffi::{c_int, c_ulong, c_void};
use core::ptr::{null, null_mut};

const MILLISECOND: i64 = 1_000_000;

real!(fn ppoll as real_ppoll(of: *mut c_void, count: c_ulong, time: *const Time, mask: *const c_void) -> c_int);
real!(fn pselect as real_pselect(count: c_int, read: *mut c_void, write: *mut c_void, other: *mut c_void, time: *const Time, mask: *const c_void) -> c_int);
real!(fn epoll_pwait as real_epoll_pwait(fd: c_int, events: *mut c_void, count: c_int, ms: c_int, mask: *const c_void) -> c_int);

/// The end of a wait that was cut short.
unsafe fn ended(result: c_int, wait: Wait) -> c_int {
    if result == 0 {
        wait.is_over();
    }
    result
}

unsafe fn wait_of(time: *const Time) -> Option<Wait> {
    if time.is_null() { None } else { Wait::of((*time).ns()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ppoll(
    of: *mut c_void,
    count: c_ulong,
    time: *const Time,
    mask: *const c_void,
) -> c_int {
    let short = Time::of(MOMENT);
    match wait_of(time) {
        Some(wait) => ended(real_ppoll(of, count, &raw const short, mask), wait),
        None => real_ppoll(of, count, time, mask),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn poll(of: *mut c_void, count: c_ulong, ms: c_int) -> c_int {
    let time = Time::of(i64::from(ms) * MILLISECOND);
    ppoll(of, count, if ms < 0 { null() } else { &raw const time }, null())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __poll_chk(of: *mut c_void, count: c_ulong, ms: c_int, _: usize) -> c_int {
    poll(of, count, ms)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __ppoll_chk(
    of: *mut c_void,
    count: c_ulong,
    time: *const Time,
    mask: *const c_void,
    _: usize,
) -> c_int {
    ppoll(of, count, time, mask)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut c_void,
    write: *mut c_void,
    other: *mut c_void,
    time: *const Time,
    mask: *const c_void,
) -> c_int {
    let short = Time::of(MOMENT);
    match wait_of(time) {
        Some(wait) => ended(real_pselect(count, read, write, other, &raw const short, mask), wait),
        None => real_pselect(count, read, write, other, time, mask),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn select(
    count: c_int,
    read: *mut c_void,
    write: *mut c_void,
    other: *mut c_void,
    time: *mut Time,
) -> c_int {
    if time.is_null() {
        return pselect(count, read, write, other, null(), null());
    }
    let whole = Time { fraction: (*time).fraction.saturating_mul(1000), ..*time };
    let result = pselect(count, read, write, other, &raw const whole, null());
    if result == 0 {
        // Linux shows how much was left.
        *time = Time::default();
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_pwait(
    fd: c_int,
    events: *mut c_void,
    count: c_int,
    ms: c_int,
    mask: *const c_void,
) -> c_int {
    let wait = if ms < 0 { None } else { Wait::of(i64::from(ms) * MILLISECOND) };
    let Some(wait) = wait else { return real_epoll_pwait(fd, events, count, ms, mask) };
    // Its time-outs are whole milliseconds.
    let first = real_epoll_pwait(fd, events, count, 0, mask);
    if first != 0 {
        return first;
    }
    moment();
    ended(real_epoll_pwait(fd, events, count, 0, mask), wait)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(fd: c_int, events: *mut c_void, count: c_int, ms: c_int) -> c_int {
    epoll_pwait(fd, events, count, ms, null_mut())
}
