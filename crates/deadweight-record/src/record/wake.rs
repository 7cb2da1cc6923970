//! Wakes the drain when the program ends.

use crate::error::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An eventfd that the drain polls.
pub(super) struct Wake(OwnedFd);

impl Wake {
    pub(super) fn new() -> Result<Self, Error> {
        // SAFETY: a new descriptor.
        match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) } {
            fd if fd < 0 => Err(Error::last("cannot make an eventfd")),
            // SAFETY: as above.
            fd => Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) })),
        }
    }

    pub(super) fn ring(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: writes eight bytes.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }
}

impl AsRawFd for Wake {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}
