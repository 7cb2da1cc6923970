//! What threads hand to each other: full stacks of free blocks, and the heaps of threads that have ended.

use super::block::Free;
use super::class::SMALL;
use super::lists::Heap;
use crate::spin::Spin;
use core::cell::UnsafeCell;
use core::ptr::null_mut;

/// The first block of a stack that is full.
#[repr(C)]
struct Batch {
    first: Free,
    next: *mut Batch,
}

struct Shared {
    batches: [*mut Batch; SMALL],
    heaps: *mut Heap,
}

struct Guarded(UnsafeCell<Shared>);
// SAFETY: each use is under `LOCK`.
unsafe impl Sync for Guarded {}

static LOCK: Spin = Spin::new();
static SHARED: Guarded =
    Guarded(UnsafeCell::new(Shared { batches: [null_mut(); SMALL], heaps: null_mut() }));

/// Called once, while there is one thread.
pub(crate) unsafe fn start() {
    LOCK.survive_forks();
}

unsafe fn under_lock<T>(otherwise: T, work: impl FnOnce(&mut Shared) -> T) -> T {
    if !LOCK.lock() {
        return otherwise;
    }
    let result = work(&mut *SHARED.0.get());
    LOCK.unlock();
    result
}

/// Hands over a full stack. A block has 16 bytes at least: there is a place for the second word.
pub(crate) unsafe fn give_batch(class: usize, full: *mut Free) {
    let batch = full.cast::<Batch>();
    under_lock((), |shared| {
        (*batch).next = shared.batches[class];
        shared.batches[class] = batch;
    });
}

/// A full stack, or null.
pub(crate) unsafe fn take_batch(class: usize) -> *mut Free {
    under_lock(null_mut(), |shared| {
        let batch = shared.batches[class];
        if !batch.is_null() {
            shared.batches[class] = (*batch).next;
        }
        batch.cast()
    })
}

/// Hands over the heap of a thread that ends.
pub(crate) unsafe fn give_heap(heap: *mut Heap) {
    under_lock((), |shared| {
        (*heap).next = shared.heaps;
        shared.heaps = heap;
    });
}

/// The heap of a thread that has ended, or null.
pub(crate) unsafe fn take_heap() -> *mut Heap {
    under_lock(null_mut(), |shared| {
        let heap = shared.heaps;
        if !heap.is_null() {
            shared.heaps = (*heap).next;
        }
        heap
    })
}
