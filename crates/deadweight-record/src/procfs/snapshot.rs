//! A snapshot of a running process when a recording attaches to it: its threads and children, what each waits for,
//! its descriptors and mappings. All from `/proc`; nothing is stopped for it.

use super::status::Status;
use super::{descriptors, maps, tree};
use crate::clock::now;
use crate::error::Error;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

/// A process to attach to.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) pid: u32,
    /// Becomes readable at its end; prevents reuse of its number.
    pub(crate) handle: OwnedFd,
}

impl Target {
    /// Finds the process and checks that a recording can attach to it.
    pub(crate) fn find(pid: u32) -> Result<Self, Error> {
        let no = |why: String| Err(Error::NoProcess { pid, why });
        if pid == std::process::id() {
            return no("that is deadweight itself".into());
        }
        let Some(status) = Status::of(&format!("/proc/{pid}")) else {
            return no("there is no such process".into());
        };
        let field = |name| status.field(name);
        let process = field("Tgid:");
        if process != pid.to_string() {
            return no(format!("that is a thread of process {process}: give --pid {process}"));
        }
        if field("State:").starts_with('Z') {
            return no("it has ended already; its parent has not reaped it yet".into());
        }
        match fs::read_link(format!("/proc/{pid}/exe")) {
            Ok(_) => {}
            Err(_) if field("VmSize:").is_empty() && field("Kthread:") != "0" => {
                return no("that is a kernel thread, not a program".into());
            }
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                let owner = field("Uid:");
                let owner = owner.split_whitespace().next().unwrap_or("?").to_owned();
                return no(format!("it belongs to another user (uid {owner}); sudo helps"));
            }
            Err(_) => return no("there is no such process any more".into()),
        }
        // SAFETY: a plain system call; on success the descriptor is ours.
        let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        match i32::try_from(handle) {
            // SAFETY: as above.
            Ok(fd) if fd >= 0 => Ok(Self { pid, handle: unsafe { OwnedFd::from_raw_fd(fd) } }),
            _ => no("it ended just now".into()),
        }
    }

    /// It ended while the recording attached to it.
    pub(crate) fn gone(&self) -> Error {
        Error::NoProcess { pid: self.pid, why: "it ended while deadweight attached to it".into() }
    }

    /// Whether it ends within this time.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        let mut polled =
            libc::pollfd { fd: self.handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ms = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one open descriptor.
        unsafe { libc::poll(&mut polled, 1, ms) > 0 }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Its command line.
    pub(crate) fn command(&self) -> Vec<String> {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let words = line.split(|byte| *byte == 0);
        let mut words: Vec<_> = words.map(|w| String::from_utf8_lossy(w).into_owned()).collect();
        // Each word ends with a zero byte; some programs overwrite their command line.
        while words.last().is_some_and(String::is_empty) {
            words.pop();
        }
        words
    }

    /// The file of its program, as it can be opened from here.
    pub(crate) fn program(&self) -> PathBuf {
        reachable(self.pid, &exe(self.pid))
    }

    /// All its threads, and those of its descendants.
    pub(crate) fn tasks(&self) -> Vec<u32> {
        tree(self.pid).into_iter().flat_map(threads).collect()
    }
}

/// The process and its descendants at one instant.
pub(crate) struct Snapshot {
    /// The clock's reading.
    pub(crate) at: u64,
    /// The process and its descendants, parents first.
    pub(crate) processes: Vec<Process>,
}

/// One process.
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// The file of its program.
    pub(crate) path: String,
    /// Its threads, the first one first.
    pub(crate) threads: Vec<Thread>,
    pub(crate) descriptors: Vec<(i32, String)>,
    pub(crate) mappings: Vec<Mapping>,
}

/// One thread.
pub(crate) struct Thread {
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// The CPU where it ran last.
    pub(crate) cpu: u16,
    pub(crate) doing: Doing,
}

/// The state of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It is on a CPU or runnable.
    Running,
    /// It waits in this system call, or in none that is known.
    Waiting(Option<(u16, [u64; 6])>),
    /// It changed during the snapshot.
    Changing,
}

/// An executable mapping.
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) offset: u64,
    pub(crate) inode: u64,
    pub(crate) path: String,
}

impl Snapshot {
    /// Reads all of it. A thread that waits both before and after the instant waited at the instant.
    pub(crate) fn take(target: &Target) -> Result<Self, Error> {
        let mut processes: Vec<Process> =
            tree(target.pid).into_iter().filter_map(Process::read).collect();
        if processes.first().is_none_or(|p| p.pid != target.pid) {
            return Err(target.gone());
        }
        let at = now();
        for process in &mut processes {
            for thread in &mut process.threads {
                let again = doing(process.pid, thread.tid).map(|(doing, ..)| doing);
                if again.as_ref() != Some(&thread.doing) {
                    thread.doing = Doing::Changing;
                }
            }
        }
        for process in &mut processes {
            process.descriptors = descriptors(process.pid);
        }
        Ok(Self { at, processes })
    }
}

