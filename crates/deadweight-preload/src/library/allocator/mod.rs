//! The library `Allocator`: an allocator that does the least. The cost of `malloc` and `free` left out.
//!
//! - In: `malloc` and its relatives, `free`.
//! - Out: memory. A block goes on top of its thread's list when it is freed, and is the next one taken.
//! - Must not know: the program.
//!
//! What it does not keep: small memory never goes back to the kernel, and blocks never join. A program that
//! frees much of one size and then needs another size has more memory. `mallinfo`, `mallopt`, `malloc_trim` act
//! on the C library's allocator, which is idle. A second free of a block is not found. A program with an
//! allocator of its own (linked in, or by name from another library) does not use this one.

mod block;
mod class;
mod heap;
mod large;
mod lists;
mod shared;
mod thread_local;

use crate::c;
use block::{Block, HEADER};
use class::{LARGEST, LARGEST_SMALL};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

/// Called by the constructor, while there is one thread. Blocks may have been taken before.
pub(crate) unsafe fn start() {
    shared::start();
    large::start();
    heap::start();
}

/// A block, or null and `errno`.
#[cold]
#[inline(never)]
unsafe fn take_slowly(size: usize) -> Block {
    let block = if size <= LARGEST_SMALL {
        heap::take(class::of(size))
    } else if size <= LARGEST / 2 {
        large::take(size)
    } else {
        // Far below PTRDIFF_MAX, and more than any machine maps.
        Block { at: null_mut(), zero: false }
    };
    if block.at.is_null() {
        c::set_errno(c::ENOMEM);
    }
    block
}

#[inline(always)]
unsafe fn take(size: usize) -> Block {
    if size <= LARGEST_SMALL {
        let at = heap::pop(class::of(size));
        if !at.is_null() {
            return Block { at, zero: false };
        }
    }
    take_slowly(size)
}

unsafe fn no_memory() -> *mut c_void {
    c::set_errno(c::ENOMEM);
    null_mut()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    take(size).at.cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return no_memory() };
    let block = take(size);
    if !block.zero && !block.at.is_null() {
        block.at.write_bytes(0, size);
    }
    block.at.cast()
}

#[inline(always)]
unsafe fn give(at: *mut u8) {
    let Some(header) = block::header(at) else { return };
    let class = header.class_if_plain();
    if class < class::SMALL {
        heap::give(at, class);
    } else {
        give_slowly(header);
    }
}

#[cold]
#[inline(never)]
unsafe fn give_slowly(header: &block::Header) {
    let class = header.class();
    if class < class::SMALL {
        heap::give(header.base, class);
    } else {
        large::give(header.base, class);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(at: *mut c_void) {
    if !at.is_null() {
        give(at.cast());
    }
}

/// The bytes from `at` to the end of its block.
unsafe fn usable(at: *mut u8, header: &block::Header) -> usize {
    let class = header.class();
    let size = if class < class::SMALL { class::size(class) } else { large::capacity(class) };
    header.base as usize + size - at as usize
}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(at: *mut c_void) -> usize {
    if at.is_null() {
        return 0;
    }
    block::header(at.cast()).map_or(0, |header| usable(at.cast(), header))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(at: *mut c_void, size: usize) -> *mut c_void {
    if at.is_null() {
        return take(size).at.cast();
    }
    if size == 0 {
        give(at.cast());
        return null_mut();
    }
    resize(at.cast(), size)
}

unsafe fn resize(at: *mut u8, size: usize) -> *mut c_void {
    // Nothing says how long a block of another allocator is.
    let Some(header) = block::header(at) else { return no_memory() };
    let usable = usable(at, header);
    if size <= usable && (size >= usable / 2 || usable <= 256) {
        return at.cast();
    }
    let class = header.class();
    let stays_large = class >= class::SMALL && size > LARGEST_SMALL && size <= LARGEST / 2;
    if stays_large && header.base == at {
        let new = large::resize(at, class, size);
        return if new.is_null() { no_memory() } else { new.cast() };
    }
    let new = take(size).at;
    if !new.is_null() {
        new.copy_from_nonoverlapping(at, size.min(usable));
        give(at);
    }
    new.cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn reallocarray(at: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(size) => realloc(at, size),
        None => no_memory(),
    }
}

/// A block at a multiple of `align`, a power of two.
unsafe fn aligned(align: usize, size: usize) -> *mut u8 {
    if align <= HEADER {
        return take(size).at;
    }
    let Some(enough) = size.checked_add(align) else { return no_memory().cast() };
    let base = take(enough).at;
    if base.is_null() {
        return base;
    }
    let class = block::header(base).map_or(0, block::Header::class);
    let at = base.add((base as usize).wrapping_neg() & (align - 1));
    // Both are multiples of 16: there is a place for a header between them.
    if at != base {
        block::mark(at, base, class);
    }
    at
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    let Some(align) = align.checked_next_power_of_two() else {
        c::set_errno(c::EINVAL);
        return null_mut();
    };
    aligned(align, size).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    memalign(align, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(result: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return c::EINVAL;
    }
    let errno = *c::__errno_location();
    let at = aligned(align, size);
    c::set_errno(errno);
    if at.is_null() {
        return c::ENOMEM;
    }
    *result = at.cast();
    0
}

const PAGE: usize = 4096;

#[unsafe(no_mangle)]
unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(PAGE, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(PAGE) {
        Some(size) => memalign(PAGE, size),
        None => no_memory(),
    }
}
