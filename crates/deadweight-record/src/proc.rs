//! What `/proc` and `/sys` tell: descriptors, children, CPUs, stolen time. Text in, values out.

use crate::affinity::Affinity;
use crate::memory::Page;
use crate::waits::Wait;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

/// The CPUs that are online, by number.
pub(crate) fn online_cpus() -> Vec<i32> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = cpu_list(&list);
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Reads the kernel's form of a set of CPUs (`0-3,8`).
pub(crate) fn cpu_list(text: &str) -> Vec<i32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.parse::<u16>(), to.parse::<u16>()) {
            cpus.extend((from..=to).map(i32::from));
        }
    }
    cpus
}

/// How many CPUs we, and so the program, may run on. What a quota grants of them is not meant.
pub(crate) fn allowed_cpus() -> usize {
    match Affinity::of_this_thread().cpus().count() {
        // More CPUs than a set has places.
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        cpus => cpus,
    }
}

/// Time that the hypervisor took from all CPUs together since boot, in ns.
pub(crate) fn steal() -> u64 {
    // SAFETY: asks for a number.
    let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1);
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let stolen = stat.lines().next().and_then(|l| l.split_whitespace().nth(8)?.parse::<u64>().ok());
    stolen.unwrap_or(0) * (1_000_000_000 / ticks)
}

/// The open descriptors of a process and what they refer to; empty if it is gone.
pub(crate) fn descriptors(process: u32) -> Vec<(i32, String)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let fd = entry.file_name().to_str()?.parse().ok()?;
            let what = fs::read_link(entry.path()).ok()?;
            Some((fd, what.to_string_lossy().into_owned()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Those of a process's descriptors that will be open after its next exec. A standard one that is
/// closed refers to nothing: an empty text.
pub(crate) fn inherited_descriptors(process: u32) -> Vec<(i32, String)> {
    let mut found = descriptors(process);
    found.retain(|(fd, _)| {
        let said = fs::read_to_string(format!("/proc/{process}/fdinfo/{fd}")).unwrap_or_default();
        let flags = said.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|f| i32::from_str_radix(f.trim(), 8).ok()).unwrap_or(0);
        flags & libc::O_CLOEXEC == 0
    });
    for fd in 0..3 {
        if found.iter().all(|(open, _)| *open != fd) {
            found.push((fd, String::new()));
        }
    }
    found
}

/// A process and its living descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(process) = found.get(next).copied() {
        next += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for task in tasks.filter_map(Result::ok) {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|c| c.parse::<u32>().ok());
            // We may have been started by whom we watch.
            found.extend(children.filter(|child| *child != std::process::id()));
        }
    }
    found
}

/// Looks at the descriptors of processes again and again, and reports what is new.
#[derive(Default)]
pub(crate) struct Descriptors {
    known: HashMap<(u32, i32), String>,
}

impl Descriptors {
    /// Everything that changed since the last look: process, descriptor, what it refers to.
    pub(crate) fn look(&mut self, processes: &[u32]) -> Vec<(u32, i32, String)> {
        let mut new = Vec::new();
        let mut seen = HashMap::new();
        for process in processes {
            for (fd, what) in descriptors(*process) {
                if self.known.get(&(*process, fd)) != Some(&what) {
                    new.push((*process, fd, what.clone()));
                }
                seen.insert((*process, fd), what);
            }
        }
        self.known = seen;
        new
    }
}

/// What was read from the side.
pub(crate) enum Found {
    /// A descriptor.
    Descriptor(Descriptor),
    /// A long wait.
    Wait(Wait),
    /// A page of memory.
    Page(Page),
    /// Counting stopped then, because it had counted enough.
    CountingStopped(u64),
}

impl Found {
    /// When.
    pub(crate) fn at(&self) -> u64 {
        match self {
            Self::Descriptor(found) => found.at,
            Self::Wait(found) => found.at,
            Self::Page(found) => found.at,
            Self::CountingStopped(at) => *at,
        }
    }
}

/// What a descriptor of a process referred to at some instant.
pub(crate) struct Descriptor {
    /// The clock's reading.
    pub(crate) at: u64,
    /// Whose.
    pub(crate) process: u32,
    /// Which.
    pub(crate) fd: i32,
    /// As `/proc` names it.
    pub(crate) what: String,
}

/// Whether this child of ours has ended and waits to be reaped.
pub(crate) fn has_ended(child: u32) -> bool {
    ended(child, libc::WNOHANG).unwrap_or(false)
}

/// Waits until a child of ours is dead, and leaves it to be reaped: how long its first thread could have run and had no
/// CPU in all its life, in ns; none where the kernel does not tell.
pub(crate) fn queued_until_death(child: u32) -> Option<u64> {
    while let Err(error) = ended(child, 0) {
        if error.kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    line(format!("/proc/{child}/schedstat"))?.split(' ').nth(1)?.parse().ok()
}

/// Whether a child of ours has ended, which is left to be reaped.
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

/// A file's text without the line end; none if it cannot be read.
pub(crate) fn line(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_cpus_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpu_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(cpu_list("0\n"), [0]);
        assert_eq!(cpu_list("nonsense"), [0_i32; 0]);
    }
}
