//! The programs' ring buffers: memory to which they write a CPU's records, and from which the recorder copies them.
//!
//! `bpf/output.h` is the writers' side. Does not know what records mean; see `perf::program_records`.

use super::layout::{cpu_state, record};
use super::sys::SharedMap;
use crate::perf::program_records::{FIRST, HEADER_SIZE};
use crate::perf::ring::buffer_of;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often to look again for a record that is not complete: some 20 µs in all.
const PATIENCE: u32 = 500;

/// The rings of all CPUs, and their state.
#[derive(Debug)]
pub(super) struct Rings {
    /// By [`cpu_state`].
    pub(super) cpus: SharedMap,
    /// The memory of each, with space behind it for the longest record.
    pub(super) memory: SharedMap,
    /// Bytes of each, a power of two.
    pub(super) size: usize,
}

/// One CPU's ring.
#[derive(Debug)]
pub(crate) struct RecordRing {
    rings: Arc<Rings>,
    cpu: usize,
}

impl Rings {
    /// For this many CPUs, of this size.
    pub(super) fn new(cpus: usize, size: usize) -> io::Result<Self> {
        Ok(Self {
            cpus: SharedMap::new(cpu_state::SIZE, cpus)?,
            memory: SharedMap::new(size + record::LONGEST, cpus)?,
            size,
        })
    }
}

impl RecordRing {
    pub(super) fn new(rings: Arc<Rings>, cpu: u32) -> Self {
        Self { rings, cpu: cpu as usize }
    }

    /// A word of the CPU's state.
    fn word(&self, offset: usize) -> u64 {
        let word = self.rings.cpus.shared_word(self.cpu * cpu_state::SIZE + offset);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn set_word(&self, offset: usize, value: u64) {
        let word = self.rings.cpus.shared_word(self.cpu * cpu_state::SIZE + offset);
        word.into_iter().for_each(|word| word.store(value, Ordering::Release));
    }

    /// Whether more than an eighth is filled.
    pub(crate) fn is_filling(&self) -> bool {
        self.filled() > self.rings.size / 8
    }

    /// Bytes that wait to be copied; they can only become more.
    pub(crate) fn filled(&self) -> usize {
        let filled = self.word(cpu_state::HEAD).wrapping_sub(self.word(cpu_state::TAIL));
        usize::try_from(filled).unwrap_or(0).min(self.rings.size)
    }

    /// Whether records were lost since the last one that fits.
    pub(crate) fn may_have_lost(&self) -> bool {
        self.word(cpu_state::LOST) > 0
    }

    /// The programs wake the recorder only after a sixteenth of the ring more than usual, or as usual.
    pub(crate) fn set_patient(&self, patient: bool) {
        let more = if patient { self.rings.size / 16 } else { 0 };
        self.set_word(cpu_state::PATIENCE, more as u64);
    }

    /// Only losses from now on count.
    pub(crate) fn skip_old_losses(&self) {
        self.set_word(cpu_state::LOST, 0);
    }

    /// A buffer that can hold the whole ring.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        buffer_of(self.rings.size)
    }

    /// Appends all records to `out` as they are, and frees their space; see [`RecordRing::as_perf_does`]. A program may
    /// be about to complete one: that takes it a microsecond. False if it takes longer: the later records wait for it.
    pub(crate) fn copy_to(&self, out: &mut Vec<u8>) -> bool {
        let (tail, head) = (self.word(cpu_state::TAIL), self.word(cpu_state::HEAD));
        let mut end = self.append([tail, head], u64::MAX, out);
        for _ in 0..PATIENCE {
            if end == head {
                break;
            }
            std::hint::spin_loop();
            end = self.append([end, head], u64::MAX, out);
        }
        self.set_word(cpu_state::TAIL, end);
        end == head
    }

