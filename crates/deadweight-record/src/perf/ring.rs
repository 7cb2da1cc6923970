//! The ring buffers: memory to which the kernel writes a CPU's records, and from which the recorder copies them.

use super::decode;
use super::sys::Open;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// One CPU's ring buffer. It is mapped writable, so that the kernel does not overwrite unread records but drops and
/// counts new ones.
#[derive(Debug)]
pub(crate) struct Ring {
    base: *mut u8,
    page: usize,
    size: usize,
    /// See [`Ring::may_have_lost`].
    may_have_lost: bool,
    /// See [`Ring::skip_old_losses`].
    anew: bool,
}

// SAFETY: the mapping belongs to this value alone and is accessed through `copy_to` only, which
// takes it exclusively.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps `size` bytes (a power of two of pages) for the records of `event`.
    pub(crate) fn map(event: &Open, size: usize) -> io::Result<Self> {
        // SAFETY: asks for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        // SAFETY: a new shared mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page + size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), page, size, may_have_lost: false, anew: false })
    }

    /// Whether more than an eighth is filled.
    pub(crate) fn is_filling(&self) -> bool {
        self.filled() > self.size / 8
    }

    /// Whether records may have been lost without a report: the buffer was full at the last copy, and nothing has
    /// followed since.
    pub(crate) fn may_have_lost(&self) -> bool {
        self.may_have_lost
    }

    /// Bytes that wait to be copied; they can only become more.
    pub(crate) fn filled(&self) -> usize {
        let (head, tail) = self.cursors();
        let filled = head.load(Ordering::Acquire).wrapping_sub(tail.load(Ordering::Relaxed));
        usize::try_from(filled).unwrap_or(0).min(self.size)
    }

    /// The records written since `read_up_to`, at most `most` bytes from their start, if there are at least `grown`
    /// bytes. Moves `read_up_to` to the end.
    pub(crate) fn newest(
        &self,
        read_up_to: &mut u64,
        grown: usize,
        most: usize,
    ) -> Option<Vec<u8>> {
        let (head, tail) = self.cursors();
        let head = head.load(Ordering::Acquire);
        let since = (*read_up_to).max(tail.load(Ordering::Relaxed));
        let filled = usize::try_from(head.wrapping_sub(since)).unwrap_or(0).min(self.size);
        if filled < grown {
            return None;
        }
        *read_up_to = head;
        let mut bytes = Vec::new();
        self.append(since, filled.min(most), &mut bytes);
        Some(bytes)
    }

    /// A buffer that can hold the whole ring.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        buffer_of(self.size)
    }

    /// The kernel's cursor and the recorder's, in bytes since the start.
    fn cursors(&self) -> (&AtomicU64, &AtomicU64) {
        let control = self.base.cast::<perf_event_mmap_page>();
        // SAFETY: the first page is the kernel's control page: aligned, alive as long as `self`,
        // and its two cursors are written by one side each.
        unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*control).data_head),
                AtomicU64::from_ptr(&raw mut (*control).data_tail),
            )
        }
    }

    /// Only what comes from now on counts. The ring is empty; the report of what was lost until now is skipped. The
    /// kernel writes that report before the first record that fits again, as if the loss had happened just then.
    pub(crate) fn skip_old_losses(&mut self) {
        (self.anew, self.may_have_lost) = (true, false);
    }

    /// Appends all complete records to `out` and frees their space.
    pub(crate) fn copy_to(&mut self, out: &mut Vec<u8>) {
        let (head_cursor, tail_cursor) = self.cursors();
        let head = head_cursor.load(Ordering::Acquire);
        let mut tail = tail_cursor.load(Ordering::Relaxed);
        if self.anew && head != tail {
            tail += self.lost_record_len(tail, head);
        }
        let filled = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(self.size);
        self.append(tail, filled, out);
        tail_cursor.store(head, Ordering::Release);
        self.anew &= filled == 0;
        // The next record reports how many did not fit. A record's length is a number of 16 bits.
        if filled > 0 {
            self.may_have_lost = filled + usize::from(u16::MAX) > self.size;
        }
    }

    /// Bytes of the record at `tail`, if it reports lost records.
    fn lost_record_len(&self, tail: u64, head: u64) -> u64 {
        /// The longest such record.
        const LONGEST: u64 = 64;
        let mut bytes = Vec::new();
        self.append(tail, head.wrapping_sub(tail).min(LONGEST) as usize, &mut bytes);
        decode::lost_record_len(&bytes).unwrap_or(0) as u64
    }

    /// Appends this many bytes from a position between the cursors.
    fn append(&self, from: u64, filled: usize, out: &mut Vec<u8>) {
        let start = usize::try_from(from & (self.size as u64 - 1)).unwrap_or(0);
        let first = filled.min(self.size - start);
        // SAFETY: the data pages follow the control page; between the cursors the kernel does not
        // write, and what lies there was published by `head`.
        unsafe {
            let data = self.base.add(self.page);
            out.extend_from_slice(std::slice::from_raw_parts(data.add(start), first));
            out.extend_from_slice(std::slice::from_raw_parts(data, filled - first));
        }
    }
}

/// A buffer of this size. Its memory is reserved but not touched, except for what the kernel needs to provide the rest
/// without the lock on the mappings.
pub(crate) fn buffer_of(size: usize) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(size);
    buffer.push(0);
    buffer
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` mapped, once.
        unsafe { libc::munmap(self.base.cast(), self.page + self.size) };
    }
}
