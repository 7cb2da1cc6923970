//! What each descriptor is, and its buffer; the lock over all of it.
//!
//! One lock is enough: with more than one thread, pipes are not collected, and a write of a file does not wait
//! for another thread.

use crate::kernel;
use crate::spin::Spin;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Descriptors from here on are not collected.
const LIMIT: usize = 1024;
/// Bytes of a buffer.
pub(crate) const BUFFER: usize = 64 << 10;
/// Reads and writes from this size on are not collected.
pub(crate) const SMALL: usize = 4096;

/// What a descriptor is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not looked at since it was opened.
    Unknown,
    /// Not collected.
    Other,
    /// A file that is not collected: it does not answer.
    OtherFile,
    File,
    Pipe,
}

/// What its buffer holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Idle,
    /// Bytes `start..end` have been read ahead; the file is at `at` before them.
    Reading,
    /// Bytes `0..end` are to be written.
    Writing,
}

/// One descriptor.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) mode: Mode,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// `errno` of a write that was thought to have succeeded.
    pub(crate) error: c_int,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) buffer: *mut u8,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) at: i64,
    /// How much to read ahead the next time.
    pub(crate) ahead: usize,
}

/// All descriptors.
pub(crate) struct Table {
    pub(crate) entries: [Entry; LIMIT],
    /// No descriptor from here on has been looked at.
    pub(crate) high: usize,
}

struct Guarded(UnsafeCell<Table>);
// SAFETY: each use is under `LOCK`.
unsafe impl Sync for Guarded {}

const UNKNOWN: Entry = Entry {
    kind: Kind::Unknown,
    mode: Mode::Idle,
    readable: false,
    writable: false,
    error: 0,
    device: 0,
    inode: 0,
    buffer: null_mut(),
    start: 0,
    end: 0,
    at: 0,
    ahead: 0,
};

static LOCK: Spin = Spin::new();
static TABLE: Guarded = Guarded(UnsafeCell::new(Table { entries: [UNKNOWN; LIMIT], high: 0 }));
/// Buffers that are not idle, and streams that owe a flush. The gates look at it first.
pub(crate) static ACTIVE: AtomicU32 = AtomicU32::new(0);
/// Plain writes on standard output may be pending: 1, else 0.
pub(crate) static PLAIN_OUTPUT: AtomicU32 = AtomicU32::new(0);
/// There has been a second thread.
pub(crate) static THREADS: AtomicBool = AtomicBool::new(false);
/// The process ends: nothing is collected any more.
pub(crate) static OVER: AtomicBool = AtomicBool::new(false);

/// Called once, while there is one thread.
pub(crate) unsafe fn start() {
    LOCK.survive_forks();
}

/// The table, under the lock until it is dropped. None in a signal handler that came in between.
pub(crate) struct Locked(());

impl Locked {
    pub(crate) fn get() -> Option<Locked> {
        LOCK.lock().then_some(Locked(()))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        LOCK.unlock();
    }
}

impl core::ops::Deref for Locked {
    type Target = Table;
    fn deref(&self) -> &Table {
        // SAFETY: the lock is held.
        unsafe { &*TABLE.0.get() }
    }
}

impl core::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Table {
        // SAFETY: the lock is held.
        unsafe { &mut *TABLE.0.get() }
    }
}

/// Whether the table has a place for a descriptor.
pub(crate) fn has_place(fd: c_int) -> bool {
    (0..LIMIT as c_int).contains(&fd)
}

impl Table {
    /// All descriptors are looked at again. Nothing may be pending.
    pub(crate) fn forget_all(&mut self) {
        for entry in &mut self.entries[..self.high] {
            if entry.mode == Mode::Idle && entry.error == 0 {
                entry.kind = Kind::Unknown;
            }
        }
    }
}

impl Entry {
    /// Gives it a buffer that holds nothing. False if there is no memory.
    pub(crate) unsafe fn begin(&mut self, mode: Mode) -> bool {
        if self.buffer.is_null() {
            self.buffer = kernel::map(BUFFER);
        }
        if self.buffer.is_null() {
            return false;
        }
        if self.mode == Mode::Idle {
            ACTIVE.fetch_add(1, Ordering::Relaxed);
        }
        (self.mode, self.start, self.end) = (mode, 0, 0);
        true
    }

    /// The buffer holds nothing that is needed.
    pub(crate) fn rest(&mut self) {
        if self.mode != Mode::Idle {
            ACTIVE.fetch_sub(1, Ordering::Relaxed);
        }
        (self.mode, self.start, self.end) = (Mode::Idle, 0, 0);
    }

    /// Looked at again at the next use: it may be another file by then.
    pub(crate) fn forget(&mut self) {
        self.rest();
        (self.kind, self.error) = (Kind::Unknown, 0);
    }

    /// The error of a write that was thought to have succeeded, once.
    pub(crate) fn take_error(&mut self) -> c_int {
        core::mem::take(&mut self.error)
    }
}
