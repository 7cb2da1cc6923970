//! Tracepoints: their numbers and the offsets of their fields, as the running kernel describes them.

use crate::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr;

/// Flags for opening files to read.
const READ: libc::c_int = libc::O_RDONLY | libc::O_CLOEXEC;

/// The kernel's tracing file system: an existing mount, or a private one.
#[derive(Debug)]
pub(crate) struct Tracefs {
    events: File,
}

/// One tracepoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracepoint {
    /// The value for `perf_event_attr.config`.
    pub(crate) id: u64,
    fields: Vec<(String, usize)>,
}

impl Tracefs {
    /// Opens it where distributions mount it. Otherwise makes a private mount that vanishes with this process,
    /// because a recorder should not change the machine's mounts.
    pub(crate) fn open() -> Result<Self, Error> {
        for events in ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"] {
            if Path::new(events).join("sched").is_dir()
                && let Ok(events) = File::open(events)
            {
                return Ok(Self { events });
            }
        }
        let what = "cannot reach the kernel's list of tracepoints (tracefs)";
        let root = detached().map_err(|source| Error::System { what: what.into(), source })?;
        let events = open_at(&root, "events", READ)
            .map_err(|source| Error::System { what: what.into(), source })?;
        Ok(Self { events })
    }

    /// The directory of all tracepoints: one file for the whole machine, whatever mount it is
    /// reached through.
    pub(crate) fn into_directory(self) -> File {
        self.events
    }

    /// Looks up `group/name`.
    pub(crate) fn tracepoint(&self, name: &str) -> io::Result<Tracepoint> {
        // In one read: the kernel locks all its events for each.
        let mut text = vec![0; 1 << 16];
        let len = open_at(&self.events, &format!("{name}/format"), READ)?.read(&mut text)?;
        Ok(Tracepoint::parse(&String::from_utf8_lossy(&text[..len])))
    }

    /// The list of uprobes (`uprobe_events`): reading shows them, a written line adds or removes one.
    pub(crate) fn uprobe_events(&self) -> io::Result<File> {
        let flags = libc::O_RDWR | libc::O_APPEND | libc::O_CLOEXEC;
        open_at(&self.events, "../uprobe_events", flags)
    }

    /// Whether the tracepoint exists and is accessible.
    pub(crate) fn has(&self, name: &str) -> io::Result<()> {
        open_at(&self.events, &format!("{name}/id"), READ).map(drop)
    }
}

impl Tracepoint {
    /// Reads the kernel's description (`ID: 372`, `field:pid_t pid; offset:24; size:4; ...`).
    pub(crate) fn parse(format: &str) -> Self {
        let mut tracepoint = Self::default();
        for line in format.lines().map(str::trim) {
            if let Some(id) = line.strip_prefix("ID:") {
                tracepoint.id = id.trim().parse().unwrap_or(0);
            }
            let Some(field) = line.strip_prefix("field:") else { continue };
            let mut parts = field.split(';').map(str::trim);
            let name = parts.next().and_then(|d| d.rsplit([' ', '*']).next()).unwrap_or_default();
            let name = name.split('[').next().unwrap_or_default();
            let offset = parts.find_map(|p| p.strip_prefix("offset:")?.parse().ok());
            if let Some(offset) = offset {
                tracepoint.fields.push((name.to_owned(), offset));
            }
        }
        tracepoint
    }

    /// The field's offset in the record's raw data; `default` if this kernel does not have the field.
    pub(crate) fn offset(&self, field: &str, default: usize) -> usize {
        self.fields.iter().find(|(name, _)| name == field).map_or(default, |(_, at)| *at)
    }
}

fn open_at(dir: &impl AsRawFd, path: &str, flags: libc::c_int) -> io::Result<File> {
    let path = std::ffi::CString::new(path)?;
    // SAFETY: on success the descriptor is new.
    unsafe {
        let fd = libc::openat(dir.as_raw_fd(), path.as_ptr(), flags);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(fd)) }
    }
}

/// A mount of tracefs that is not attached anywhere.
fn detached() -> io::Result<OwnedFd> {
    const CLOEXEC: libc::c_long = 1; // FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC alike
    const CREATE: libc::c_long = 6; // FSCONFIG_CMD_CREATE
    let made = |result: libc::c_long| match i32::try_from(result) {
        // SAFETY: a new descriptor.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: the three calls only read the string and number arguments.
    unsafe {
        let context = made(libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), CLOEXEC))?;
        let none = ptr::null::<libc::c_char>();
        if libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, none, none, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        made(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOEXEC, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_gives_the_number_and_the_offsets() {
        let switch = Tracepoint::parse(
            "name: sched_switch\nID: 372\nformat:\n\
             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\n\
             \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
             \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\nprint fmt: \"field:x\"\n",
        );
        assert_eq!(switch.id, 372);
        assert_eq!(switch.offset("prev_comm", 0), 8);
        assert_eq!(switch.offset("prev_pid", 0), 24);
        assert_eq!(switch.offset("next_pid", 56), 56);
    }
}
