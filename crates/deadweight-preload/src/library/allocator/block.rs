//! The 16 bytes before each block.
//!
//! A block that was asked for at a coarser alignment has a second header inside the block that was cut.

/// What lies before a block.
#[repr(C)]
pub(crate) struct Header {
    /// The block as it was cut.
    pub(crate) base: *mut u8,
    /// Its class; `INSIDE` is added if the block begins inside it.
    class: u32,
    magic: u32,
}

/// Bytes of a header.
pub(crate) const HEADER: usize = 16;
const INSIDE: u32 = 1 << 31;
const MAGIC: u32 = 0xD3AD_3317;

impl Header {
    /// The class of the block as it was cut.
    #[inline(always)]
    pub(crate) fn class(&self) -> usize {
        (self.class & !INSIDE) as usize
    }

    /// The class if the block is as it was cut, and a very large number otherwise. The way of most blocks: the
    /// address of the block is not waited for.
    #[inline(always)]
    pub(crate) fn class_if_plain(&self) -> usize {
        self.class as usize
    }
}

/// Writes the header of `block`, which begins at `base` or inside it.
#[inline(always)]
pub(crate) unsafe fn mark(block: *mut u8, base: *mut u8, class: usize) {
    let class = class as u32 | if block == base { 0 } else { INSIDE };
    block.sub(HEADER).cast::<Header>().write(Header { base, class, magic: MAGIC });
}

/// The header of a block, unless another allocator cut it (the dynamic linker's own, before this one was there).
#[inline(always)]
pub(crate) unsafe fn header(block: *mut u8) -> Option<&'static Header> {
    let header = &*block.sub(HEADER).cast::<Header>();
    if header.magic == MAGIC { Some(header) } else { None }
}

/// A free block: it holds the list that it is in.
#[repr(C)]
pub(crate) struct Free {
    /// The next block.
    pub(crate) next: *mut Free,
}

/// A block, and whether all of it is zero. Null if there is no memory.
pub(crate) struct Block {
    pub(crate) at: *mut u8,
    pub(crate) zero: bool,
}
