//! The functions of the C library that the libraries use. glibc and musl have all of them.
//!
//! Does not say what they do: their manual pages do.

#![expect(dead_code, reason = "each library uses a part")]

use core::ffi::{c_char, c_int, c_uint, c_void};

pub(crate) const O_WRONLY: c_int = 1;
pub(crate) const O_CREAT: c_int = 0o100;
pub(crate) const O_APPEND: c_int = 0o2000;
pub(crate) const O_CLOEXEC: c_int = 0o2_000_000;

pub(crate) const ENOMEM: c_int = 12;
pub(crate) const EINVAL: c_int = 22;
pub(crate) const ENOSYS: c_int = 38;

pub(crate) const MREMAP_MAYMOVE: c_int = 1;
pub(crate) const MADV_WIPEONFORK: c_int = 18;

/// `dlsym`: the next library that has the name.
pub(crate) const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;

/// `Dl_info`: addresses.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Place {
    file: usize,
    /// Where the library begins.
    pub(crate) base: usize,
    symbol: usize,
    at: usize,
}

unsafe extern "C" {
    pub(crate) static environ: *const *const c_char;
    pub(crate) fn abort() -> !;
    pub(crate) fn __errno_location() -> *mut c_int;
    pub(crate) fn munmap(at: *mut c_void, len: usize) -> c_int;
    pub(crate) fn mremap(at: *mut c_void, len: usize, new: usize, flags: c_int, ...)
    -> *mut c_void;
    pub(crate) fn madvise(at: *mut c_void, len: usize, advice: c_int) -> c_int;
    pub(crate) fn sched_yield() -> c_int;
    pub(crate) fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    pub(crate) fn dladdr(at: *const c_void, place: *mut Place) -> c_int;
    pub(crate) fn dlsym(from: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(crate) fn pthread_key_create(
        key: *mut c_uint,
        at_end: unsafe extern "C" fn(*mut c_void),
    ) -> c_int;
    pub(crate) fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
}

/// Sets `errno`.
pub(crate) unsafe fn set_errno(value: c_int) {
    *__errno_location() = value;
}
