//! Source lines and inlined functions of code addresses, from DWARF.
//!
//! Only the units that were hit are read. Does not name functions without debug information; see `names`.

use super::Slice;
use super::split::Split;
use crate::elf;
use crate::frame::Frame;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian};
use object::{Object, ReadRef};
use std::borrow::Cow;

/// Inlined frames per address, at most.
const DEEPEST: usize = 64;

/// The DWARF sections of a file, read and decompressed.
pub(crate) struct Sections<'d> {
    sections: DwarfSections<Cow<'d, [u8]>>,
    /// Sections of the supplementary file (`dwz -m`).
    shared: Option<DwarfSections<Cow<'d, [u8]>>>,
    endian: RunTimeEndian,
}

impl<'d> Sections<'d> {
    /// Reads the sections; none if the file has no debug information.
    pub(crate) fn read<R: ReadRef<'d>>(
        file: &object::File<'d, R>,
        shared: Option<&object::File<'d, R>>,
    ) -> Option<Self> {
        elf::section(file, ".debug_info").filter(|bytes| !bytes.is_empty())?;
        let endian = match file.endianness() {
            object::Endianness::Little => RunTimeEndian::Little,
            object::Endianness::Big => RunTimeEndian::Big,
        };
        let load = |file: &object::File<'d, R>| {
            DwarfSections::load(|id| {
                Ok::<_, gimli::Error>(elf::section(file, id.name()).unwrap_or_default())
            })
        };
        let shared = shared.and_then(|shared| load(shared).ok());
        Some(Self { sections: load(file).ok()?, shared, endian })
    }

    /// The order of the bytes of numbers.
    pub(crate) fn endian(&self) -> RunTimeEndian {
        self.endian
    }

    /// The context that finds lines in them.
    pub(crate) fn context(&self) -> Result<addr2line::Context<Slice<'_>>, gimli::Error> {
        let dwarf = self
            .sections
            .borrow_with_sup(self.shared.as_ref(), |bytes| EndianSlice::new(bytes, self.endian));
        addr2line::Context::from_dwarf(dwarf)
    }
}

/// The frames at `address`, innermost first; empty where there is no debug information. Without its part of split debug
/// information, the innermost is the function of the machine code.
pub(crate) fn find<'s>(
    context: &addr2line::Context<Slice<'s>>,
    address: u64,
    split: &'s Split,
) -> Vec<Frame> {
    // The last address is in no unit, and the search would overflow: it adds one.
    if address == u64::MAX {
        return Vec::new();
    }
    let Ok(mut frames) = split.complete(context.find_frames(address)) else { return Vec::new() };
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next()
        && found.len() < DEEPEST
    {
        let function = frame.function.as_ref().and_then(|function| function.raw_name().ok());
        let (file, line) = frame.location.map_or((None, None), |at| (at.file, at.line));
        found.push(Frame {
            function: function.map(Cow::into_owned).unwrap_or_default(),
            file: file.unwrap_or_default().to_owned(),
            line: line.unwrap_or_default(),
        });
    }
    found
}
