//! Memory that the program unmaps is kept, and the next mapping of the same size gets it, cleared: its pages are not faulted
//! in again.
//!
//! - In: the program's own calls of `mmap`, `munmap`, and those that change a mapping.
//! - Out: the same mappings, with fewer system calls and page faults.
//! - Must not know: what the memory is for. `malloc` maps by itself, past these functions.
//!
//! What it does not keep: an access to memory that was unmapped does not end the program. Up to 256 MiB stay mapped. A page that
//! the program does not touch again is cleared all the same. Memory that was given to a pipe or socket without a copy (`vmsplice`,
//! MSG_ZEROCOPY) and unmapped is cleared before it was read.

use crate::real::real;
use crate::spin::Spin;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};

/// Bytes that are kept at most.
const LIMIT: usize = 256 << 20;
/// A larger mapping is used sparsely, or once.
const LARGEST: usize = 64 << 20;
/// Mappings that are known at most. Others are as without this library.
const PLACES: usize = 512;
const PAGE: usize = 4096;

const READ_WRITE: c_int = 3;
const PRIVATE_ANONYMOUS: c_int = 0x22;
/// MAP_NORESERVE and MAP_STACK.
const HARMLESS: c_int = 0x4000 | 0x2_0000;
/// MAP_FIXED, MAP_FIXED_NOREPLACE.
const FIXED: c_int = 0x10;
const FIXED_IF_FREE: c_int = 0x10_0000;
/// MADV_WILLNEED, MADV_DONTNEED, MADV_FREE: nothing of them stays with the mapping.
const PASSING: [c_int; 3] = [3, 4, 8];

/// A mapping that the program has, or had.
#[derive(Copy, Clone)]
struct Place {
    at: usize,
    /// In whole pages; 0 for none.
    len: usize,
    kept: bool,
}

struct Table {
    places: [Place; PLACES],
    /// Bytes of all that are kept.
    kept: usize,
}

struct Guarded(UnsafeCell<Table>);
// SAFETY: each use is under `LOCK`.
unsafe impl Sync for Guarded {}

const NONE: Place = Place { at: 0, len: 0, kept: false };
static LOCK: Spin = Spin::new();
static TABLE: Guarded = Guarded(UnsafeCell::new(Table { places: [NONE; PLACES], kept: 0 }));

real!(fn mmap as real_mmap(at: usize, len: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> usize);
real!(fn munmap as real_munmap(at: usize, len: usize) -> c_int);
real!(fn mremap as real_mremap(at: usize, len: usize, new: usize, flags: c_int, to: usize) -> usize);
real!(fn mprotect as real_mprotect(at: usize, len: usize, protection: c_int) -> c_int);
real!(fn madvise as real_madvise(at: usize, len: usize, advice: c_int) -> c_int);
real!(fn mlock2 as real_mlock2(at: usize, len: usize, flags: c_int) -> c_int);
real!(fn pkey_mprotect as real_pkey_mprotect(at: usize, len: usize, protection: c_int, key: c_int) -> c_int);
real!(fn mlock as real_mlock(at: usize, len: usize) -> c_int);

/// Called once, while there is one thread.
pub(crate) unsafe fn start() {
    crate::real::start();
    LOCK.survive_forks();
}

/// Does this with the table; the other value if a signal handler came in between.
unsafe fn with<T>(otherwise: T, work: impl FnOnce(&mut Table) -> T) -> T {
    if !LOCK.lock() {
        return otherwise;
    }
    let done = work(&mut *TABLE.0.get());
    LOCK.unlock();
    done
}

fn whole_pages(len: usize) -> usize {
    len.wrapping_add(PAGE - 1) & !(PAGE - 1)
}

impl Table {
    /// A kept mapping of this length, which the program has again.
    fn take(&mut self, len: usize) -> Option<usize> {
        let place = self.places.iter_mut().find(|place| place.kept && place.len == len)?;
        place.kept = false;
        self.kept -= len;
        Some(place.at)
    }

    fn note(&mut self, at: usize, len: usize) {
        if let Some(place) = self.places.iter_mut().find(|place| place.len == 0) {
            *place = Place { at, len, kept: false };
        }
    }

    /// Keeps a mapping that the program has no more. False if it cannot be kept.
    fn keep(&mut self, at: usize, len: usize) -> bool {
        let known =
            |place: &&mut Place| len > 0 && !place.kept && place.at == at && place.len == len;
        match self.places.iter_mut().find(known) {
            Some(place) if self.kept + len <= LIMIT => {
                place.kept = true;
                self.kept += len;
                true
            }
            _ => false,
        }
    }

    /// These bytes are no longer as they were mapped.
    fn forget(&mut self, at: usize, len: usize) {
        let end = at.saturating_add(whole_pages(len));
        for place in &mut self.places {
            if place.len > 0 && place.at < end && at < place.at + place.len {
                let was_kept = core::mem::replace(&mut place.kept, false);
                self.kept -= if was_kept { place.len } else { 0 };
                place.len = 0;
            }
        }
    }
}

unsafe fn forget(at: usize, len: usize) {
    with((), |table| table.forget(at, len));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    at: usize,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> usize {
    let pages = whole_pages(len);
    let plain = at == 0
        && protection == READ_WRITE
        && flags & !HARMLESS == PRIVATE_ANONYMOUS
        && (1..=LARGEST).contains(&pages);
    if plain && let Some(kept) = with(None, |table| table.take(pages)) {
        (kept as *mut u8).write_bytes(0, pages);
        return kept;
    }
    // A fixed address takes the place of what is there.
    if flags & (FIXED | FIXED_IF_FREE) != 0 {
        forget(at, len);
    }
    let mapped = real_mmap(at, len, protection, flags, fd, offset);
    if mapped != usize::MAX {
        with((), |table| {
            table.forget(mapped, pages);
            if plain {
                table.note(mapped, pages);
            }
        });
    }
    mapped
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap64(
    at: usize,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> usize {
    mmap(at, len, protection, flags, fd, offset)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(at: usize, len: usize) -> c_int {
    if with(false, |table| table.keep(at, whole_pages(len))) {
        return 0;
    }
    forget(at, len);
    real_munmap(at, len)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mremap(at: usize, len: usize, new: usize, flags: c_int, to: usize) -> usize {
    const TO_A_PLACE: c_int = 2;
    forget(at, len);
    if flags & TO_A_PLACE != 0 {
        forget(to, new);
    }
    real_mremap(at, len, new, flags, to)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(at: usize, len: usize, protection: c_int) -> c_int {
    forget(at, len);
    real_mprotect(at, len, protection)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn madvise(at: usize, len: usize, advice: c_int) -> c_int {
    if !PASSING.contains(&advice) {
        forget(at, len);
    }
    real_madvise(at, len, advice)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mlock(at: *const c_void, len: usize) -> c_int {
    forget(at as usize, len);
    real_mlock(at as usize, len)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mlock2(at: *const c_void, len: usize, flags: c_int) -> c_int {
    forget(at as usize, len);
    real_mlock2(at as usize, len, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pkey_mprotect(at: usize, len: usize, protection: c_int, key: c_int) -> c_int {
    forget(at, len);
    real_pkey_mprotect(at, len, protection, key)
}
