//! Files are opened without O_SYNC and O_DSYNC: no write waits until its data is stored.
//!
//! - In: the program's calls that open files.
//! - Out: the same files, whose writes return when the kernel has the data.
//! - Must not know: which files there are.
//!
//! What it does not keep: the files are not durable. `fcntl` does not show the flags. A write that asks for its own data
//! (`pwritev2` with RWF_DSYNC) waits as before.

use crate::real::real;
use core::ffi::{c_char, c_int};

/// O_SYNC and O_DSYNC. O_SYNC contains the bit of O_DSYNC.
const EACH_WRITE_WAITS: c_int = 0o4_010_000;

pub(crate) use crate::real::start;

fn without(flags: c_int) -> c_int {
    flags & !EACH_WRITE_WAITS
}

// The mode is an argument of those calls only that have it: what is in its register is passed on.
real!(fn open as real_open(path: *const c_char, flags: c_int, mode: c_int) -> c_int);
real!(fn open64 as real_open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int);
real!(fn openat as real_openat(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int);
real!(fn openat64 as real_openat64(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int);
real!(fn __open_2 as real_open_2(path: *const c_char, flags: c_int) -> c_int);
real!(fn __open64_2 as real_open64_2(path: *const c_char, flags: c_int) -> c_int);
real!(fn __openat_2 as real_openat_2(at: c_int, path: *const c_char, flags: c_int) -> c_int);
real!(fn __openat64_2 as real_openat64_2(at: c_int, path: *const c_char, flags: c_int) -> c_int);

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    real_open(path, without(flags), mode)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    real_open64(path, without(flags), mode)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    real_openat(at, path, without(flags), mode)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    real_openat64(at, path, without(flags), mode)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    real_open_2(path, without(flags))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    real_open64_2(path, without(flags))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __openat_2(at: c_int, path: *const c_char, flags: c_int) -> c_int {
    real_openat_2(at, path, without(flags))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __openat64_2(at: c_int, path: *const c_char, flags: c_int) -> c_int {
    real_openat64_2(at, path, without(flags))
}
