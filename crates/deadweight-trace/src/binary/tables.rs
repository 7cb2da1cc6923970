//! Entries of the symbol tables as bytes: new ones when first used, and once more after sealing.
//!
//! A block is a list of sections: table, first id, number of entries, entries. An entry with an existing id replaces the
//! old one: so sealing fills in what was only an address during recording. Not for events.

use crate::Kind;
use crate::encoded::bytes::{Bytes, put, put_str};
use crate::ids::{ImageId, LocationId, NameId};
use crate::symbols::{FunctionCode, Image, Location, SourceFrame, Symbols};
use crate::units::FileAddr;

/// A block of tables is ended when it has grown to this.
const BLOCK: usize = 1 << 18;

/// A table's number in the file.
mod table {
    pub(super) const NAMES: u8 = 0;
    pub(super) const IMAGES: u8 = 1;
    pub(super) const LOCATIONS: u8 = 2;
    pub(super) const STACKS: u8 = 3;
    pub(super) const SOURCE: u8 = 4;
    pub(super) const CODE: u8 = 5;
    pub(super) const VALUES: u8 = 6;
}

/// How much of the tables was written already.
#[derive(Clone, Debug)]
pub(super) struct Written {
    names: usize,
    images: Vec<Image>,
    locations: usize,
    /// Locations that had no frames when they were written.
    bare: Vec<LocationId>,
    stacks: usize,
}

impl Default for Written {
    /// Entries that every trace has are not written.
    fn default() -> Self {
        Self { names: 1, images: Vec::new(), locations: 1, bare: Vec::new(), stacks: 1 }
    }
}

impl Written {
    /// The contents of blocks with the entries that are new.
    pub(super) fn new_entries(&mut self, symbols: &Symbols) -> Vec<Vec<u8>> {
        let mut blocks = Sections::default();
        for (id, name) in symbols.names.iter().enumerate().skip(self.names) {
            blocks.entry(table::NAMES, id, |out| put_str(out, name));
        }
        for (id, image) in symbols.images.iter().enumerate().skip(self.images.len()) {
            blocks.entry(table::IMAGES, id, |out| put_image(out, image));
        }
        for (id, location) in symbols.locations.iter().enumerate().skip(self.locations) {
            if location.frames.is_empty() {
                self.bare.push(LocationId::at(id));
            }
            blocks.entry(table::LOCATIONS, id, |out| put_location(out, location));
        }
        for (id, stack) in symbols.stacks.iter().enumerate().skip(self.stacks) {
            blocks.entry(table::STACKS, id, |out| {
                put(out, stack.len() as u64);
                stack.iter().for_each(|l| put(out, l.0.into()));
            });
        }
        self.names = symbols.names.len();
        let from = self.images.len();
        self.images.extend(symbols.images.iter().skip(from).cloned());
        self.locations = symbols.locations.len();
        self.stacks = symbols.stacks.len();
        blocks.finish()
    }

    /// The contents of blocks with the entries that have gained meaning since they were written.
    pub(super) fn sealed_entries(&mut self, symbols: &Symbols) -> Vec<Vec<u8>> {
        let mut blocks = Sections::default();
        for (id, image) in symbols.images.iter().enumerate() {
            if self.images.get(id) != Some(image) {
                blocks.entry(table::IMAGES, id, |out| put_image(out, image));
            }
        }
        for id in self.bare.drain(..) {
            let location = symbols.locations.get(id.index());
            if let Some(location) = location.filter(|l| !l.frames.is_empty()) {
                blocks.entry(table::LOCATIONS, id.index(), |out| put_location(out, location));
            }
        }
        self.images.clone_from(&symbols.images);
        for (at, ((file, line), text)) in symbols.source.iter().enumerate() {
            blocks.entry(table::SOURCE, at, |out| {
                [file.0, *line, text.0].iter().for_each(|number| put(out, (*number).into()));
            });
        }
        for (at, ((function, bytes), name)) in symbols.values.iter().enumerate() {
            blocks.entry(table::VALUES, at, |out| {
                [function.0, *bytes, name.0].iter().for_each(|number| put(out, (*number).into()));
            });
        }
        for (at, code) in symbols.code.iter().enumerate() {
            blocks.entry(table::CODE, at, |out| put_code(out, code));
        }
        blocks.finish()
    }
}

/// Entries gathered into sections, sections into blocks.
#[derive(Default)]
struct Sections {
    blocks: Vec<Vec<u8>>,
    block: Vec<u8>,
    section: Vec<u8>,
    table: u8,
    first: usize,
    count: usize,
}

impl Sections {
    fn entry(&mut self, table: u8, id: usize, put_entry: impl FnOnce(&mut Vec<u8>)) {
        if (table, id) != (self.table, self.first + self.count) || self.section.len() >= BLOCK {
            self.end_section();
            (self.table, self.first) = (table, id);
        }
        self.count += 1;
        put_entry(&mut self.section);
    }

