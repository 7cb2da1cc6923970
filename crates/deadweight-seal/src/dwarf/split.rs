//! Split debug information (`-gsplit-dwarf`, Rust's `split-debuginfo`): a binary keeps its lines, the rest is in a package
//! beside it (.dwp) or in a part for each object file (.dwo).
//!
//! A part is taken only if it has the id that the binary names. Only the parts of units that were hit are read.

use super::Slice;
use crate::elf;
use crate::elf::content::Content;
use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{Dwarf, DwarfPackageSections, DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Larger files are not read: their sections stay in memory meanwhile.
const LARGEST: u64 = 1 << 30;

/// The parts of one binary that were found.
pub(crate) struct Split {
    endian: RunTimeEndian,
    package: Option<DwarfPackageSections<Vec<u8>>>,
    /// By their ids.
    parts: BTreeMap<u64, DwarfSections<Vec<u8>>>,
    /// Where one was looked for that was not found.
    missing: Option<String>,
}

impl Split {
    /// None yet, of a binary with this order of bytes, if it has debug information.
    pub(crate) fn new(endian: Option<RunTimeEndian>) -> Self {
        Self {
            endian: endian.unwrap_or_default(),
            package: None,
            parts: BTreeMap::new(),
            missing: None,
        }
    }

    /// Finds the parts that hold these addresses, of a binary at `path`. A context remembers what it did not get: take
    /// another one afterwards. Returns whether there are any.
    pub(crate) fn find(
        &mut self,
        context: &Context<Slice<'_>>,
        addresses: &[u64],
        path: Option<&Path>,
    ) -> bool {
        // The last address is in no unit, and the search would overflow: it adds one.
        for address in addresses.iter().filter(|address| **address < u64::MAX) {
            let mut result = context.find_dwarf_and_unit(*address);
            while let LookupResult::Load { load, continuation } = result {
                self.add(&load, path);
                result = continuation.resume(None);
            }
        }
        self.package.is_some() || !self.parts.is_empty()
    }

    /// What to say of a part that was not found, in words that follow the binary's name.
    pub(crate) fn warning(&self) -> Option<String> {
        let places = self.missing.as_ref()?;
        Some(format!(
            "has split debug information, and a part of it was not found: functions and lines are known there, inlined \
             functions are not. Put it in one of these places: {places}"
        ))
    }

    fn add(&mut self, load: &SplitDwarfLoad<Slice<'_>>, path: Option<&Path>) {
        if self.package.is_none() && self.parts.is_empty() && self.missing.is_none() {
            self.package = path.and_then(package);
        }
        if self.is_packed(load) || self.parts.contains_key(&load.dwo_id.0) {
            return;
        }
        let places = places(load, path);
        match places.iter().find_map(|place| self.part(place, load)) {
            Some(part) => _ = self.parts.insert(load.dwo_id.0, part),
            None => _ = self.missing.get_or_insert_with(|| listed(path, &places)),
        }
    }

    fn is_packed(&self, load: &SplitDwarfLoad<Slice<'_>>) -> bool {
        let index = self.package.as_ref().and_then(|package| {
            package.borrow(|bytes| EndianSlice::new(bytes, self.endian), self.empty()).ok()
        });
        index.is_some_and(|package| package.cu_index.find(load.dwo_id.0).is_some())
    }

    /// The part in this file, if it is the one that is wanted.
    fn part(
        &self,
        place: &Path,
        load: &SplitDwarfLoad<Slice<'_>>,
    ) -> Option<DwarfSections<Vec<u8>>> {
        let sections = DwarfSections::load(loader(&opened(place)?)?).ok()?;
        let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, self.endian));
        let has_id = |id| id == Some(load.dwo_id);
        let mut units = dwarf.units();
        let found = std::iter::from_fn(|| units.next().ok().flatten())
            .any(|header| dwarf.unit(header).is_ok_and(|unit| has_id(unit.dwo_id)));
        found.then_some(sections)
    }

    fn of<'s>(&'s self, load: &SplitDwarfLoad<Slice<'s>>) -> Option<Arc<Dwarf<Slice<'s>>>> {
        let slice = |bytes: &'s Vec<u8>| EndianSlice::new(bytes, self.endian);
        let package = self.package.as_ref().and_then(|p| p.borrow(slice, self.empty()).ok());
        let packed = package.and_then(|p| p.find_cu(load.dwo_id, &load.parent).ok()?);
        let alone = || {
            let mut part = self.parts.get(&load.dwo_id.0)?.borrow(slice);
            part.make_dwo(&load.parent);
            Some(part)
        };
        packed.or_else(alone).map(Arc::new)
    }

    fn empty(&self) -> Slice<'static> {
        EndianSlice::new(&[], self.endian)
    }

    /// Ends a look-up with the parts that it needs; a missing one is left out.
    pub(crate) fn complete<'s, L>(&'s self, mut result: LookupResult<L>) -> L::Output
    where
        L: LookupContinuation<Buf = Slice<'s>>,
    {
        loop {
            match result {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    result = continuation.resume(self.of(&load));
                }
            }
        }
    }
}

/// The package of a binary: `PATH.dwp`, as `dwp` and cargo name it.
fn package(binary: &Path) -> Option<DwarfPackageSections<Vec<u8>>> {
    DwarfPackageSections::load(loader(&opened(&package_of(binary))?)?).ok()
}

fn package_of(binary: &Path) -> PathBuf {
    let mut name: OsString = binary.as_os_str().to_owned();
    name.push(".dwp");
    name.into()
}

/// Where a part may be: as the compiler named it, from the folder where it ran or from the binary's, and beside the binary.
fn places(load: &SplitDwarfLoad<Slice<'_>>, binary: Option<&Path>) -> Vec<PathBuf> {
    let text = |name: Option<Slice<'_>>| name.map(|name| name.to_string_lossy().into_owned());
    let Some(named) = text(load.path).map(PathBuf::from) else { return Vec::new() };
    let folder = binary.and_then(Path::parent);
    let compiled = text(load.comp_dir).map(PathBuf::from);
    // An absolute name replaces the folder.
    let within = [compiled.as_deref(), folder].map(|folder| Some(folder?.join(&named)));
    let beside = folder.zip(named.file_name()).map(|(folder, name)| folder.join(name));
    let mut places: Vec<PathBuf> = Vec::new();
    for place in within.into_iter().chain([beside]).flatten() {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// The places as text, the package first.
fn listed(binary: Option<&Path>, places: &[PathBuf]) -> String {
    let package = binary.map(package_of);
    let all = package.iter().chain(places);
    all.map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn opened(place: &Path) -> Option<Content<'static>> {
    Content::open(place).map(|(content, _)| content).filter(|content| content.bytes() <= LARGEST)
}

/// Reads sections of split debug information, which have names of their own.
fn loader<'f>(
    content: &'f Content<'static>,
) -> Option<impl FnMut(SectionId) -> Result<Vec<u8>, gimli::Error> + use<'f>> {
    let file = object::File::parse(content).ok()?;
    Some(move |id: SectionId| {
        let section = id.dwo_name().and_then(|name| elf::section(&file, name));
        Ok(section.map(std::borrow::Cow::into_owned).unwrap_or_default())
    })
}