    /// Gives copied records headers like those of perf.
    pub(crate) fn as_perf_does(mut bytes: &mut [u8], cpu: u16) {
        while let Some((header, rest)) = bytes.split_first_chunk_mut::<8>() {
            let (kind, size) = kind_and_size(u64::from_ne_bytes(*header));
            let kind = (FIRST + u32::from(kind)).to_ne_bytes();
            header[..4].copy_from_slice(&kind);
            header[4..6].copy_from_slice(&cpu.to_ne_bytes());
            header[6..].copy_from_slice(&size.to_ne_bytes());
            let Some((_, next)) = rest.split_at_mut_checked(usize::from(size).wrapping_sub(8))
            else {
                return;
            };
            bytes = next;
        }
    }

    /// The CPU that writes to it.
    pub(crate) fn cpu(&self) -> u16 {
        u16::try_from(self.cpu).unwrap_or(u16::MAX)
    }

    /// The records written since `read_up_to`, at most `most` bytes from their start, if there are at least `grown`
    /// bytes. Moves `read_up_to` to the end.
    pub(crate) fn newest(
        &self,
        read_up_to: &mut u64,
        grown: usize,
        most: usize,
    ) -> Option<Vec<u8>> {
        let (tail, head) = (self.word(cpu_state::TAIL), self.word(cpu_state::HEAD));
        let since = (*read_up_to).max(tail);
        if head.saturating_sub(since) < grown as u64 {
            return None;
        }
        *read_up_to = head;
        let mut bytes = Vec::new();
        self.append([since, head], most as u64, &mut bytes);
        Self::as_perf_does(&mut bytes, self.cpu());
        Some(bytes)
    }

    /// Appends the complete records between two positions, until there are `most` bytes. Returns where it ended.
    fn append(&self, [from, head]: [u64; 2], most: u64, out: &mut Vec<u8>) -> u64 {
        let ring = self.rings.size as u64;
        // A record that begins before the ring's end goes on behind it; the next begins as far behind the start.
        let (mut at, mut crossed) = (from, None);
        while at < head && at - from < most {
            let Some(size) = self.complete_at(at) else { break };
            let next = at + u64::from(size);
            if at / ring != next / ring {
                crossed = Some(next);
            }
            at = next;
        }
        let middle = crossed.unwrap_or(at);
        for [from, to] in [[from, middle], [middle, at]] {
            self.append_memory(from, to - from, out);
        }
        at
    }

    /// The size of the record at this position, if it is complete.
    fn complete_at(&self, position: u64) -> Option<u16> {
        let word = self.rings.memory.shared_word(self.offset_of(position))?;
        let (_, size) = committed(word.load(Ordering::Acquire), position)?;
        Some(size)
    }

    fn append_memory(&self, from: u64, length: u64, out: &mut Vec<u8>) {
        let length = usize::try_from(length).unwrap_or(0);
        self.rings.memory.copy(self.offset_of(from), length, out);
    }

    fn offset_of(&self, position: u64) -> usize {
        let within = position & (self.rings.size as u64 - 1);
        self.cpu * self.rings.memory.stride() + usize::try_from(within).unwrap_or(0)
    }
}

/// Kind and size of the record at this position, if its header is there.
fn committed(header: u64, position: u64) -> Option<(u16, u16)> {
    let stamp = header & u64::from(u32::MAX);
    let (kind, size) = kind_and_size(header);
    let complete = stamp == (position / 8) & u64::from(u32::MAX) && kind != 0;
    (complete && usize::from(size) >= HEADER_SIZE).then_some((kind, size))
}

fn kind_and_size(header: u64) -> (u16, u16) {
    let [.., a, b, c, d] = header.to_ne_bytes();
    (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_counts_only_at_its_place() {
        let header =
            |position: u64, kind: u64, size: u64| (position / 8) | (kind << 32) | (size << 48);
        assert_eq!(committed(header(4096, 2, 32), 4096), Some((2, 32)));
        assert_eq!(committed(header(4096, 2, 32), 4096 + (1 << 22)), None);
        assert_eq!(committed(0, 0), None);
        assert_eq!(committed(header(4096, 2, 16), 4096), None);
    }
}
