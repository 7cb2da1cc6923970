//! The mappings of our own process (`/proc/self/maps`), and the vDSO in it.
//!
//! Does not know the program's mappings: these are recorded.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

/// The mappings of our own process.
pub(crate) const OWN_MAPS: &str = "/proc/self/maps";

/// A mapping in `/proc/PID/maps`.
pub(crate) struct Mapped<'a> {
    /// First address, and the address behind the last.
    pub(crate) addresses: Range<u64>,
    /// Offset in the file.
    pub(crate) offset: u64,
    /// As the kernel prints it.
    pub(crate) path: &'a str,
}

/// Reads a line of `/proc/PID/maps`; none without a path.
pub(crate) fn mapped(line: &str) -> Option<Mapped<'_>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let offset = words.nth(1)?;
    let path = words.nth(2)?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapped { addresses: number(start)?..number(end)?, offset: number(offset)?, path })
}

/// The vDSO: the kernel maps the same code into our own process as into every other.
pub(super) fn own_vdso() -> Option<Vec<u8>> {
    let maps = fs::read_to_string(OWN_MAPS).ok()?;
    let vdso = maps.lines().filter_map(mapped).find(|mapped| mapped.path == "[vdso]")?;
    let Range { start, end } = vdso.addresses;
    let len = end.checked_sub(start)?;
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    memory.take(len).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