impl Process {
    fn read(pid: u32) -> Option<Self> {
        let (_, _, parent) = doing(pid, pid)?;
        let mappings = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let mappings = mappings.lines().filter_map(|line| mapping(pid, line)).collect();
        let path = reachable(pid, &exe(pid)).to_string_lossy().into_owned();
        let threads = threads(pid).into_iter().filter_map(|tid| Thread::read(pid, tid)).collect();
        Some(Self { pid, parent, path, threads, descriptors: Vec::new(), mappings })
    }
}

impl Thread {
    fn read(pid: u32, tid: u32) -> Option<Self> {
        let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
        let (doing, cpu, _) = doing(pid, tid)?;
        Some(Self { tid, name: name.trim_end_matches('\n').to_owned(), cpu, doing })
    }
}

/// The path of a process's program as it can be opened from here.
pub(crate) fn reachable(pid: u32, path: &str) -> PathBuf {
    let space = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let is_file = path.starts_with('/') && !path.starts_with("//");
    if is_file && space(&pid.to_string()) != space("self") {
        return PathBuf::from(format!("/proc/{pid}/root{path}"));
    }
    PathBuf::from(path)
}

fn exe(pid: u32) -> String {
    let link = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// The threads of a process, the first one first.
fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let number = |e: fs::DirEntry| e.file_name().to_str()?.parse().ok();
    let mut threads: Vec<u32> = entries.filter_map(|e| number(e.ok()?)).collect();
    threads.sort_unstable_by_key(|tid| (*tid != pid, *tid));
    threads
}

/// What a thread does now; none if it is gone.
pub(crate) fn doing_of(pid: u32, tid: u32) -> Option<Doing> {
    doing(pid, tid).map(|(doing, ..)| doing)
}

/// What a thread does, its CPU, and its process's parent; none if it is gone.
fn doing(pid: u32, tid: u32) -> Option<(Doing, u16, u32)> {
    let read = |what| fs::read_to_string(format!("/proc/{pid}/task/{tid}/{what}")).ok();
    let stat = read("stat")?;
    // The name in brackets may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let cpu = fields.nth(34)?.parse().unwrap_or(0);
    let doing = match state {
        "R" => Doing::Running,
        "S" | "D" => Doing::Waiting(read("syscall").as_deref().and_then(call)),
        _ => Doing::Waiting(None),
    };
    Some((doing, cpu, parent))
}

/// Number and arguments of a call in progress, as the kernel prints them.
pub(crate) fn call(text: &str) -> Option<(u16, [u64; 6])> {
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some((number, arguments))
}

/// A line of `/proc/PID/maps`, if it is executable.
pub(crate) fn mapping(pid: u32, line: &str) -> Option<Mapping> {
    let maps::MapsLine { start, end, offset, inode, path, .. } =
        maps::parse(line).filter(|line| line.executable)?;
    let path = reachable(pid, path).to_string_lossy().into_owned();
    Some(Mapping { start, len: end.checked_sub(start)?, offset, inode, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_mappings_are_read_as_the_kernel_writes_them() {
        let text = "232 0x3 0x7f73 0x80 0xffffffffffffffff 0x0 0x8 0x7ffd1 0x7f02\n";
        assert_eq!(call(text), Some((232, [3, 0x7f73, 0x80, u64::MAX, 0, 8])));
        assert_eq!(call("running"), None);
        assert_eq!(call("-1 0x7ffd1 0x7f02"), None);
        let line = "55d0-55f0 r-xp 00002000 fe:00 4711                       /a b/c";
        let found = mapping(std::process::id(), line).unwrap();
        assert_eq!(
            (found.start, found.len, found.offset, found.inode),
            (0x55d0, 0x20, 0x2000, 4711)
        );
        assert_eq!(found.path, "/a b/c");
        assert!(mapping(1, "55d0-55f0 rw-p 00002000 fe:00 4711 /c").is_none());
        let anonymous = mapping(1, "55d0-55f0 rwxp 00000000 00:00 0 ").unwrap();
        assert_eq!(anonymous.path, "//anon");
    }

    #[test]
    fn a_process_that_cannot_be_attached_to_is_refused_with_the_reason() {
        let refused = |pid| Target::find(pid).map(drop).unwrap_err().to_string();
        assert!(refused(std::process::id()).contains("itself"));
        assert!(refused(u32::MAX).contains("no such process"));
    }

    #[test]
    fn a_sleeper_is_seen_to_wait() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let target = Target::find(child.id()).unwrap();
        let snapshot = Snapshot::take(&target).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let process = &snapshot.processes[0];
        assert!(process.path.contains("sleep") || process.path.contains("coreutils"));
        assert!(matches!(process.threads[0].doing, Doing::Waiting(Some(_))));
        assert!(process.mappings.iter().any(|m| m.path.contains("libc")));
    }
}
