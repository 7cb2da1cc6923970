//! Small blocks: lists of free ones in each thread, cut from chunks.
//!
//! - In: a class.
//! - Out: a block, with its header.
//! - Must not know: what was asked for (`mod.rs`), and large blocks.
//!
//! A list is two stacks. A full one goes to the shared batches, so that a thread that frees what another one
//! allocates gives the blocks back. Memory goes back to the kernel at the end of the process.

use super::block::{self, Block, Free, HEADER};
use super::class;
use super::lists::{Heap, List};
use super::{shared, thread_local};
use crate::{c, kernel};
use core::ffi::{c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};

const FIRST_CHUNK: usize = 256 << 10;
const LARGEST_CHUNK: usize = 8 << 20;

/// The block on top of this thread's list, or null.
#[inline(always)]
pub(crate) unsafe fn pop(class: usize) -> *mut u8 {
    let heap = thread_local::heap();
    if heap.is_null() {
        return null_mut();
    }
    let list = (&raw mut (*heap).lists).cast::<List>().add(class);
    let top = (*list).top;
    if !top.is_null() {
        (*list).top = (*top).next;
        (*list).count -= 1;
    }
    top.cast()
}

/// Puts a block on this thread's list, whichever thread it was cut in.
#[inline(always)]
pub(crate) unsafe fn give(base: *mut u8, class: usize) {
    let heap = thread_local::heap();
    if !heap.is_null() {
        let list = (&raw mut (*heap).lists).cast::<List>().add(class);
        let count = (*list).count;
        if count != (*list).limit {
            let block = base.cast::<Free>();
            (*block).next = (*list).top;
            (*list).top = block;
            (*list).count = count + 1;
            return;
        }
    }
    give_slowly(base, class);
}

#[cold]
#[inline(never)]
unsafe fn give_slowly(base: *mut u8, class: usize) {
    let heap = mine();
    if heap.is_null() {
        return;
    }
    let list = &mut (*heap).lists[class];
    if list.count == list.limit {
        if !list.spare.is_null() {
            shared::give_batch(class, list.spare);
        }
        list.spare = list.top;
        list.top = null_mut();
        list.count = 0;
    }
    let block = base.cast::<Free>();
    (*block).next = list.top;
    list.top = block;
    list.count += 1;
}

/// A block of `class` from a spare stack, the shared ones, or the chunk.
pub(crate) unsafe fn take(class: usize) -> Block {
    let heap = mine();
    if heap.is_null() {
        return Block { at: null_mut(), zero: false };
    }
    let list = &mut (*heap).lists[class];
    // An inherited heap may have some.
    if list.top.is_null() {
        let full = if list.spare.is_null() { shared::take_batch(class) } else { list.spare };
        list.spare = null_mut();
        if full.is_null() {
            return cut(&mut *heap, class);
        }
        list.top = full;
        list.count = list.limit;
    }
    let top = list.top;
    list.top = (*top).next;
    list.count -= 1;
    Block { at: top.cast(), zero: false }
}

unsafe fn cut(heap: &mut Heap, class: usize) -> Block {
    let len = HEADER + class::size(class);
    if (heap.end as usize) - (heap.fresh as usize) < len {
        let size = heap.chunk.max(FIRST_CHUNK);
        let chunk = kernel::map(size);
        if chunk.is_null() {
            return Block { at: null_mut(), zero: false };
        }
        heap.fresh = chunk;
        heap.end = chunk.add(size);
        heap.chunk = (size * 2).min(LARGEST_CHUNK);
    }
    let at = heap.fresh.add(HEADER);
    heap.fresh = heap.fresh.add(len);
    block::mark(at, at, class);
    Block { at, zero: true }
}

/// This thread's heap; the first time one of a thread that has ended, or a new one.
unsafe fn mine() -> *mut Heap {
    let heap = thread_local::heap();
    if !heap.is_null() {
        return heap;
    }
    let mut heap = shared::take_heap();
    if heap.is_null() {
        heap = kernel::map(size_of::<Heap>().next_multiple_of(4096)).cast();
        if heap.is_null() {
            return heap;
        }
        for (class, list) in (*heap).lists.iter_mut().enumerate() {
            list.limit = class::batch(class);
        }
    }
    thread_local::set_heap(heap);
    announce(heap);
    heap
}

/// The key whose destructor runs when a thread ends, plus one. 0: there is none yet.
static KEY: AtomicU32 = AtomicU32::new(0);

// A glibc before 2.34 has them in libpthread. A program without it has one thread.
core::arch::global_asm!(".weak pthread_key_create", ".weak pthread_setspecific");

/// Makes the key. Called once, while there is one thread.
pub(crate) unsafe fn start() {
    let there: usize;
    core::arch::asm!(
        "mov {}, qword ptr [rip + pthread_key_create@GOTPCREL]",
        out(reg) there,
        options(nostack, preserves_flags, readonly)
    );
    if there == 0 {
        return;
    }
    let mut key: c_uint = 0;
    if c::pthread_key_create(&raw mut key, ended) == 0 {
        KEY.store(key + 1, Ordering::Release);
    }
}

/// It may allocate: the heap is in place by then.
unsafe fn announce(heap: *mut Heap) {
    let key = KEY.load(Ordering::Acquire);
    if key != 0 {
        let errno = *c::__errno_location();
        c::pthread_setspecific(key - 1, heap.cast());
        c::set_errno(errno);
    }
}

/// The thread ends: another one gets its heap. What it still frees makes it take a heap again, and glibc calls
/// this again.
unsafe extern "C" fn ended(heap: *mut c_void) {
    thread_local::set_heap(null_mut());
    shared::give_heap(heap.cast());
}
