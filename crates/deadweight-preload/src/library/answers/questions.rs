//! Questions about paths.

use super::table::answer;
use crate::kernel;
use core::ffi::{c_char, c_int, c_long, c_uint};

const FROM_HERE: c_int = -100;
const NO_FOLLOW: c_int = 0x100;
/// Bytes of `struct stat` and `struct statx`.
const STATUS: usize = 144;
const LONG_STATUS: usize = 256;

const STAT: u64 = 1;
const STATX: u64 = 2;
const ACCESS: u64 = 3;

/// Whether a path leads to the same file each time. One that is relative to a descriptor may not.
unsafe fn is_fixed(at: c_int, path: *const c_char) -> bool {
    !path.is_null() && (at == FROM_HERE || *path as u8 == b'/')
}

/// The question as a number. 0 is none: its answer is not kept.
fn question(call: u64, flags: c_int, mask: c_uint) -> u64 {
    call | u64::from(flags.cast_unsigned()) << 8 | u64::from(mask) << 32
}

unsafe fn status(at: c_int, path: *const c_char, to: *mut u8, flags: c_int) -> c_int {
    const NEWFSTATAT: c_long = 262;
    let ask = || kernel::call(NEWFSTATAT, at as usize, path as usize, to as usize, flags as usize);
    kept(is_fixed(at, path), question(STAT, flags, 0), path, (to, STATUS), ask)
}

unsafe fn kept(
    is_fixed: bool,
    question: u64,
    path: *const c_char,
    to: (*mut u8, usize),
    ask: impl Fn() -> isize,
) -> c_int {
    // A path that is null is never kept.
    answer(question, if is_fixed { path } else { core::ptr::null() }, to, ask)
}

macro_rules! stat {
    ($($name:ident, $before:ident: $flags:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, to: *mut u8) -> c_int {
            status(FROM_HERE, path, to, $flags)
        }

        /// As programs call it that were linked before glibc 2.33.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $before(_: c_int, path: *const c_char, to: *mut u8) -> c_int {
            status(FROM_HERE, path, to, $flags)
        }
    )* };
}

stat! {
    stat, __xstat: 0;
    stat64, __xstat64: 0;
    lstat, __lxstat: NO_FOLLOW;
    lstat64, __lxstat64: NO_FOLLOW;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fstatat(at: c_int, path: *const c_char, to: *mut u8, flags: c_int) -> c_int {
    status(at, path, to, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fstatat64(at: c_int, path: *const c_char, to: *mut u8, flags: c_int) -> c_int {
    status(at, path, to, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    at: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    to: *mut u8,
) -> c_int {
    const STATX_CALL: c_long = 332;
    let arguments = [at as usize, path as usize, flags as usize, mask as usize, to as usize, 0];
    let ask = || kernel::call_with_six(STATX_CALL, arguments);
    kept(is_fixed(at, path), question(STATX, flags, mask), path, (to, LONG_STATUS), ask)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    faccessat(FROM_HERE, path, mode, 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn faccessat(at: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int {
    const FACCESSAT: c_long = 269;
    const FACCESSAT2: c_long = 439;
    let number = if flags == 0 { FACCESSAT } else { FACCESSAT2 };
    let ask = || kernel::call(number, at as usize, path as usize, mode as usize, flags as usize);
    let question = question(ACCESS, flags, mode.cast_unsigned());
    kept(is_fixed(at, path), question, path, (core::ptr::null_mut(), 0), ask)
}
