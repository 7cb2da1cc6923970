//! Names and lines of Go functions from `.gopclntab`, which the Go runtime needs: a stripped binary still has it.
//!
//! Layouts of Go 1.18 and later. Does not read inlined functions: DWARF, where it exists, is better.

use super::varint;
use crate::elf;
use crate::frame::Frame;
use object::{Object, ObjectSection, ReadRef};
use std::borrow::Cow;

/// Magic numbers of Go 1.18 and 1.20. Both have the same layout in the fields that are read here.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];

/// The table, with its parts found.
pub(crate) struct Table<'d> {
    bytes: Cow<'d, [u8]>,
    text: u64,
    quantum: u64,
    functions: usize,
    names: usize,
    units: usize,
    files: usize,
    values: usize,
    entries: usize,
}

impl<'d> Table<'d> {
    /// Finds the table in a file.
    pub(crate) fn read<R: ReadRef<'d>>(file: &object::File<'d, R>) -> Option<Self> {
        let bytes = elf::section(file, ".gopclntab")
            .or_else(|| elf::section(file, ".data.rel.ro.gopclntab"))?;
        let text = file.section_by_name(".text")?.address();
        Self::parse(bytes, text)
    }

    /// `text` is where the code begins, if the table leaves the address to a relocation.
    fn parse(bytes: Cow<'d, [u8]>, text: u64) -> Option<Self> {
        if !MAGIC.contains(&u32_at(&bytes, 0)?) || bytes.get(7) != Some(&8) {
            return None;
        }
        let quantum = u64::from(*bytes.get(6)?);
        let word = |number: usize| u64_at(&bytes, 8 + number * 8);
        let place = |number: usize| word(number).and_then(|value| usize::try_from(value).ok());
        let text = word(2).filter(|start| *start != 0).unwrap_or(text);
        let (functions, names, units) = (place(0)?, place(3)?, place(4)?);
        let (files, values, entries) = (place(5)?, place(6)?, place(7)?);
        // Each function takes at least eight bytes.
        let functions = functions.min(bytes.len() / 8);
        Some(Self { bytes, text, quantum, functions, names, units, files, values, entries })
    }

    /// The function at `address`, with its line.
    pub(crate) fn find(&self, address: u64) -> Option<Frame> {
        let offset = u32::try_from(address.checked_sub(self.text)?).ok()?;
        let number = self.last_before(offset)?;
        let at = self.entry(number, 4).and_then(|at| self.entries.checked_add(at))?;
        let field = |place: usize| {
            u32_at(&self.bytes, at.checked_add(place)?).and_then(|v| usize::try_from(v).ok())
        };
        let start = u32_at(&self.bytes, at)?;
        let into = u64::from(offset.checked_sub(start)?);
        let function = self.text_at(self.names.checked_add(field(4)?)?)?;
        let line = self.value(field(24)?, into).and_then(|line| u32::try_from(line).ok());
        let file = self.value(field(20)?, into).and_then(|number| {
            let unit = field(32)?.checked_add(usize::try_from(number).ok()?)?;
            let place = self.units.checked_add(unit.checked_mul(4)?)?;
            let place = usize::try_from(u32_at(&self.bytes, place)?).ok()?;
            self.text_at(self.files.checked_add(place)?)
        });
        Some(Frame { function, file: file.unwrap_or_default(), line: line.unwrap_or_default() })
    }

    /// First address and end of each function.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (u64, u64)> {
        let edge = |number| u64::try_from(self.entry(number, 0)?).ok()?.checked_add(self.text);
        (0..self.functions).map_while(move |number| Some((edge(number)?, edge(number + 1)?)))
    }

    /// First address and end of the function at `address`.
    pub(crate) fn bounds(&self, address: u64) -> Option<(u64, u64)> {
        let offset = u32::try_from(address.checked_sub(self.text)?).ok()?;
        let number = self.last_before(offset)?;
        let edge = |number| u64::try_from(self.entry(number, 0)?).ok()?.checked_add(self.text);
        Some((edge(number)?, edge(number + 1)?))
    }

    /// First address of the function with this name.
    pub(crate) fn start_of(&self, name: &str) -> Option<u64> {
        (0..self.functions).find_map(|number| {
            let at = self.entries.checked_add(self.entry(number, 4)?)?;
            let place = usize::try_from(u32_at(&self.bytes, at.checked_add(4)?)?).ok()?;
            let rest =
                self.bytes.get(self.names.checked_add(place)?..)?.strip_prefix(name.as_bytes())?;
            let start = u64::try_from(self.entry(number, 0)?).ok()?.checked_add(self.text);
            start.filter(|_| rest.first() == Some(&0))
        })
    }

    /// A word of an entry of the function table: the function's start, or the offset of its description.
    fn entry(&self, number: usize, word: usize) -> Option<usize> {
        let at = self.entries.checked_add(number.checked_mul(8)?)?.checked_add(word)?;
        usize::try_from(u32_at(&self.bytes, at)?).ok()
    }

    /// The last function that starts at or before `offset`; none after the end of the last function.
    fn last_before(&self, offset: u32) -> Option<usize> {
        let offset = usize::try_from(offset).ok()?;
        let (mut low, mut high) = (0, self.functions);
        if offset >= self.entry(self.functions, 0)? {
            return None;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle, 0)? <= offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// The value at `into` bytes of code, from a table of (value, length) differences.
    fn value(&self, table: usize, into: u64) -> Option<i64> {
        let mut rest = self.bytes.get(self.values.checked_add(table)?..)?;
        let (mut value, mut covered, mut first) = (-1_i64, 0_u64, true);
        loop {
            let step = varint(&mut rest)?;
            if step == 0 && !first {
                return None;
            }
            first = false;
            // Zigzag: the lowest bit is the sign.
            let magnitude = i64::from(step >> 1);
            value = value.checked_add(if step & 1 == 0 { magnitude } else { !magnitude })?;
            covered = covered.checked_add(u64::from(varint(&mut rest)?) * self.quantum)?;
            if into < covered {
                return Some(value);
            }
        }
    }

    fn text_at(&self, at: usize) -> Option<String> {
        const LONGEST: usize = 4_000;
        let rest = self.bytes.get(at..)?;
        let end = rest.iter().take(LONGEST).position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}
