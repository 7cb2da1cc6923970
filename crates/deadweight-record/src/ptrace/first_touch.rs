//! First touch of fresh anonymous memory: which pages a process has touched since the last check.
//!
//! The kernel counts page faults, but not their addresses. Fresh memory is mostly touched from its
//! beginning on, and `pagemap` shows which pages are present. Does not find other faults: those of
//! files, and of memory that is touched at random.

use std::fs::File;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// Smaller regions are not followed.
const MIN_REGION: u64 = 16 * PAGE;
/// The latest regions are followed, up to this many.
const MAX_REGIONS: usize = 64;
/// Entries of `pagemap` that are read at once.
const READ_ENTRIES: usize = 128;
/// Bits of an entry of `pagemap`: the page is present, or swapped out.
const PRESENT_OR_SWAPPED: u64 = 1 << 63 | 1 << 62;

/// A process's fresh regions, the latest last.
#[derive(Debug, Default)]
pub(super) struct FirstTouch {
    regions: Vec<Region>,
    /// End of its heap.
    heap_end: u64,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Region {
    /// Pages below this address are known to be touched.
    next: u64,
    end: u64,
}

impl FirstTouch {
    /// Follows what a returned call did to writable anonymous memory.
    pub(super) fn call_returned(&mut self, call: libc::c_long, args: &[u64; 6], ret: i64) {
        let failed = (-4095..0).contains(&ret);
        let at = ret.cast_unsigned();
        let bits = |flag: i32| u64::from(flag.cast_unsigned());
        match call {
            _ if failed => {}
            libc::SYS_mmap => {
                self.remove(at, args[1]);
                let [writable, anonymous] = [bits(libc::PROT_WRITE), bits(libc::MAP_ANONYMOUS)];
                if args[2] & writable != 0 && args[3] & anonymous != 0 {
                    self.add(at, args[1]);
                }
            }
            libc::SYS_brk => {
                let before = std::mem::replace(&mut self.heap_end, at);
                if before != 0 && at > before {
                    self.add(before, at - before);
                } else if at < before {
                    self.remove(at, before - at);
                }
            }
            libc::SYS_munmap => self.remove(args[0], args[1]),
            libc::SYS_mremap => {
                self.remove(args[0], args[1]);
                self.add(at.saturating_add(args[1]), args[2].saturating_sub(args[1]));
            }
            libc::SYS_madvise if args[2] == bits(libc::MADV_DONTNEED) => {
                self.remove(args[0], args[1]);
                self.add(args[0], args[1]);
            }
            _ => {}
        }
    }

    fn add(&mut self, start: u64, len: u64) {
        let Some(end) = start.checked_add(len).filter(|_| len >= MIN_REGION) else { return };
        match self.regions.last_mut() {
            // A heap grows at its end.
            Some(last) if last.end == start => last.end = end,
            _ => self.regions.push(Region { next: start, end }),
        }
        if self.regions.len() > MAX_REGIONS {
            self.regions.remove(0);
        }
    }

    fn remove(&mut self, start: u64, len: u64) {
        let end = start.saturating_add(len);
        self.regions.retain(|region| region.next >= end || region.end <= start);
    }

    /// The pages touched since the last check, at most `limit`.
    pub(super) fn newly_touched(&mut self, process: u32, limit: u64) -> Vec<u64> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        let Ok(pagemap) = File::open(format!("/proc/{process}/pagemap")) else {
            return found;
        };
        for region in self.regions.iter_mut().rev() {
            while found.len() < limit && region.advance(&pagemap, limit, &mut found) {}
        }
        found
    }
}

impl Region {
    /// Advances to the next page that is not present. True if there may be more pages beyond.
    fn advance(&mut self, pagemap: &File, limit: usize, found: &mut Vec<u64>) -> bool {
        let mut bytes = [0; 8 * READ_ENTRIES];
        let pages = (self.end.saturating_sub(self.next) / PAGE).min(READ_ENTRIES as u64);
        let len = usize::try_from(8 * pages).unwrap_or(0);
        let read = pagemap.read_at(&mut bytes[..len], self.next / PAGE * 8).unwrap_or(0);
        for entry in bytes[..read].as_chunks::<8>().0 {
            if found.len() >= limit || u64::from_ne_bytes(*entry) & PRESENT_OR_SWAPPED == 0 {
                return false;
            }
            found.push(self.next);
            self.next += PAGE;
        }
        read > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_is_followed_from_its_beginning() {
        // Memory from an allocator may have been touched before.
        let (flags, protection) =
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
        let len = usize::try_from(64 * PAGE).unwrap();
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        let start = mapped.addr() as u64;
        let mut memory = FirstTouch::default();
        let writable = u64::from(libc::PROT_WRITE.cast_unsigned());
        let anonymous = u64::from(libc::MAP_ANONYMOUS.cast_unsigned());
        let args = [0, 64 * PAGE, writable, anonymous, 0, 0];
        memory.call_returned(libc::SYS_mmap, &args, start.cast_signed());
        (0..10).for_each(|page| unsafe { mapped.cast::<u8>().add(page * 4096).write(1) });
        let found = memory.newly_touched(std::process::id(), 100);
        assert!(found.len() >= 10 && found[0] == start, "{found:x?}");
        assert!(memory.newly_touched(std::process::id(), 100).is_empty());
        memory.call_returned(libc::SYS_munmap, &[start, 64 * PAGE, 0, 0, 0, 0], 0);
        assert_eq!(memory.regions, []);
    }

    #[test]
    fn a_heap_grows_at_its_end() {
        let mut memory = FirstTouch::default();
        for end in [0x10_0000, 0x20_0000, 0x30_0000] {
            memory.call_returned(libc::SYS_brk, &[end, 0, 0, 0, 0, 0], end.cast_signed());
        }
        assert_eq!(memory.regions, [Region { next: 0x10_0000, end: 0x30_0000 }]);
    }
}
