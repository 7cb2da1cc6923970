//! The functions of the C library behind those that have their place taken.

use crate::c;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function of the next library. It is looked up when it is first called.
#[repr(transparent)]
pub(crate) struct Real(AtomicPtr<c_void>);

impl Real {
    pub(crate) const fn new() -> Real {
        Real(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// Its address. A C library that does not have it gets one that fails.
    #[inline(always)]
    pub(crate) unsafe fn get(&self, name: &CStr) -> *mut c_void {
        let known = self.0.load(Ordering::Relaxed);
        if known.is_null() { self.find(name) } else { known }
    }

    #[cold]
    unsafe fn find(&self, name: &CStr) -> *mut c_void {
        let mut found = newest(name);
        if found.is_null() {
            found = missing as *mut c_void;
        }
        self.0.store(found, Ordering::Relaxed);
        found
    }
}

/// glibc, or null. musl has one version of each function.
static GLIBC: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Finds the C library. Called once, while there is one thread.
pub(crate) unsafe fn start() {
    const LAZY_IF_THERE: c_int = 1 | 4;
    let handle = c::dlopen(c"libc.so.6".as_ptr(), LAZY_IF_THERE);
    GLIBC.store(handle, Ordering::Relaxed);
}

/// The function of the next library. glibc's `RTLD_NEXT` has the oldest version of a function, where a program
/// of today has the newest: that one is found by the library's handle.
unsafe fn newest(name: &CStr) -> *mut c_void {
    let next = c::dlsym(c::RTLD_NEXT, name.as_ptr());
    let handle = GLIBC.load(Ordering::Relaxed);
    if handle.is_null() {
        return next;
    }
    let newest = c::dlsym(handle, name.as_ptr());
    if newest.is_null() || !same_library(next, newest) { next } else { newest }
}

unsafe fn same_library(one: *mut c_void, other: *mut c_void) -> bool {
    let mut found = [c::Place::default(), c::Place::default()];
    c::dladdr(one, &raw mut found[0]) != 0
        && c::dladdr(other, &raw mut found[1]) != 0
        && found[0].base == found[1].base
}

unsafe extern "C" fn missing() -> isize {
    c::set_errno(c::ENOSYS);
    -1
}

/// A function that calls the one behind it: `real!(fn close(fd: c_int) -> c_int)`.
macro_rules! real {
    ($(#[$doc:meta])* fn $name:ident as $local:ident($($argument:ident: $type:ty),*) -> $result:ty) => {
        $(#[$doc])*
        pub(crate) unsafe fn $local($($argument: $type),*) -> $result {
            static REAL: $crate::real::Real = $crate::real::Real::new();
            const NAME: &core::ffi::CStr = match core::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes()
            ) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let function: unsafe extern "C" fn($($type),*) -> $result =
                core::mem::transmute(REAL.get(NAME));
            function($($argument),*)
        }
    };
}
pub(crate) use real;
