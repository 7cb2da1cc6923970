//! A helper process has a command line of its own. A copy of the recorder's holds the words of the program: who looks
//! for the program with `pgrep -f` would find the helper, and signal it instead.

use std::ffi::CStr;
use std::ptr;

/// What helpers that close events are called, in `ps` and to `pgrep -f`.
pub(crate) const CLOSES_EVENTS: &CStr = c"deadweight: closes events";

/// Where the kernel reads this process's command line from: its first byte, and the bytes up to its end.
/// A forked child has it in the same place.
#[derive(Clone, Copy)]
pub(crate) struct CommandLine {
    start: usize,
    length: usize,
}

impl CommandLine {
    /// From `arg_start` and `arg_end` of `/proc/self/stat`, fields 48 and 49 of proc_pid_stat(5). `None` if that cannot be
    /// read.
    pub(crate) fn of_self() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name before it is in parentheses, and may hold some. The state behind it is field 3.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(48 - 3);
        let mut next = || fields.next()?.parse::<usize>().ok().filter(|address| *address > 0);
        let (start, end) = (next()?, next()?);
        Some(Self { start, length: end.checked_sub(start)? })
    }

    /// Writes another one over it, cut off where it is longer. Async-signal-safe.
    ///
    /// # Safety
    /// Only for a process whose arguments nobody reads any more, and that shares no memory with others.
    pub(crate) unsafe fn replace(self, name: &CStr) {
        let length = name.count_bytes().min(self.length.saturating_sub(1));
        let start = ptr::with_exposed_provenance_mut::<u8>(self.start);
        // SAFETY: the kernel put the arguments there, and the process may write to them (execve(2)). The last byte stays
        // zero: the kernel would show the environment too.
        unsafe {
            ptr::write_bytes(start, 0, self.length);
            ptr::copy_nonoverlapping(name.as_ptr().cast::<u8>(), start, length);
            libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::read;

    #[test]
    fn a_child_has_a_command_line_of_its_own() {
        let line = CommandLine::of_self().unwrap();
        assert_eq!(read("/proc/self/cmdline").unwrap().len(), line.length);
        // SAFETY: the child makes plain system calls only, and is waited for.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above.
            unsafe {
                line.replace(c"x");
                libc::pause();
                libc::_exit(0);
            }
        }
        let shown = || read(format!("/proc/{child}/cmdline")).unwrap();
        let renamed = (0..10_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            shown().starts_with(b"x\0")
        });
        // SAFETY: the own child.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, ptr::null_mut(), 0);
        }
        assert!(renamed);
        assert_ne!(read("/proc/self/cmdline").unwrap()[0], b'x', "the parent's stays");
    }
}
