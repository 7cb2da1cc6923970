//! Memory that a process got and has not touched all of: which pages came since the last look.
//!
//! The kernel counts page faults and does not say where. But fresh memory is mostly walked through from
//! its beginning, and which of its pages are there can be read. Not for other faults: those of files,
//! and of memory that is touched here and there.

use std::fs::File;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// Smaller pieces are not followed.
const LEAST: u64 = 16 * PAGE;
/// Pieces that are followed, the latest.
const PIECES: usize = 64;
/// Entries of the table that are read at once.
const AT_ONCE: usize = 128;
/// In an entry of `pagemap`: the page is in memory, or was put out of it.
const THERE: u64 = 1 << 63 | 1 << 62;

/// A process's fresh memory, the latest last.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    pieces: Vec<Piece>,
    /// Where its heap ends.
    end: u64,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Piece {
    /// Up to here it is known to be touched.
    next: u64,
    end: u64,
}

impl Fresh {
    /// What a call that just returned changed. `mapped` is `addr, len` of memory that the process may
    /// write to and that is in no file.
    pub(super) fn returned(&mut self, call: libc::c_long, args: &[u64; 6], ret: i64) {
        let failed = (-4095..0).contains(&ret);
        let at = ret.cast_unsigned();
        let bits = |flag: i32| u64::from(flag.cast_unsigned());
        match call {
            _ if failed => {}
            libc::SYS_mmap => {
                self.gone(at, args[1]);
                let [writable, nowhere] = [bits(libc::PROT_WRITE), bits(libc::MAP_ANONYMOUS)];
                if args[2] & writable != 0 && args[3] & nowhere != 0 {
                    self.add(at, args[1]);
                }
            }
            libc::SYS_brk => {
                let before = std::mem::replace(&mut self.end, at);
                if before != 0 && at > before {
                    self.add(before, at - before);
                } else if at < before {
                    self.gone(at, before - at);
                }
            }
            libc::SYS_munmap => self.gone(args[0], args[1]),
            libc::SYS_mremap => {
                self.gone(args[0], args[1]);
                self.add(at.saturating_add(args[1]), args[2].saturating_sub(args[1]));
            }
            libc::SYS_madvise if args[2] == bits(libc::MADV_DONTNEED) => {
                self.gone(args[0], args[1]);
                self.add(args[0], args[1]);
            }
            _ => {}
        }
    }

    fn add(&mut self, start: u64, len: u64) {
        let Some(end) = start.checked_add(len).filter(|_| len >= LEAST) else { return };
        match self.pieces.last_mut() {
            // A heap grows at its end.
            Some(last) if last.end == start => last.end = end,
            _ => self.pieces.push(Piece { next: start, end }),
        }
        if self.pieces.len() > PIECES {
            self.pieces.remove(0);
        }
    }

    fn gone(&mut self, start: u64, len: u64) {
        let end = start.saturating_add(len);
        self.pieces.retain(|piece| piece.next >= end || piece.end <= start);
    }

    /// The pages that came since the last look, at most so many.
    pub(super) fn touched(&mut self, process: u32, most: u64) -> Vec<u64> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut touched = Vec::new();
        let Ok(table) = File::open(format!("/proc/{process}/pagemap")) else { return touched };
        for piece in self.pieces.iter_mut().rev() {
            while touched.len() < most && piece.walk(&table, most, &mut touched) {}
        }
        touched
    }
}

impl Piece {
    /// Goes on to the next page that is not there; whether there may be more beyond.
    fn walk(&mut self, table: &File, most: usize, touched: &mut Vec<u64>) -> bool {
        let mut bytes = [0; 8 * AT_ONCE];
        let pages = (self.end.saturating_sub(self.next) / PAGE).min(AT_ONCE as u64);
        let len = usize::try_from(8 * pages).unwrap_or(0);
        let got = table.read_at(&mut bytes[..len], self.next / PAGE * 8).unwrap_or(0);
        for entry in bytes[..got].as_chunks::<8>().0 {
            if touched.len() >= most || u64::from_ne_bytes(*entry) & THERE == 0 {
                return false;
            }
            touched.push(self.next);
            self.next += PAGE;
        }
        got > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_is_followed_from_its_beginning() {
        // What an allocator gives may have been touched before.
        let (flags, rights) =
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
        let len = usize::try_from(64 * PAGE).unwrap();
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, flags, -1, 0) };
        let start = memory.addr() as u64;
        let mut fresh = Fresh::default();
        let writable = u64::from(libc::PROT_WRITE.cast_unsigned());
        let nowhere = u64::from(libc::MAP_ANONYMOUS.cast_unsigned());
        let args = [0, 64 * PAGE, writable, nowhere, 0, 0];
        fresh.returned(libc::SYS_mmap, &args, start.cast_signed());
        (0..10).for_each(|page| unsafe { memory.cast::<u8>().add(page * 4096).write(1) });
        let touched = fresh.touched(std::process::id(), 100);
        assert!(touched.len() >= 10 && touched[0] == start, "{touched:x?}");
        assert!(fresh.touched(std::process::id(), 100).is_empty());
        fresh.returned(libc::SYS_munmap, &[start, 64 * PAGE, 0, 0, 0, 0], 0);
        assert_eq!(fresh.pieces, []);
    }

    #[test]
    fn a_heap_grows_at_its_end() {
        let mut fresh = Fresh::default();
        for end in [0x10_0000, 0x20_0000, 0x30_0000] {
            fresh.returned(libc::SYS_brk, &[end, 0, 0, 0, 0, 0], end.cast_signed());
        }
        assert_eq!(fresh.pieces, [Piece { next: 0x10_0000, end: 0x30_0000 }]);
    }
}
