//! How the thread that waits for the end tells the one that copies the rings.

use crate::error::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Wakes the drain at once.
pub(super) struct Wake(OwnedFd);

impl Wake {
    pub(super) fn new() -> Result<Self, Error> {
        // SAFETY: a new descriptor of ours.
        match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) } {
            fd if fd < 0 => Err(Error::last("cannot make an eventfd")),
            // SAFETY: as above.
            fd => Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) })),
        }
    }

    pub(super) fn ring(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: writes eight bytes of ours.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }
}

impl AsRawFd for Wake {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}
