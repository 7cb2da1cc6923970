//! What changes files, or what a path means.

use super::table::{changes, forget};
use crate::real::real;
use core::ffi::{c_char, c_int, c_void};

/// O_WRONLY, O_RDWR, O_CREAT and O_TRUNC.
const WRITES: c_int = 0o1_103;

/// Calls of up to five arguments, after which all answers are new.
macro_rules! forget_after {
    ($($name:ident $local:ident)*) => { $(
        real!(fn $name as $local(a: usize, b: usize, c: usize, d: usize, e: usize) -> isize);

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(a: usize, b: usize, c: usize, d: usize, e: usize) -> isize {
            let result = $local(a, b, c, d, e);
            forget();
            result
        }
    )* };
}

forget_after! {
    chdir real_chdir
    fchdir real_fchdir
    chroot real_chroot
    unlink real_unlink
    unlinkat real_unlinkat
    remove real_remove
    rmdir real_rmdir
    mkdir real_mkdir
    mkdirat real_mkdirat
    mkdtemp real_mkdtemp
    rename real_rename
    renameat real_renameat
    renameat2 real_renameat2
    link real_link
    linkat real_linkat
    symlink real_symlink
    symlinkat real_symlinkat
    chmod real_chmod
    fchmod real_fchmod
    fchmodat real_fchmodat
    chown real_chown
    lchown real_lchown
    fchown real_fchown
    fchownat real_fchownat
    truncate real_truncate
    truncate64 real_truncate64
    utime real_utime
    utimes real_utimes
    utimensat real_utimensat
    futimens real_futimens
    mount real_mount
    setuid real_setuid
    seteuid real_seteuid
    wait real_wait
    wait3 real_wait3
    wait4 real_wait4
    waitpid real_waitpid
    waitid real_waitid
    system real_system
    pclose real_pclose
}

real!(fn open as real_open(path: *const c_char, flags: c_int, mode: c_int) -> c_int);
real!(fn open64 as real_open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int);
real!(fn openat as real_openat(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int);
real!(fn openat64 as real_openat64(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int);
real!(fn creat as real_creat(path: *const c_char, mode: c_int) -> c_int);
real!(fn fopen as real_fopen(path: *const c_char, mode: *const c_char) -> *mut c_void);
real!(fn fopen64 as real_fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void);
real!(fn freopen as real_freopen(path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void);

/// After a file was opened with these flags.
unsafe fn opened(path: *const c_char, flags: c_int) {
    if flags & WRITES != 0 {
        changes(path);
    }
}

/// The flags of a mode of stdio, as far as they matter here.
unsafe fn flags_of(mode: *const c_char) -> c_int {
    let reads = *mode as u8 == b'r';
    let writes = |at: usize| (1..=at).all(|at| *mode.add(at) != 0) && *mode.add(at) as u8 == b'+';
    if reads && !writes(1) && !writes(2) { 0 } else { WRITES }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let result = real_open(path, flags, mode);
    opened(path, flags);
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let result = real_open64(path, flags, mode);
    opened(path, flags);
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let result = real_openat(at, path, flags, mode);
    opened(path, flags);
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let result = real_openat64(at, path, flags, mode);
    opened(path, flags);
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn creat(path: *const c_char, mode: c_int) -> c_int {
    let result = real_creat(path, mode);
    opened(path, WRITES);
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut c_void {
    let result = real_fopen(path, mode);
    opened(path, flags_of(mode));
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void {
    let result = real_fopen64(path, mode);
    opened(path, flags_of(mode));
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn freopen(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut c_void,
) -> *mut c_void {
    let result = real_freopen(path, mode, stream);
    opened(path, flags_of(mode));
    result
}