    fn end_section(&mut self) {
        if self.count > 0 {
            self.block.push(self.table);
            put(&mut self.block, self.first as u64);
            put(&mut self.block, self.count as u64);
            self.block.append(&mut self.section);
        }
        self.count = 0;
        if self.block.len() >= BLOCK {
            self.blocks.push(std::mem::take(&mut self.block));
        }
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        self.end_section();
        if !self.block.is_empty() {
            self.blocks.push(self.block);
        }
        self.blocks
    }
}

fn put_image(out: &mut Vec<u8>, image: &Image) {
    for name in [image.path, image.build_id, image.language, image.producer] {
        put(out, name.0.into());
    }
    let optimised = match image.optimised {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    };
    out.push(optimised | u8::from(image.has_symbols) << 2 | u8::from(image.has_lines) << 3);
}

fn put_location(out: &mut Vec<u8>, location: &Location) {
    put(out, location.image.0.into());
    put(out, location.addr.0);
    put(out, location.frames.len() as u64);
    for frame in &location.frames {
        put(out, frame.function.0.into());
        put(out, frame.file.0.into());
        put(out, frame.line.into());
    }
}

fn put_code(out: &mut Vec<u8>, code: &FunctionCode) {
    put(out, code.image.0.into());
    put(out, code.addr.0);
    put(out, code.name.0.into());
    put(out, code.bytes.len() as u64);
    out.extend_from_slice(&code.bytes);
    put(out, code.targets.len() as u64);
    for (addr, name) in &code.targets {
        put(out, addr.0);
        put(out, name.0.into());
    }
}

/// Reads a block's entries into `symbols`. A gap before an id is filled with empty entries, at
/// most `gap` of them in all: entries of blocks that were lost.
pub(super) fn read(content: &[u8], symbols: &mut Symbols, gap: &mut usize) -> Option<()> {
    let mut bytes = Bytes(content);
    while !bytes.is_empty() {
        let table = bytes.byte()?;
        let first: usize = bytes.small()?;
        let count: usize = bytes.small()?;
        // An entry takes at least a byte: so memory is bounded by the content.
        if count > bytes.0.len() {
            return None;
        }
        for id in first..first.checked_add(count)? {
            match table {
                table::NAMES => {
                    let name = bytes.str()?.to_owned();
                    set(&mut symbols.names, id, name, gap)?;
                }
                table::IMAGES => set(&mut symbols.images, id, image(&mut bytes)?, gap)?,
                table::LOCATIONS => set(&mut symbols.locations, id, location(&mut bytes)?, gap)?,
                table::STACKS => set(&mut symbols.stacks, id, stack(&mut bytes)?, gap)?,
                table::SOURCE => {
                    let line = (NameId(bytes.small()?), bytes.small()?);
                    symbols.source.insert(line, NameId(bytes.small()?));
                }
                table::VALUES => {
                    let value = (NameId(bytes.small()?), bytes.small()?);
                    symbols.values.insert(value, NameId(bytes.small()?));
                }
                table::CODE => set(&mut symbols.code, id, code(&mut bytes)?, gap)?,
                _ => return None,
            }
        }
    }
    Some(())
}

fn set<T: Default>(table: &mut Vec<T>, id: usize, entry: T, gap: &mut usize) -> Option<()> {
    u32::try_from(id).ok()?;
    if let Some(old) = table.get_mut(id) {
        *old = entry;
        return Some(());
    }
    *gap = gap.checked_sub(id - table.len())?;
    table.resize_with(id, T::default);
    table.push(entry);
    Some(())
}

fn image(bytes: &mut Bytes<'_>) -> Option<Image> {
    let path = NameId(bytes.small()?);
    let build_id = NameId(bytes.small()?);
    let language = NameId(bytes.small()?);
    let producer = NameId(bytes.small()?);
    let flags = bytes.byte()?;
    Some(Image {
        path,
        build_id,
        language,
        producer,
        optimised: match flags & 3 {
            1 => Some(false),
            2 => Some(true),
            _ => None,
        },
        has_symbols: flags & 4 != 0,
        has_lines: flags & 8 != 0,
    })
}

fn location(bytes: &mut Bytes<'_>) -> Option<Location> {
    let image = ImageId(bytes.small()?);
    let addr = FileAddr(bytes.number()?);
    let count: usize = bytes.small()?;
    let mut frames = Vec::new();
    for _ in 0..count {
        let function = NameId(bytes.small()?);
        let file = NameId(bytes.small()?);
        frames.push(SourceFrame { function, file, line: bytes.small()? });
    }
    Some(Location { image, addr, frames })
}

