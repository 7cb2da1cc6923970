//! The constructor that all libraries have: one byte in a file says that the library was loaded; `Twice` and `Buffers` say
//! with another one that they had an effect.
//!
//! Uses system calls only: the C library's own constructors may not have run, and another library may have
//! taken the place of `open` and `write`.

use crate::{c, kernel};
use core::ffi::{CStr, c_char, c_int, c_long};

/// The variable `LOADED` of the crate, with the `=` that follows a name.
const VARIABLE: &CStr = c"DEADWEIGHT_PRELOADED=";
/// The byte that says: loaded.
#[cfg(not(library = "twice"))]
const LOADED: u8 = b'.';
/// The byte that says: it had an effect.
#[cfg(any(library = "buffers", library = "twice"))]
pub(crate) const EFFECT: u8 = b'+';

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

/// glibc passes the arguments of `main`, and may call this before `environ` is set. musl passes nothing, and
/// has set it.
unsafe extern "C" fn start(_argc: c_int, _argv: *const *const c_char, envp: *const *const c_char) {
    let known = c::environ;
    let environment = if known.is_null() { envp } else { known };
    let path = find(environment, VARIABLE);
    #[cfg(not(library = "twice"))]
    if let Some(path) = path {
        report(path, LOADED);
    }
    #[cfg(library = "allocator")]
    crate::allocator::start();
    #[cfg(library = "buffers")]
    crate::buffers::start(path);
    #[cfg(library = "answers")]
    crate::answers::start();
    #[cfg(library = "durable")]
    crate::durable::start();
    #[cfg(library = "maps")]
    crate::maps::start();
    #[cfg(library = "sockets")]
    crate::sockets::start();
    #[cfg(library = "time_outs")]
    crate::time_outs::start();
    #[cfg(library = "twice")]
    crate::twice::start(environment, path);
}

/// Appends a byte to the file.
pub(crate) unsafe fn report(path: *const c_char, byte: u8) {
    let errno = *c::__errno_location();
    append(path, byte);
    c::set_errno(errno);
}

/// The value of a variable, which is given with its `=`.
pub(crate) unsafe fn find(
    mut environment: *const *const c_char,
    variable: &CStr,
) -> Option<*const c_char> {
    if environment.is_null() {
        return None;
    }
    while !(*environment).is_null() {
        let name = variable.to_bytes();
        if (0..name.len()).all(|at| *(*environment).add(at) as u8 == name[at]) {
            return Some((*environment).add(name.len()));
        }
        environment = environment.add(1);
    }
    None
}

unsafe fn append(path: *const c_char, byte: u8) {
    const OPENAT: c_long = 257;
    const WRITE: c_long = 1;
    const CLOSE: c_long = 3;
    const FROM_HERE: c_int = -100;
    let flags = c::O_WRONLY | c::O_APPEND | c::O_CREAT | c::O_CLOEXEC;
    let fd = kernel::call(OPENAT, FROM_HERE as usize, path as usize, flags as usize, 0o644);
    if fd >= 0 {
        kernel::call(WRITE, fd as usize, (&raw const byte) as usize, 1, 0);
        kernel::call(CLOSE, fd as usize, 0, 0, 0);
    }
}
