//! Streams that owe a flush: the program called `fflush`, and it waits until something could see it.
//!
//! Knows no descriptor's buffer.

use super::real::real;
use super::table::ACTIVE;
use crate::c;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// `FILE *`.
pub(crate) type Stream = *mut c_void;

unsafe extern "C" {
    pub(crate) static stdin: Stream;
    pub(crate) static stdout: Stream;
    pub(crate) static stderr: Stream;
    fn __fbufsize(stream: Stream) -> usize;
}

real!(fn fflush as real_fflush(stream: Stream) -> c_int);

/// A stream with a buffer, of the modes of `setvbuf`.
pub(crate) const FULL: c_int = 0;

const MOST: usize = 16;
/// Streams that owe a flush, and their descriptors.
static OWING: [AtomicPtr<c_void>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];
static DESCRIPTORS: [AtomicI32; MOST] = [const { AtomicI32::new(-1) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// How the program wanted standard output, if it got a buffer in its place; `FULL` if not.
static WANTED: AtomicI32 = AtomicI32::new(FULL);
/// The flush is on its way: it must not start another one.
static PAYING: AtomicU32 = AtomicU32::new(0);

/// Whether a stream on `fd` owes a flush.
#[inline(always)]
pub(crate) fn owes(fd: c_int) -> bool {
    let count = COUNT.load(Relaxed);
    (count > 0 && DESCRIPTORS[..count.min(MOST)].iter().any(|owing| owing.load(Relaxed) == fd))
        || (fd == 1 && WANTED.load(Relaxed) != FULL)
}

/// Flushes the streams that owe it.
pub(crate) unsafe fn pay() {
    let count = COUNT.load(Relaxed);
    let wanted = WANTED.load(Relaxed);
    if (count == 0 && wanted == FULL) || PAYING.swap(1, Relaxed) != 0 {
        return;
    }
    let errno = *c::__errno_location();
    COUNT.store(0, Relaxed);
    ACTIVE.fetch_sub(count as u32, Relaxed);
    for owing in &OWING[..count.min(MOST)] {
        real_fflush(owing.load(Relaxed));
    }
    if wanted != FULL {
        real_fflush(stdout);
    }
    c::set_errno(errno);
    PAYING.store(0, Relaxed);
}

/// Whether a standard stream has been used on `fd`: plain calls on it then stay in order with the stream.
#[inline(always)]
pub(crate) unsafe fn uses(fd: c_int) -> bool {
    match fd {
        0 => __fbufsize(stdin) > 0,
        1 => __fbufsize(stdout) > 0,
        _ => false,
    }
}

/// Whether the stream owes a flush already.
pub(crate) fn has(stream: Stream) -> bool {
    let count = COUNT.load(Relaxed);
    OWING[..count.min(MOST)].iter().any(|owing| owing.load(Relaxed) == stream)
}

/// Notes that the stream on `fd` owes a flush. False if there are too many.
pub(crate) fn add(stream: Stream, fd: c_int) -> bool {
    let count = COUNT.load(Relaxed);
    if count >= MOST {
        return false;
    }
    OWING[count].store(stream, Relaxed);
    DESCRIPTORS[count].store(fd, Relaxed);
    COUNT.store(count + 1, Relaxed);
    ACTIVE.fetch_add(1, Relaxed);
    true
}

/// Notes that standard output has a buffer, and what the program wanted in its place: it owes a flush all the time.
pub(crate) fn want(mode: c_int) {
    if WANTED.swap(mode, Relaxed) == FULL {
        ACTIVE.fetch_add(1, Relaxed);
    }
}

/// Flushes, and forgets how the program wanted standard output: the mode.
pub(crate) unsafe fn forget_wanted() -> c_int {
    pay();
    let wanted = WANTED.swap(FULL, Relaxed);
    if wanted != FULL {
        ACTIVE.fetch_sub(1, Relaxed);
    }
    wanted
}
