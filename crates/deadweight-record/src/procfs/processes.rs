//! Descendants of a process, and the end of a child. Not for what a process is doing: see `snapshot`.

use super::line;
use std::fs;
use std::io;

/// The calling thread's id.
pub(crate) fn own_tid() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// A process and its living descendants, by their numbers; the process first.
#[must_use]
pub fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(process) = found.get(next).copied() {
        next += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for task in tasks.filter_map(Result::ok) {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|c| c.parse::<u32>().ok());
            // The recorder itself may be a child of the recorded process.
            found.extend(children.filter(|child| *child != std::process::id()));
        }
    }
    found
}

/// Whether this child has ended and waits to be reaped.
pub(crate) fn has_ended(child: u32) -> bool {
    ended(child, libc::WNOHANG).unwrap_or(false)
}

/// Waits until a child is dead, without reaping it. Returns how long its first thread was runnable without a CPU in
/// all its life, in ns; none where the kernel does not report it.
pub(crate) fn queued_until_death(child: u32) -> Option<u64> {
    while let Err(error) = ended(child, 0) {
        if error.kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    line(format!("/proc/{child}/schedstat"))?.split(' ').nth(1)?.parse().ok()
}

/// Whether a child has ended; it is not reaped.
fn ended(child: u32, flags: i32) -> io::Result<bool> {
    let mut said = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = flags | libc::WEXITED | libc::WNOWAIT;
    // SAFETY: the call only fills in `said`, zeroed before.
    unsafe {
        match libc::waitid(libc::P_PID, child, said.as_mut_ptr(), flags) {
            0 => Ok(said.assume_init().si_pid() != 0),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
