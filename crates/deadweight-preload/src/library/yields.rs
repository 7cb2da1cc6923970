//! A thread that gives its CPU away sleeps for a moment: who waits in a loop of `sched_yield` leaves the CPU to
//! those that work.
//!
//! - In: the program's calls of `sched_yield`.
//! - Out: the same, later.
//! - Must not know: what the thread waits for.
//!
//! What it does not keep: a thread that is waited for only briefly is seen up to a tenth of a millisecond late.

use crate::kernel;
use core::ffi::{c_int, c_long};

/// Nanoseconds. The kernel adds up to 50 µs.
const MOMENT: [c_long; 2] = [0, 20_000];

unsafe fn sleep() -> c_int {
    const NANOSLEEP: c_long = 35;
    kernel::call(NANOSLEEP, MOMENT.as_ptr() as usize, 0, 0, 0);
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_yield() -> c_int {
    sleep()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_yield() -> c_int {
    sleep()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn thrd_yield() {
    sleep();
}
