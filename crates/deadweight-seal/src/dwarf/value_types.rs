//! Types of the values that a function handles, by size: its parameters, variables, results and their pointees, from
//! DWARF.
//!
//! Machine code copies bytes of a size, without a type; if the function handles exactly one type of that size, the copy
//! is of that type. Bounded, because the user waits for sealing. Does not read lines; see `lines`.

use super::Slice;
use super::lines::Sections;
use super::split::Split;
use crate::elf::Files;
use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, Unit, UnitHeader, UnitRef,
};
use object::ReadRef;
use std::collections::{BTreeMap, BTreeSet};

/// Sizes of values: smaller copies are too common, larger ones are buffers.
const SIZES: std::ops::RangeInclusive<u64> = 64..=1 << 16;

/// Entries of an image's debug information that are read, at most.
const MOST_ENTRIES: usize = 1_000_000;

/// Qualifiers and typedefs around a type, at most.
const DEEPEST: usize = 10;

/// Units that are opened for types in other units than their function, at most.
const MOST_UNITS: usize = 100;

type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// Type names by size; none where several types have this size.
pub(crate) type BySize = BTreeMap<u64, Option<String>>;

/// The values that the functions at `starts` of a binary handle, in the same order.
pub(crate) fn in_files<'d, R: ReadRef<'d>>(
    files: Files<'_, R>,
    starts: &[u64],
) -> Option<Vec<BySize>> {
    let parsed = |bytes| object::File::parse(bytes).ok();
    let (debug, shared) = (files.debug.and_then(parsed), files.shared.and_then(parsed));
    let file = debug.or_else(|| parsed(files.binary))?;
    let sections = Sections::read(&file, shared.as_ref())?;
    let first = sections.context().ok()?;
    let mut split = Split::new(Some(sections.endian()));
    let context =
        if split.find(&first, starts, files.path) { sections.context().ok()? } else { first };
    let mut entries_left = MOST_ENTRIES;
    let found = starts
        .iter()
        .map(|at| of_function(&context, &split, *at, &mut entries_left).unwrap_or_default());
    Some(found.collect())
}

/// Searches the types of values that the functions at `starts` of any file handle. Returns how many there are. For
/// fuzzing.
#[must_use]
pub fn value_types<'d, R: ReadRef<'d>>(files: Files<'_, R>, starts: &[u64]) -> usize {
    in_files(files, starts).unwrap_or_default().iter().map(BySize::len).sum()
}

fn of_function<'s>(
    context: &addr2line::Context<Slice<'s>>,
    split: &'s Split,
    start: u64,
    entries_left: &mut usize,
) -> Option<BySize> {
    // The search would overflow: it adds one.
    start.checked_add(1)?;
    let unit = split.complete(context.find_dwarf_and_unit(start))?;
    let mut types = Types::of(unit.dwarf);
    let own = types.holding(unit.header.debug_info_offset()?)?;
    let mut wanted = BTreeSet::new();
    let mut within: Option<isize> = None;
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().ok()? {
        *entries_left = entries_left.checked_sub(1)?;
        let found = || Found { unit: own, entry: entry.clone() };
        match within {
            Some(depth) if entry.depth() <= depth => break,
            Some(_) => wanted.extend(types.of_described(found)),
            None if entry.tag() == gimli::DW_TAG_subprogram && holds(&unit, entry, start) => {
                within = Some(entry.depth());
                wanted.extend(types.of_described(found));
            }
            None => {}
        }
    }
    let (mut direct, mut behind) = (BySize::new(), BySize::new());
    for at in wanted {
        types.add(at, &mut direct, &mut behind);
    }
    for (size, name) in behind {
        direct.entry(size).or_insert(name);
    }
    Some(direct)
}

fn holds<'a>(unit: &UnitRef<'_, Slice<'a>>, entry: &Entry<'a>, address: u64) -> bool {
    let value = |name| entry.attr_value(name);
    if let (Some(gimli::AttributeValue::Addr(low)), Some(size)) =
        (value(gimli::DW_AT_low_pc), value(gimli::DW_AT_high_pc).and_then(|v| v.udata_value()))
        && low.checked_add(size).is_none()
    {
        // The reader would overflow: it adds them unchecked.
        return false;
    }
    let Ok(mut ranges) = unit.die_ranges(entry) else { return false };
    while let Ok(Some(range)) = ranges.next() {
        if range.begin <= address && address < range.end {
            return true;
        }
    }
    false
}

/// An entry and its unit.
struct Found<'a> {
    unit: usize,
    entry: Entry<'a>,
}

/// The entries that describe types, in any unit of a file.
struct Types<'u, 'a> {
    dwarf: &'u Dwarf<Slice<'a>>,
    headers: Vec<UnitHeader<Slice<'a>>>,
    opened: BTreeMap<usize, Option<Unit<Slice<'a>>>>,
}

impl<'u, 'a> Types<'u, 'a> {
    fn of(dwarf: &'u Dwarf<Slice<'a>>) -> Self {
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        Self { dwarf, headers, opened: BTreeMap::new() }
    }

