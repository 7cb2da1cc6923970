//! Says once that something was collected: a write went out with another one, or a read was served without the kernel.
//!
//! A program that makes other calls between any two of its small ones has none that can wait.

use crate::loaded;
use core::ffi::c_char;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Longest path, with its zero.
const PATH: usize = 4096;

static mut COPY: [u8; PATH] = [0; PATH];
/// The file to say it in, until it was said.
static FILE: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// Called by the constructor, while there is one thread. The path is copied: programs overwrite their environment.
pub(crate) unsafe fn start(path: Option<*const c_char>) {
    let Some(path) = path.map(<*const c_char>::cast::<u8>) else { return };
    let copy = (&raw mut COPY).cast::<u8>();
    for at in 0..PATH {
        *copy.add(at) = *path.add(at);
        if *path.add(at) == 0 {
            FILE.store(copy.cast(), Ordering::Relaxed);
            return;
        }
    }
}

/// Something was collected.
#[inline(always)]
pub(crate) unsafe fn note() {
    if !FILE.load(Ordering::Relaxed).is_null() {
        say();
    }
}

#[cold]
unsafe fn say() {
    let file = FILE.swap(null_mut(), Ordering::Relaxed);
    if !file.is_null() {
        loaded::report(file, loaded::EFFECT);
    }
}
