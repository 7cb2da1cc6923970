//! What sealing needs of an ELF file's structure: segments, sections, build-id.
//!
//! - In: the bytes of a file (`content`), and the files that hold its debug information
//!   (`debug_files`).
//! - Out: its [`Layout`] and decompressed sections.
//! - Must not know: names and lines; see `names` and `dwarf`.
//!
//! Sizes that a file claims are bounded by what it holds.

pub(crate) mod content;
pub(crate) mod debug_files;

pub use debug_files::Files;

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{CompressionFormat, Endianness, FileKind, Object, ObjectSection, ReadRef};
use std::borrow::Cow;
use std::fmt::Write;

/// Larger sections are not read.
const LARGEST: u64 = 1 << 30;

/// No compression of a section has a larger ratio: a section that claims more is invalid.
const BEST_COMPRESSION: u64 = 2_000;

/// A loadable part of a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
    executable: bool,
}

/// The loadable segments of a file, and its build-id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    segments: Vec<Segment>,
    /// In hexadecimal; empty where the file has none.
    pub(crate) build_id: String,
    /// Whether it is a 32-bit file.
    pub(crate) is_32_bit: bool,
}

impl Layout {
    /// Reads the program headers. The error is the reason, in words that follow the file's name.
    pub(crate) fn read<'d, R: ReadRef<'d>>(data: R) -> Result<Self, String> {
        match FileKind::parse(data) {
            Ok(FileKind::Elf64) => Self::of::<FileHeader64<Endianness>, R>(data),
            Ok(FileKind::Elf32) => Self::of::<FileHeader32<Endianness>, R>(data),
            _ => Err("is not an ELF file".to_owned()),
        }
    }

    fn of<'d, H: FileHeader<Endian = Endianness>, R: ReadRef<'d>>(data: R) -> Result<Self, String> {
        let broken = |error| format!("is a broken ELF file ({error})");
        let header = H::parse(data).map_err(broken)?;
        let endian = header.endian().map_err(broken)?;
        let headers = header.program_headers(endian, data).map_err(broken)?;
        let segments = headers
            .iter()
            .filter(|header| header.p_type(endian) == elf::PT_LOAD)
            .map(|header| Segment {
                offset: header.p_offset(endian).into(),
                size: header.p_filesz(endian).into(),
                address: header.p_vaddr(endian).into(),
                executable: header.p_flags(endian).contains(elf::PF_X),
            })
            .collect();
        let mut build_id = String::new();
        for header in headers {
            let Ok(Some(mut notes)) = header.notes(endian, data) else { continue };
            while let Ok(Some(note)) = notes.next() {
                if note.name() == elf::ELF_NOTE_GNU
                    && note.n_type(endian) == elf::NT_GNU_BUILD_ID
                    && build_id.is_empty()
                {
                    for byte in note.desc().iter().take(64) {
                        let _ = write!(build_id, "{byte:02x}");
                    }
                }
            }
        }
        Ok(Self { segments, build_id, is_32_bit: !header.is_type_64() })
    }

    /// The load bias (live minus file address) of a mapping of `offset` at `start`, from the segment that is mapped
    /// there: an executable segment first, since two segments may share a page of the file.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> u64 {
        const PAGE: u64 = 4096;
        let holds = |segment: &&Segment| {
            let first = segment.offset & !(PAGE - 1);
            first <= offset && offset < segment.offset.saturating_add(segment.size)
        };
        let segment = self
            .segments
            .iter()
            .filter(|segment| segment.executable)
            .find(holds)
            .or_else(|| self.segments.iter().find(holds));
        segment.map_or_else(
            || start.wrapping_sub(offset),
            |segment| {
                let address = segment.address.wrapping_add(offset).wrapping_sub(segment.offset);
                start.wrapping_sub(address)
            },
        )
    }
}

/// The bytes of a section, decompressed; none if it is absent, broken or claims too much.
pub(crate) fn section<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    name: &str,
) -> Option<Cow<'d, [u8]>> {
    let section = file.section_by_name(name)?;
    let range = section.compressed_file_range().ok()?;
    let most = match range.format {
        CompressionFormat::None => LARGEST,
        _ => LARGEST.min(range.compressed_size.saturating_mul(BEST_COMPRESSION)),
    };
    if range.uncompressed_size > most || range.compressed_size > LARGEST {
        return None;
    }
    section.uncompressed_data().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(offset: u64, size: u64, address: u64, executable: bool) -> Segment {
        Segment { offset, size, address, executable }
    }

    #[test]
    fn bias_comes_from_the_executable_segment() {
        // As lld lays out: address and offset differ, and the segments share a page.
        let layout = Layout {
            segments: vec![
                segment(0, 0x6c8, 0x20_0000, false),
                segment(0x6d0, 0x900, 0x20_16d0, true),
                segment(0xfd0, 0x100, 0x20_2fd0, false),
            ],
            build_id: String::new(),
            is_32_bit: false,
        };
        let start = 0x5555_0000_1000;
        assert_eq!(start - layout.bias(start, 0), 0x20_1000);
        // A prelinked library: addresses that begin elsewhere.
        let layout = Layout {
            segments: vec![segment(0, 0x4000, 0x3_0000_0000, true)],
            build_id: String::new(),
            is_32_bit: false,
        };
        assert_eq!(start - layout.bias(start, 0x1000), 0x3_0000_1000);
    }

    #[test]
    fn our_own_binary_has_a_layout() {
        let bytes = std::fs::read("/proc/self/exe").expect("our own binary");
        assert!(Layout::read(bytes.as_slice()).is_ok_and(|layout| !layout.segments.is_empty()));
        assert_eq!(Layout::read(&b"#!/bin/sh\n"[..]), Err("is not an ELF file".to_owned()));
    }
}
