//! The free blocks of a thread, as data. What is done with them is in `heap`.

use super::block::Free;
use super::class::SMALL;

/// Free blocks of one class.
#[derive(Clone, Copy)]
pub(crate) struct List {
    pub(crate) top: *mut Free,
    pub(crate) count: u32,
    pub(crate) limit: u32,
    /// A full stack, or null.
    pub(crate) spare: *mut Free,
}

/// The free blocks of one thread.
pub(crate) struct Heap {
    pub(crate) lists: [List; SMALL],
    /// What is left of the chunk. It has never been written: it is zero.
    pub(crate) fresh: *mut u8,
    pub(crate) end: *mut u8,
    pub(crate) chunk: usize,
    /// In the list of heaps whose threads have ended.
    pub(crate) next: *mut Heap,
}
