//! The bytes of a file, read on demand and kept while the file is in use.
//!
//! Not mapped into memory: a file that shrinks meanwhile is then an error, not a signal. Not `object`'s own cache,
//! which allocates every string of a symbol table separately: a large library has a million.

use object::ReadRef;
use std::cell::{Cell, OnceCell, RefCell};
use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes are read in pieces of this size, aligned to it, unless a larger range is requested.
const PIECE: u64 = 1 << 18;

/// Longer strings are invalid.
const LONGEST_STRING: u64 = 1 << 16;

/// A source of bytes.
pub(crate) trait Readable: Read + Seek {}
impl<T: Read + Seek> Readable for T {}

/// A file's bytes. What was read stays until this is dropped.
pub(crate) struct Content<'a> {
    source: RefCell<Box<dyn Readable + 'a>>,
    len: u64,
    pieces: Vec<OnceCell<Option<Box<[u8]>>>>,
    ranges: Ranges,
    /// How many bytes may still be kept in ranges: sections of a broken file may overlap.
    budget: Cell<u64>,
}

/// Larger ranges that were read, each by its requested offset and size.
#[derive(Default)]
struct Ranges(OnceCell<Box<Kept>>);

struct Kept {
    offset: u64,
    bytes: Box<[u8]>,
    next: Ranges,
}

impl Drop for Ranges {
    /// Iterative: a recursive drop of the list could overflow the stack.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut kept) = next {
            next = kept.next.0.take();
        }
    }
}

impl<'a> Content<'a> {
    /// The bytes of `source`, of which there are `len`.
    pub(crate) fn new(source: impl Readable + 'a, len: u64) -> Self {
        let count = usize::try_from(len.div_ceil(PIECE)).unwrap_or_default();
        let mut pieces = Vec::new();
        pieces.resize_with(count, OnceCell::new);
        let budget = Cell::new(len.saturating_mul(2).saturating_add(PIECE));
        let source = RefCell::new(Box::new(source) as Box<dyn Readable>);
        Self { source, len, pieces, ranges: Ranges::default(), budget }
    }

    /// Opens a regular file; none if `path` names something else or cannot be opened.
    pub(crate) fn open(path: &Path) -> Option<(Self, Metadata)> {
        let metadata = regular_file(path)?;
        Some((Self::new(File::open(path).ok()?, metadata.len()), metadata))
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> u64 {
        self.len
    }

    fn read(&self, offset: u64, size: u64) -> Option<Box<[u8]>> {
        let mut source = self.source.try_borrow_mut().ok()?;
        source.seek(SeekFrom::Start(offset)).ok()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(size).ok()?).ok()?;
        source.by_ref().take(size).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 == size).then(|| bytes.into_boxed_slice())
    }

    /// From `offset` to the end of the piece that it lies in.
    fn in_piece(&self, offset: u64) -> Option<&[u8]> {
        let number = usize::try_from(offset / PIECE).ok()?;
        let start = offset / PIECE * PIECE;
        let piece = self
            .pieces
            .get(number)?
            .get_or_init(|| self.read(start, PIECE.min(self.len - start)))
            .as_deref()?;
        piece.get(usize::try_from(offset - start).ok()?..)
    }

    fn in_range(&self, offset: u64, size: u64) -> Option<&[u8]> {
        let mut ranges = &self.ranges;
        while let Some(kept) = ranges.0.get() {
            if kept.offset == offset && kept.bytes.len() as u64 == size {
                return Some(&kept.bytes);
            }
            ranges = &kept.next;
        }
        self.budget.set(self.budget.get().checked_sub(size)?);
        let bytes = self.read(offset, size)?;
        let kept = Box::new(Kept { offset, bytes, next: Ranges::default() });
        Some(&ranges.0.get_or_init(|| kept).bytes)
    }
}

/// The metadata of a regular file. To be checked before a file is opened: opening something else (a pipe, a device)
/// may block or have effects.
pub(crate) fn regular_file(path: &Path) -> Option<Metadata> {
    fs::metadata(path).ok().filter(Metadata::is_file)
}

impl<'c> ReadRef<'c> for &'c Content<'_> {
    fn len(self) -> Result<u64, ()> {
        Ok(self.len)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'c [u8], ()> {
        if size == 0 {
            return Ok(&[]);
        }
        if offset.checked_add(size).is_none_or(|end| end > self.len) {
            return Err(());
        }
        let within = usize::try_from(size).map_err(|_| ())?;
        if offset % PIECE + size <= PIECE {
            return self.in_piece(offset).and_then(|bytes| bytes.get(..within)).ok_or(());
        }
        self.in_range(offset, size).ok_or(())
    }

    fn read_bytes_at_until(
        self,
        range: std::ops::Range<u64>,
        delimiter: u8,
    ) -> Result<&'c [u8], ()> {
        let end = range.end.min(self.len).min(range.start.saturating_add(LONGEST_STRING));
        let most = usize::try_from(end.checked_sub(range.start).ok_or(())?).map_err(|_| ())?;
        let until = |bytes: &'c [u8]| {
            let bytes = &bytes[..bytes.len().min(most)];
            bytes.iter().position(|byte| *byte == delimiter).map(|at| &bytes[..at])
        };
        self.in_piece(range.start)
            .and_then(until)
            // It may continue in the next piece.
            .or_else(|| self.in_range(range.start, end - range.start).and_then(until))
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn reads_are_the_files_bytes_wherever_pieces_end() {
        let mut bytes: Vec<u8> = (1..=251).cycle().take(3 * 262_144 + 100).collect();
        let end = usize::try_from(PIECE).expect("it is small");
        bytes[end + 3] = 0;
        let content = Content::new(Cursor::new(&bytes), bytes.len() as u64);
        let content = &content;
        for (offset, size) in [(0, 10), (PIECE - 5, 10), (3 * PIECE, 100), (7, 2 * PIECE)] {
            let whole = &bytes[usize::try_from(offset).expect("it is small")..];
            let len = usize::try_from(size).expect("it is small");
            assert_eq!(content.read_bytes_at(offset, size), Ok(&whole[..len]));
        }
        assert_eq!(content.read_bytes_at(3 * PIECE, 101), Err(()));
        assert_eq!(content.read_bytes_at(u64::MAX, 2), Err(()));
        let string = content.read_bytes_at_until(PIECE - 4..bytes.len() as u64, 0);
        assert_eq!(string, Ok(&bytes[end - 4..end + 3]));
        assert_eq!(content.read_bytes_at_until(2 * PIECE..3 * PIECE, 0), Err(()));
    }

    #[test]
    fn a_file_that_shrank_is_an_error() {
        let content = Content::new(Cursor::new(vec![1; 10]), 1_000);
        assert_eq!((&content).read_bytes_at(0, 20), Err(()));
    }
}