fn code(bytes: &mut Bytes<'_>) -> Option<FunctionCode> {
    let image = ImageId(bytes.small()?);
    let addr = FileAddr(bytes.number()?);
    let name = NameId(bytes.small()?);
    let len: usize = bytes.small()?;
    let content = bytes.take(len)?.to_vec();
    let count: usize = bytes.small()?;
    let mut targets = Vec::new();
    for _ in 0..count {
        targets.push((FileAddr(bytes.number()?), NameId(bytes.small()?)));
    }
    Some(FunctionCode { image, addr, name, bytes: content, targets })
}

fn stack(bytes: &mut Bytes<'_>) -> Option<Vec<LocationId>> {
    let count: usize = bytes.small()?;
    let mut stack = Vec::new();
    for _ in 0..count {
        stack.push(LocationId(bytes.small()?));
    }
    Some(stack)
}

/// How much of each table the events refer to: one more than the greatest id.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Used {
    names: u32,
    images: u32,
    locations: u32,
    stacks: u32,
}

impl Used {
    /// Notes the ids in `kind`.
    pub(super) fn note(&mut self, kind: &Kind) {
        let most = |used: &mut u32, id: u32| *used = (*used).max(id.saturating_add(1));
        match *kind {
            Kind::Exec { path: name, .. } | Kind::Comm(name) | Kind::Fd { what: name, .. } => {
                most(&mut self.names, name.0);
            }
            Kind::Off { stack, .. } | Kind::Wake { stack, .. } | Kind::Site(stack) => {
                most(&mut self.stacks, stack.0);
            }
            Kind::Sample { stack, kernel_stack, .. } => {
                most(&mut self.stacks, stack.0.max(kernel_stack.0));
            }
            Kind::Fault { by, .. } => most(&mut self.locations, by.0),
            Kind::Map { image, .. } => most(&mut self.images, image.0),
            Kind::Probe { probe, stack, .. } => {
                most(&mut self.names, probe.0);
                most(&mut self.stacks, stack.0);
            }
            Kind::Fork { .. }
            | Kind::Exit
            | Kind::On
            | Kind::Syscall { .. }
            | Kind::Back { .. }
            | Kind::Calls { .. }
            | Kind::FaultEnd { .. }
            | Kind::Timer
            | Kind::TimerEnd
            | Kind::Main
            | Kind::Page { .. }
            | Kind::Registers { .. }
            | Kind::Lost { .. } => {}
        }
    }

    /// As much of each table as either of both.
    pub(super) fn joined(self, other: Self) -> Self {
        Self {
            names: self.names.max(other.names),
            images: self.images.max(other.images),
            locations: self.locations.max(other.locations),
            stacks: self.stacks.max(other.stacks),
        }
    }

    /// How many entries the tables lack.
    pub(super) fn beyond(&self, symbols: &Symbols) -> usize {
        let lack = |used: u32, table: usize| (used as usize).saturating_sub(table);
        lack(self.names, symbols.names.len())
            .saturating_add(lack(self.images, symbols.images.len()))
            .saturating_add(lack(self.locations, symbols.locations.len()))
            .saturating_add(lack(self.stacks, symbols.stacks.len()))
    }
}

/// After the last block: gives every id that is referred to an entry, if only an empty one.
pub(super) fn complete(symbols: &mut Symbols, used: &Used) {
    fn pad<T: Default>(table: &mut Vec<T>, used: u32) {
        if table.len() < used as usize {
            table.resize_with(used as usize, T::default);
        }
    }
    pad(&mut symbols.names, used.names);
    pad(&mut symbols.images, used.images);
    pad(&mut symbols.locations, used.locations);
    pad(&mut symbols.stacks, used.stacks);
    let known = |id: NameId| if id.index() < symbols.names.len() { id } else { NameId(0) };
    for image in &mut symbols.images {
        for name in [&mut image.path, &mut image.build_id, &mut image.language, &mut image.producer]
        {
            *name = known(*name);
        }
    }
    for location in &mut symbols.locations {
        if location.image.index() >= symbols.images.len() {
            location.image = ImageId(0);
        }
        for frame in &mut location.frames {
            (frame.function, frame.file) = (known(frame.function), known(frame.file));
        }
    }
    for code in &mut symbols.code {
        code.name = known(code.name);
        code.targets.retain(|(_, name)| known(*name) == *name);
        code.targets.sort_unstable();
        if code.image.index() >= symbols.images.len() {
            code.bytes.clear();
        }
    }
    // Empty ones stand for blocks that were lost.
    symbols.code.retain(|code| !code.bytes.is_empty());
    symbols.code.sort_by_key(|code| (code.image, code.addr));
    symbols.source.retain(|(file, _), text| known(*file) == *file && known(*text) == *text);
    symbols.values.retain(|(of, _), name| known(*of) == *of && known(*name) == *name);
    for location in symbols.stacks.iter_mut().flatten() {
        if location.index() >= symbols.locations.len() {
            *location = LocationId(0);
        }
    }
    symbols.index_names();
}
