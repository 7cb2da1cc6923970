//! Sizes of blocks, and the class that a size belongs to.
//!
//! Steps of 16 bytes up to 1024, then four steps for each doubling. Knows no memory.

/// The largest block that is cut from a chunk. Larger ones have a mapping of their own.
pub(crate) const LARGEST_SMALL: usize = 128 << 10;
/// Number of classes of small blocks.
pub(crate) const SMALL: usize = of(LARGEST_SMALL) + 1;
/// Number of all classes.
pub(crate) const ALL: usize = of(LARGEST) + 1;
/// No block is larger.
pub(crate) const LARGEST: usize = 1 << 46;

const FINE: usize = 1024;
const FINE_CLASSES: usize = FINE / 16;

/// The class whose blocks hold `size` bytes, up to `LARGEST`.
#[inline(always)]
pub(crate) const fn of(size: usize) -> usize {
    if size <= FINE {
        return size.div_ceil(16);
    }
    let last = size - 1;
    let log = last.ilog2() as usize;
    let quarter = (last >> (log - 2)) & 3;
    FINE_CLASSES + 1 + (log - 10) * 4 + quarter
}

/// The size of the blocks of a class. The empty block has a place of its own, too.
#[inline(always)]
pub(crate) const fn size(class: usize) -> usize {
    if class == 0 {
        return 16;
    }
    if class <= FINE_CLASSES {
        return class * 16;
    }
    let step = class - FINE_CLASSES - 1;
    let log = 10 + step / 4;
    (1 << log) + ((step % 4 + 1) << (log - 2))
}

/// How many free blocks of a class are handed between threads at a time.
pub(crate) const fn batch(class: usize) -> u32 {
    let count = (128 << 10) / size(class);
    if count < 4 {
        4
    } else if count > 256 {
        256
    } else {
        count as u32
    }
}
