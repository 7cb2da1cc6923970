//! The memory budget: how much memory the recorder may still allocate before the OOM killer acts.
//!
//! The program shares the recorder's limits, and lacks what the recorder uses. So buffers are as large as the budget
//! allows, and recording ends before it is used up. For locked memory see `session`.

use crate::procfs::cgroup;
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// Files that report it, kept open: they are read often, also when nothing more can be opened.
struct StatusFiles {
    groups: Vec<Group>,
    machine: Option<File>,
    own: Option<File>,
}

/// A level of the own memory cgroup that has a limit.
struct Group {
    limit: u64,
    used: File,
    stat: File,
}

/// Bytes that the recorder may still allocate: by each limit of its cgroup and of those above it, by the machine's
/// available memory, and by its own address space limit (`ulimit -v`). `u64::MAX` if nothing limits it.
#[must_use]
pub fn memory_left() -> u64 {
    static FILES_OPEN: OnceLock<StatusFiles> = OnceLock::new();
    let files = FILES_OPEN.get_or_init(|| StatusFiles {
        groups: cgroup::memory_levels().into_iter().filter_map(Group::open).collect(),
        machine: File::open("/proc/meminfo").ok(),
        own: File::open("/proc/self/statm").ok(),
    });
    let groups = files.groups.iter().filter_map(Group::left);
    let machine = files.machine.as_ref().and_then(|file| available(&text(file)));
    let own = files.own.as_ref().and_then(|file| addresses_left(&text(file)));
    groups.chain(machine).chain(own).min().unwrap_or(u64::MAX)
}

/// Lets all threads allocate from one heap if the address space is limited: glibc reserves 64 MiB of addresses for each
/// thread's own, and none would be left for the next thread. Call it before the first thread starts.
pub(crate) fn save_addresses() {
    #[cfg(target_env = "gnu")]
    if addresses_left("0").is_some() {
        // SAFETY: sets a number in the allocator.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Returns unused heap memory to the kernel, where the allocator can.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: affects only unused memory.
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
        Some(self.limit.saturating_sub(used).saturating_add(reclaimable(&text(&self.stat))))
    }
}

/// Bytes of page cache that the kernel reclaims when memory is short, from a cgroup's `memory.stat`. Dirty pages (to
/// be written first) and mapped ones do not count: programs and libraries are mapped, and without them each would
/// wait for the disk again and again. Version 1 includes the levels below in `total_`, version 2 always.
fn reclaimable(stat: &str) -> u64 {
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

/// By the address space limit, given the content of `/proc/self/statm`; none without a limit.
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

/// The current content of such a file.
fn text(file: &File) -> String {
    let mut bytes = [0; 8192];
    let length = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// The OOM score: when memory runs out, the recorder is to be killed and not the program.
pub(crate) mod oom_score {
    use super::fs;
    use std::ffi::CStr;
    use std::sync::OnceLock;

    const FILE: &CStr = c"/proc/self/oom_score_adj";
    /// The highest score: killed first.
    const FIRST: &str = "1000";

    /// The score before the change, if it was changed.
    static BEFORE: OnceLock<Option<Vec<u8>>> = OnceLock::new();

    /// Makes the recorder the first to be killed. Any process may do so for itself, and restore it.
    pub(crate) fn raise() {
        BEFORE.get_or_init(|| {
            let file = FILE.to_str().ok()?;
            let before = fs::read(file).ok()?;
            fs::write(file, FIRST).is_ok().then_some(before)
        });
    }

    /// Restores the score, in the child that becomes the program. Async-signal-safe. If the child borrows the
    /// recorder's memory, the kernel changes the score of the child only.
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
    fn reclaimable_page_cache_counts_as_available() {
        let first = "cache 9\ninactive_file 1\nactive_file 2\ntotal_dirty 1000\n\
                     mapped_file 7\ntotal_mapped_file 300\ntotal_inactive_file 4000\ntotal_active_file 500\n";
        assert_eq!(reclaimable(first), 3200);
        let second = "anon 7\nfile 900\ninactive_file 600\nactive_file 300\nfile_mapped 100\n\
                      file_dirty 40\nfile_writeback 10\n";
        assert_eq!(reclaimable(second), 750);
        assert_eq!(reclaimable("anon 7\n"), 0);
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
    }

    #[test]
    fn some_memory_is_left() {
        let left = memory_left();
        assert!(left > 1 << 20, "{left}");
    }
}
