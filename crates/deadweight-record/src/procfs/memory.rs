//! Samples pages of a program's memory, without stopping it: whether they contain anything but zeroes.
//!
//! A few random pages of those that are in memory: nothing is paged in or changed. Only large private mappings
//! without a file, because buffers are there. Page faults report which task touched a page.

use crate::clock::now;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// A page that was in memory.
#[derive(Copy, Clone)]
pub(crate) struct Page {
    /// When it was read.
    pub(crate) at: u64,
    /// The process.
    pub(crate) process: u32,
    /// Its first address.
    pub(crate) addr: u64,
    /// Whether all its bytes were zero.
    pub(crate) zero: bool,
}

const PAGE: u64 = 4096;
/// Smaller mappings are not sampled.
const LEAST: u64 = 1 << 20;
/// Pages that are tried in one round. Most of a round is spent on these: 2 µs each.
const TRIED: usize = 64;
/// Processes that are sampled, the oldest first.
const PROCESSES: usize = 4;
/// In an entry of `pagemap`: the page is in memory.
const PRESENT: u64 = 1 << 63;

/// The state of the random generator.
#[derive(Default)]
pub(crate) struct Memory {
    random: u64,
}

impl Memory {
    /// Samples some pages of these processes.
    pub(crate) fn sample(&mut self, processes: &[u32]) -> Vec<Page> {
        let mut found = Vec::new();
        for process in processes.iter().take(PROCESSES) {
            let Ok(maps) = fs::read_to_string(format!("/proc/{process}/maps")) else { continue };
            let pieces = pieces(&maps);
            let pages: u64 = pieces.iter().map(|(from, to)| (to - from) / PAGE).sum();
            let open = |what| File::open(format!("/proc/{process}/{what}"));
            let (Ok(table), Ok(memory)) = (open("pagemap"), open("mem")) else { continue };
            for _ in 0..if pages == 0 { 0 } else { TRIED } {
                let addr = nth(&pieces, self.next() % pages);
                if let Some(zero) = addr.and_then(|addr| is_zero(&table, &memory, addr)) {
                    let (at, process, addr) = (now(), *process, addr.unwrap_or_default());
                    found.push(Page { at, process, addr, zero });
                }
            }
        }
        found
    }

    /// A linear congruential generator (its upper bits) is random enough.
    fn next(&mut self) -> u64 {
        let odd = 6_364_136_223_846_793_005_u64;
        self.random = self.random.wrapping_mul(odd).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 24
    }
}

/// The address of the page with this number, counted through all mappings.
fn nth(pieces: &[(u64, u64)], mut number: u64) -> Option<u64> {
    for (from, to) in pieces {
        let pages = (to - from) / PAGE;
        if number < pages {
            return Some(from + number * PAGE);
        }
        number -= pages;
    }
    None
}

/// Whether a page contains only zeroes; none if it is not in memory, or no longer mapped.
fn is_zero(table: &File, memory: &File, addr: u64) -> Option<bool> {
    let mut entry = [0; 8];
    table.read_exact_at(&mut entry, addr / PAGE * 8).ok()?;
    if u64::from_ne_bytes(entry) & PRESENT == 0 {
        return None;
    }
    let mut bytes = [0; 4096];
    memory.read_exact_at(&mut bytes, addr).ok()?;
    Some(bytes.iter().all(|byte| *byte == 0))
}

/// The large private, writable mappings without a file, from and to.
pub(crate) fn pieces(maps: &str) -> Vec<(u64, u64)> {
    maps.lines().filter_map(piece).filter(|(from, to)| to - from >= LEAST).collect()
}

fn piece(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let (permissions, inode) = (fields.next()?, fields.nth(2)?);
    let is_private = permissions.starts_with("rw") && permissions.ends_with('p') && inode == "0";
    let stack = fields.next().is_some_and(|name| name.starts_with("[stack"));
    let address = |text| u64::from_str_radix(text, 16).ok();
    let (from, to) = (address(from)?, address(to)?);
    (is_private && !stack && from < to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_private_pieces_are_found() {
        let maps = "55d000000000-55d000200000 rw-p 00000000 00:00 0       [heap]\n\
                    7f0000000000-7f0000100000 rw-p 00000000 00:00 0\n\
                    7f0000200000-7f0000400000 rw-p 00000000 fe:00 77  /usr/lib/libc.so.6\n\
                    7f0000400000-7f0000600000 r--p 00000000 00:00 0\n\
                    7f0000600000-7f0000601000 rw-p 00000000 00:00 0\n\
                    7ffc00000000-7ffc00800000 rw-p 00000000 00:00 0   [stack]\n\
                    nonsense\n";
        let found = pieces(maps);
        assert_eq!(
            found,
            [(0x55d0_0000_0000, 0x55d0_0020_0000), (0x7f00_0000_0000, 0x7f00_0010_0000)]
        );
        assert_eq!(nth(&found, 511), Some(0x55d0_001f_f000));
        assert_eq!(nth(&found, 512), Some(0x7f00_0000_0000));
        assert_eq!(nth(&found, 768), None);
    }

    #[test]
    fn the_own_memory_is_sampled_correctly() {
        let mut block = vec![0_u8; 64 << 20];
        let half = block.len() / 2;
        block.iter_mut().take(half).for_each(|byte| *byte = 7);
        let start = block.as_ptr() as u64;
        let mut memory = Memory::default();
        let (mut full, mut zero) = (0, 0);
        for page in (0..40).flat_map(|_| memory.sample(&[std::process::id()])) {
            let inside = page.addr.checked_sub(start).filter(|at| *at < block.len() as u64);
            match inside {
                Some(at) if at + PAGE < half as u64 => {
                    assert!(!page.zero);
                    full += 1;
                }
                // Never touched: not in memory.
                Some(at) if at > half as u64 => zero += 1,
                _ => {}
            }
        }
        assert!(full > 0 && zero == 0, "{full} full, {zero} that nobody touched");
        assert_eq!(block[half], 0);
    }
}
