//! Large blocks: a mapping for each. Some are kept when they are freed.
//!
//! The kernel grows and moves them (`mremap`): their bytes are not copied.

use super::block::{self, Block, Free};
use super::class;
use crate::spin::Spin;
use crate::{c, kernel};
use core::cell::UnsafeCell;
use core::ptr::null_mut;

/// Bytes of a mapping before its block: a header, and a cache line in all.
const BEFORE: usize = 64;

struct Kept {
    lists: [*mut Free; class::ALL],
    kept: usize,
    used: usize,
}

struct Guarded(UnsafeCell<Kept>);
// SAFETY: each use is under `LOCK`.
unsafe impl Sync for Guarded {}

static LOCK: Spin = Spin::new();
static KEPT: Guarded =
    Guarded(UnsafeCell::new(Kept { lists: [null_mut(); class::ALL], kept: 0, used: 0 }));

/// Called once, while there is one thread.
pub(crate) unsafe fn start() {
    LOCK.survive_forks();
}

/// The bytes that are kept at most: a quarter of what is used.
fn limit(used: usize) -> usize {
    (used / 4).clamp(32 << 20, 256 << 20)
}

/// Bytes of the block of a mapping of `class`.
pub(crate) fn capacity(class: usize) -> usize {
    class::size(class) - BEFORE
}

/// A block of `size` bytes.
pub(crate) unsafe fn take(size: usize) -> Block {
    let class = class::of(size + BEFORE);
    let mut at: *mut u8 = null_mut();
    if LOCK.lock() {
        let kept = &mut *KEPT.0.get();
        let top = kept.lists[class];
        kept.used += class::size(class);
        if !top.is_null() {
            kept.lists[class] = (*top).next;
            kept.kept -= class::size(class);
            at = top.cast();
        }
        LOCK.unlock();
    }
    if !at.is_null() {
        return Block { at, zero: false };
    }
    let mapping = kernel::map(class::size(class));
    if mapping.is_null() {
        count_less(class);
        return Block { at: null_mut(), zero: false };
    }
    Block { at: place(mapping, class), zero: true }
}

unsafe fn count_less(class: usize) {
    if LOCK.lock() {
        let kept = &mut *KEPT.0.get();
        kept.used = kept.used.saturating_sub(class::size(class));
        LOCK.unlock();
    }
}

unsafe fn place(mapping: *mut u8, class: usize) -> *mut u8 {
    let at = mapping.add(BEFORE);
    block::mark(at, at, class);
    at
}

/// Takes a block back.
pub(crate) unsafe fn give(base: *mut u8, class: usize) {
    let len = class::size(class);
    let mut keep = false;
    if LOCK.lock() {
        let kept = &mut *KEPT.0.get();
        kept.used = kept.used.saturating_sub(len);
        keep = kept.kept + len <= limit(kept.used);
        if keep {
            let free = base.cast::<Free>();
            (*free).next = kept.lists[class];
            kept.lists[class] = free;
            kept.kept += len;
        }
        LOCK.unlock();
    }
    if !keep {
        let errno = *c::__errno_location();
        c::munmap(base.sub(BEFORE).cast(), len);
        c::set_errno(errno);
    }
}

/// The same bytes in a mapping for `size` bytes. Null if there is no memory: then nothing has changed.
pub(crate) unsafe fn resize(base: *mut u8, class: usize, size: usize) -> *mut u8 {
    let new = class::of(size + BEFORE);
    if new == class {
        return base;
    }
    let (old, len) = (base.sub(BEFORE).cast(), class::size(new));
    let mapping = c::mremap(old, class::size(class), len, c::MREMAP_MAYMOVE);
    if mapping as isize == -1 {
        return null_mut();
    }
    if LOCK.lock() {
        let kept = &mut *KEPT.0.get();
        kept.used = (kept.used + len).saturating_sub(class::size(class));
        LOCK.unlock();
    }
    place(mapping.cast(), new)
}
