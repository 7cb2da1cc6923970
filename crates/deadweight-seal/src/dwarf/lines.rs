//! Source lines and inlined functions of code addresses, from DWARF.
//!
//! Only the units that were hit are read. Does not name functions without debug information; see `names`.

use crate::elf;
use crate::frame::Frame;
use addr2line::{LookupContinuation, LookupResult};
use gimli::{DwarfSections, EndianSlice, RunTimeEndian};
use object::{Object, ReadRef};
use std::borrow::Cow;

/// Inlined frames per address, at most.
const DEEPEST: usize = 64;

/// The bytes of DWARF, borrowed.
pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

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

    /// The context that finds lines in them.
    pub(crate) fn context(&self) -> Result<addr2line::Context<Slice<'_>>, gimli::Error> {
        let dwarf = self
            .sections
            .borrow_with_sup(self.shared.as_ref(), |bytes| EndianSlice::new(bytes, self.endian));
        addr2line::Context::from_dwarf(dwarf)
    }
}

/// The frames at `address`, innermost first; empty where there is no debug information. Split debug information
/// (.dwo, .dwp) is not read: its file is noted in `split`.
pub(crate) fn find(
    context: &addr2line::Context<Slice<'_>>,
    address: u64,
    split: &mut Option<String>,
) -> Vec<Frame> {
    // The last address is in no unit, and the search would overflow: it adds one.
    if address == u64::MAX {
        return Vec::new();
    }
    let frames = match context.find_frames(address) {
        LookupResult::Load { load, continuation } => {
            let path = load.path.map(|path| path.to_string_lossy().into_owned());
            split.get_or_insert(path.unwrap_or_default());
            continuation.resume(None).skip_all_loads()
        }
        LookupResult::Output(frames) => frames,
    };
    let Ok(mut frames) = frames else { return Vec::new() };
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
