//! How much memory we may still take before somebody is killed for want of it.
//!
//! The program shares our limits, and what we take it has not. So buffers are as large as what is left
//! allows, and recording ends before nothing is left. Not for what the kernel lets us lock: see `session`.

use crate::procfs::cgroup;
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// Files that tell, open for good: they are read often, also when nothing can be opened any more.
struct Asked {
    groups: Vec<Group>,
    machine: Option<File>,
    own: Option<File>,
}

/// A level of our memory cgroup that has a limit.
struct Group {
    limit: u64,
    used: File,
    stat: File,
}

/// Bytes that we may still take: by each limit of our cgroup and those above it, by what the machine has left, and
/// by our own limit of addresses (`ulimit -v`). `u64::MAX` where nothing says.
#[must_use]
pub fn memory_left() -> u64 {
    static ASKED: OnceLock<Asked> = OnceLock::new();
    let asked = ASKED.get_or_init(|| Asked {
        groups: cgroup::memory_levels().into_iter().filter_map(Group::open).collect(),
        machine: File::open("/proc/meminfo").ok(),
        own: File::open("/proc/self/statm").ok(),
    });
    let groups = asked.groups.iter().filter_map(Group::left);
    let machine = asked.machine.as_ref().and_then(|file| available(&text(file)));
    let own = asked.own.as_ref().and_then(|file| addresses_left(&text(file)));
    groups.chain(machine).chain(own).min().unwrap_or(u64::MAX)
}

/// Gives memory back that is free inside of us, where the allocator can.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: has no effect but on memory that is free.
    unsafe {
        libc::malloc_trim(0)
    };
}

impl Group {
    fn open((folder, limit): (std::path::PathBuf, u64)) -> Option<Self> {
        let used = ["memory.current", "memory.usage_in_bytes"];
        let used = used.iter().find_map(|name| File::open(folder.join(name)).ok())?;
        let stat = File::open(folder.join("memory.stat")).ok()?;
        Some(Self { limit, used, stat })
    }

    fn left(&self) -> Option<u64> {
        let used = text(&self.used).trim().parse::<u64>().ok()?;
        Some(self.limit.saturating_sub(used).saturating_add(given_up(&text(&self.stat))))
    }
}

/// Bytes of files in memory that the kernel gives up when memory is short, of a cgroup's `memory.stat`: not those
/// that have to be written first, nor those that are mapped. Without these, which are programs and their libraries,
/// it would go on, but each would wait for the disk again and again. Version 1 tells of the levels below by `total_`,
/// version 2 always.
fn given_up(stat: &str) -> u64 {
    let value = |name: &str| {
        let line = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name));
        let total = format!("total_{name} ");
        let text = line(&total).or_else(|| line(&format!("{name} ")))?;
        text.trim().parse::<u64>().ok()
    };
    let files = ["inactive_file", "active_file"].iter().filter_map(|name| value(name)).sum::<u64>();
    let needed =
        ["dirty", "writeback", "mapped_file", "file_dirty", "file_writeback", "file_mapped"];
    files.saturating_sub(needed.iter().filter_map(|name| value(name)).sum())
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// By our limit, given what `/proc/self/statm` says; none without one.
fn addresses_left(statm: &str) -> Option<u64> {
    let pages = statm.split_whitespace().next()?.parse::<u64>().ok()?;
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: fills in a structure of plain numbers, and asks for one.
    let (limit, page) = unsafe {
        libc::getrlimit(libc::RLIMIT_AS, limit.as_mut_ptr());
        (limit.assume_init().rlim_cur, libc::sysconf(libc::_SC_PAGESIZE))
    };
    let page = u64::try_from(page).unwrap_or(4096);
    (limit != libc::RLIM_INFINITY).then(|| limit.saturating_sub(pages.saturating_mul(page)))
}

/// What such a file says now.
fn text(file: &File) -> String {
    let mut bytes = [0; 8192];
    let length = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Who is killed when memory runs out: we, and not the program.
pub(crate) mod oom_score {
    use super::fs;
    use std::ffi::CStr;
    use std::sync::OnceLock;

    const FILE: &CStr = c"/proc/self/oom_score_adj";
    /// Before all others.
    const FIRST: &str = "1000";

    /// What was said of us before, if we changed it.
    static BEFORE: OnceLock<Option<Vec<u8>>> = OnceLock::new();

    /// Says that we should be killed before all others. Everybody may say so of himself, and take it back.
    pub(crate) fn raise() {
        BEFORE.get_or_init(|| {
            let file = FILE.to_str().ok()?;
            let before = fs::read(file).ok()?;
            fs::write(file, FIRST).is_ok().then_some(before)
        });
    }

    /// Takes it back, in the child that becomes the program. Async-signal-safe. Of a child that borrows our memory
    /// the kernel takes it as said of that child alone.
    pub(crate) fn restore() {
        let Some(Some(before)) = BEFORE.get() else { return };
        // SAFETY: plain system calls on memory that was prepared before.
        unsafe {
            let file = libc::open(FILE.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if file >= 0 {
                libc::write(file, before.as_ptr().cast(), before.len());
                libc::close(file);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_gives_up_counts_as_left() {
        let first = "cache 9\ninactive_file 1\nactive_file 2\ntotal_dirty 1000\n\
                     mapped_file 7\ntotal_mapped_file 300\ntotal_inactive_file 4000\ntotal_active_file 500\n";
        assert_eq!(given_up(first), 3200);
        let second = "anon 7\nfile 900\ninactive_file 600\nactive_file 300\nfile_mapped 100\n\
                      file_dirty 40\nfile_writeback 10\n";
        assert_eq!(given_up(second), 750);
        assert_eq!(given_up("anon 7\n"), 0);
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
    }

    #[test]
    fn something_is_left_here() {
        let left = memory_left();
        assert!(left > 1 << 20, "{left}");
    }
}
