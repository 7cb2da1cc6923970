//! This process's own file descriptors: pipes, and closing many at once. For those of other processes see `procfs`.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, RawFd};

/// A pipe whose ends no program inherits: read end, write end.
pub(crate) fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: on success both ends are new descriptors.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(ends.map(|end| File::from_raw_fd(end)).into())
    }
}

/// Closes all descriptors except these, which are sorted. Async-signal-safe.
///
/// # Safety
/// Only for a process that needs none of the others.
pub(crate) unsafe fn close_all_but(keep: &[RawFd]) {
    let mut from = 0;
    for fd in keep {
        // SAFETY: the caller's.
        unsafe { close_range(from, fd - 1) };
        from = fd + 1;
    }
    // SAFETY: the caller's.
    unsafe { close_range(from, RawFd::MAX) };
}

/// Closes all descriptors of this range, if there are any.
unsafe fn close_range(from: RawFd, to: RawFd) {
    if from <= to {
        // SAFETY: the caller's.
        unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
    }
}
