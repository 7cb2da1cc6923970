//! Where a program runs: on one CPU, or in another cgroup. Not for what it does there.

use super::c_string;
use crate::error::Error;
use crate::procfs::cgroup;
use std::ffi::CString;
use std::io;
use std::path::PathBuf;

/// What differs from the place of the recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// All its threads run on one CPU.
    pub one_cpu: bool,
    /// A cgroup that it is moved to.
    pub group: Option<PathBuf>,
}

/// A placement made ready for a child.
pub(super) struct Prepared {
    one_cpu: bool,
    /// The file that takes the group's processes.
    processes: Option<CString>,
}

impl Placement {
    pub(super) fn prepare(&self) -> Result<Prepared, Error> {
        let processes = |group: &PathBuf| c_string(group.join("cgroup.procs").as_os_str());
        let processes = self.group.as_ref().map(processes).transpose()?;
        Ok(Prepared { one_cpu: self.one_cpu, processes })
    }
}

impl Prepared {
    /// Moves the calling process.
    ///
    /// # Safety
    /// Call it only in the child.
    ///
    /// # Errors
    /// The error number, if the kernel does not allow it.
    pub(super) unsafe fn put(&self) -> Result<(), i32> {
        let failed = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM);
        if let Some(file) = &self.processes {
            // SAFETY: plain system calls on a string that outlives them.
            unsafe {
                let file = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                // 0 is who writes it.
                if file < 0 || libc::write(file, c"0".as_ptr().cast(), 1) != 1 {
                    return Err(failed());
                }
                libc::close(file);
            }
        }
        if self.one_cpu {
            // SAFETY: plain system calls on a set of this stack.
            unsafe { keep_one_cpu() }.map_err(|()| failed())?;
        }
        Ok(())
    }
}

/// Leaves the last of the CPUs that are allowed: the first one has most interrupts.
unsafe fn keep_one_cpu() -> Result<(), ()> {
    // SAFETY: a set of bits, for which zero is a value; the calls read and write it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &raw mut set) != 0 {
            return Err(());
        }
        let last = (0..8 * size).rev().find(|cpu| libc::CPU_ISSET(*cpu, &set)).ok_or(())?;
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(last, &mut set);
        if libc::sched_setaffinity(0, size, &raw const set) == 0 { Ok(()) } else { Err(()) }
    }
}

/// A visible cgroup above all CPU quotas of the own one: the topmost. None without a quota, or if it has one itself.
#[must_use]
pub fn group_without_quota() -> Option<PathBuf> {
    cgroup::topmost_without_quota()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, run_clean};

    #[test]
    fn a_program_on_one_cpu_sees_one() {
        let run = |one_cpu| {
            let command = ["sh", "-c", "test $(nproc) = 1"].map(Into::into).into();
            let placement = Placement { one_cpu, group: None };
            run_clean(&Request { argv: command, placement, ..Request::default() }).unwrap().exit
        };
        assert_eq!(run(true), deadweight_trace::Exit::default());
    }

    #[test]
    fn a_group_that_does_not_exist_is_refused() {
        let placement = Placement { one_cpu: false, group: Some("/proc/self/nowhere".into()) };
        let request = Request { argv: vec!["true".into()], placement, ..Request::default() };
        let refused = run_clean(&request).unwrap_err().to_string();
        assert!(refused.contains("cannot run the program at another place"), "{refused}");
    }
}
