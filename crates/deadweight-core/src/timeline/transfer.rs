//! What system calls do with the bytes of the object that they work on, by their names.
//!
//! Not what they moved: see [`Call::ret`](super::Call::ret).

/// What a call does with the bytes of its object.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// Takes bytes from it.
    Takes,
    /// Puts bytes into it.
    Gives,
    /// Asks which of several have bytes, or space.
    Asks,
    /// Moves to another place of a file, or waits until its bytes are stored: what comes after it cannot be
    /// one call with what came before.
    Divides,
}

impl Transfer {
    /// What a call of this name does, if any of that.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "recvfrom" | "recvmsg"
            | "recvmmsg" => Some(Self::Takes),
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "sendto" | "sendmsg"
            | "sendmmsg" | "sendfile" => Some(Self::Gives),
            "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait"
            | "epoll_pwait2" => Some(Self::Asks),
            "lseek" | "fsync" | "fdatasync" | "sync_file_range" => Some(Self::Divides),
            _ => None,
        }
    }
}