    /// The number of the unit that holds this offset.
    fn holding(&self, at: DebugInfoOffset) -> Option<usize> {
        let begins = |header: &UnitHeader<Slice<'a>>| {
            header.debug_info_offset().is_some_and(|begin| begin.0 <= at.0)
        };
        self.headers.partition_point(begins).checked_sub(1)
    }

    fn unit(&mut self, number: usize) -> Option<&Unit<Slice<'a>>> {
        let may_open = self.opened.len() < MOST_UNITS;
        let (dwarf, headers) = (self.dwarf, &self.headers);
        let open = || dwarf.unit(*headers.get(number)?).ok().filter(|_| may_open);
        self.opened.entry(number).or_insert_with(open).as_ref()
    }

    fn find(&mut self, at: DebugInfoOffset) -> Option<Found<'a>> {
        let unit = self.holding(at)?;
        let offset = at.to_unit_offset(self.headers.get(unit)?)?;
        let entry = self.unit(unit)?.entry(offset).ok()?;
        Some(Found { unit, entry })
    }

    /// The entry that an attribute refers to.
    fn reference(&self, from: &Found<'_>, name: gimli::DwAt) -> Option<DebugInfoOffset> {
        match from.entry.attr_value(name)? {
            AttributeValue::UnitRef(at) => at.to_debug_info_offset(self.headers.get(from.unit)?),
            AttributeValue::DebugInfoRef(at) => Some(at),
            _ => None,
        }
    }

    /// The type of a parameter or variable, or the result type of a function or an inlined call.
    fn of_described(&mut self, found: impl FnOnce() -> Found<'a>) -> Option<DebugInfoOffset> {
        let mut found = found();
        let described = [
            gimli::DW_TAG_formal_parameter,
            gimli::DW_TAG_variable,
            gimli::DW_TAG_subprogram,
            gimli::DW_TAG_inlined_subroutine,
        ];
        if !described.contains(&found.entry.tag()) {
            return None;
        }
        for _ in 0..DEEPEST {
            if let Some(at) = self.reference(&found, gimli::DW_AT_type) {
                return Some(at);
            }
            let origin = self
                .reference(&found, gimli::DW_AT_abstract_origin)
                .or_else(|| self.reference(&found, gimli::DW_AT_specification))?;
            found = self.find(origin)?;
        }
        None
    }

    /// Adds the type at `at`, its pointee and its element types.
    fn add(&mut self, at: DebugInfoOffset, direct: &mut BySize, behind: &mut BySize) {
        let Some(found) = self.plain(at, direct) else { return };
        match found.entry.tag() {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
            | gimli::DW_TAG_array_type => {
                let to = self.reference(&found, gimli::DW_AT_type);
                if let Some(found) = to.and_then(|to| self.plain(to, behind)) {
                    self.elements(&found, behind);
                }
            }
            _ => self.elements(&found, behind),
        }
    }

    /// Adds the element types of a container: its template type parameters, and the pointee of a slice.
    fn elements(&mut self, of: &Found<'a>, behind: &mut BySize) {
        let name = self.name(of).unwrap_or_default();
        let is_slice = ["[]", "&[", "&mut ["].iter().any(|begin| name.starts_with(begin));
        let mut wanted = Vec::new();
        let Some(unit) = self.unit(of.unit) else { return };
        let Ok(mut children) = unit.entries_at_offset(of.entry.offset()) else { return };
        let _ = children.next_dfs();
        while let Ok(Some(child)) = children.next_dfs()
            && child.depth() > 0
            && wanted.len() < MOST_UNITS
        {
            let is_parameter = child.tag() == gimli::DW_TAG_template_type_parameter;
            if child.depth() == 1
                && (is_parameter || is_slice && child.tag() == gimli::DW_TAG_member)
            {
                wanted.push((is_parameter, child.clone()));
            }
        }
        for (is_parameter, entry) in wanted {
            let child = Found { unit: of.unit, entry };
            let Some(at) = self.reference(&child, gimli::DW_AT_type) else { continue };
            let element = if is_parameter { Some(at) } else { self.pointee(at) };
            element.and_then(|at| self.plain(at, behind));
        }
    }

    fn pointee(&mut self, at: DebugInfoOffset) -> Option<DebugInfoOffset> {
        let pointer = self.find(at).filter(|f| f.entry.tag() == gimli::DW_TAG_pointer_type)?;
        self.reference(&pointer, gimli::DW_AT_type)
    }

    /// The type at `at` without qualifiers; added to `named` if it has a size and a name.
    fn plain(&mut self, mut at: DebugInfoOffset, named: &mut BySize) -> Option<Found<'a>> {
        let mut name = None;
        for _ in 0..DEEPEST {
            let found = self.find(at)?;
            name = name.or_else(|| self.name(&found));
            match found.entry.tag() {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_atomic_type => at = self.reference(&found, gimli::DW_AT_type)?,
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_array_type => {
                    let size = found.entry.attr(gimli::DW_AT_byte_size);
                    let size = size.and_then(gimli::Attribute::udata_value);
                    if let (Some(size), Some(name)) = (size.filter(|s| SIZES.contains(s)), name) {
                        let known = named.entry(size).or_insert_with(|| Some(name.clone()));
                        if known.as_ref() != Some(&name) {
                            *known = None;
                        }
                    }
                    return Some(found);
                }
                _ => return Some(found),
            }
        }
        None
    }

    fn name(&mut self, found: &Found<'a>) -> Option<String> {
        /// Longer names are of no use.
        const LONGEST: usize = 120;
        let name = found.entry.attr_value(gimli::DW_AT_name)?;
        let dwarf = self.dwarf;
        let name = dwarf.attr_string(self.unit(found.unit)?, name).ok()?;
        Some(name.to_string_lossy().into_owned()).filter(|name| {
            !name.is_empty() && name.len() <= LONGEST && !name.contains(|c: char| c.is_control())
        })
    }
}
