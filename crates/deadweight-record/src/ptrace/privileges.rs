//! Tasks that tracing would change: programs that gain privileges (set-user-id), and tracers.
//!
//! The kernel ignores a set-user-id bit if the tracer lacks `CAP_SYS_PTRACE`, so such programs must
//! not be traced. Only checks; `tracer` detaches.

use super::requests;
use crate::procfs::status::Status;
use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `CAP_SYS_PTRACE`.
const CAP_SYS_PTRACE: u32 = 19;

/// Whether a traced program keeps all its privileges.
pub(super) fn can_trace_any() -> bool {
    Status::of("/proc/self").is_some_and(|status| status.bits("CapEff:") & 1 << CAP_SYS_PTRACE != 0)
}

/// The process that a task belongs to.
pub(super) fn process_of(task: u32) -> Option<u32> {
    Status::of(&format!("/proc/{task}"))?.field("Tgid:").parse().ok()
}

/// Whether the program that a task is about to execute, whose path is at this address, gains
/// privileges that its user lacks.
pub(super) fn gains_privileges(task: u32, dir: i32, name: u64) -> bool {
    let Some(path) = executable(task, dir, name) else { return false };
    let Ok(file) = fs::metadata(&path) else { return false };
    let mode = file.mode();
    let (user, group) = (mode & libc::S_ISUID != 0, mode & libc::S_ISGID != 0);
    // SAFETY: both only return a number.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    user && file.uid() != uid || group && file.gid() != gid || has_capabilities(&path)
}

/// The file, by a path that is reachable from here.
fn executable(task: u32, dir: i32, name: u64) -> Option<PathBuf> {
    let mut bytes = [0; 4096];
    let len = requests::read_memory(task, name, &mut bytes);
    let end = bytes[..len].iter().position(|b| *b == 0)?;
    let name = Path::new(OsStr::from_bytes(&bytes[..end]));
    let base = match (name.is_absolute(), dir) {
        (true, _) => format!("/proc/{task}/root"),
        (false, libc::AT_FDCWD) => format!("/proc/{task}/cwd"),
        (false, fd) => format!("/proc/{task}/fd/{fd}"),
    };
    let name = name.strip_prefix("/").unwrap_or(name);
    // An empty name means the directory's own descriptor.
    Some(if name.as_os_str().is_empty() { base.into() } else { Path::new(&base).join(name) })
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.to_owned().into_os_string().into_vec()) else { return false };
    let name = c"security.capability".as_ptr();
    // SAFETY: asks for the length only.
    unsafe { libc::getxattr(path.as_ptr(), name, std::ptr::null_mut(), 0) > 0 }
}

/// The task that a `ptrace` call of the program begins to trace.
pub(super) enum NewTracee {
    /// The calling task.
    Caller,
    /// This task.
    Other(u32),
    /// No new one.
    None,
}

pub(super) fn new_tracee(args: &[u64; 6]) -> NewTracee {
    const TRACEME: u64 = 0;
    const ATTACH: u64 = 16;
    const SEIZE: u64 = 0x4206;
    match args[0] {
        TRACEME => NewTracee::Caller,
        ATTACH | SEIZE => u32::try_from(args[1]).map_or(NewTracee::None, NewTracee::Other),
        _ => NewTracee::None,
    }
}
