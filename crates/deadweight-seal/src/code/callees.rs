//! What the code of a function calls: targets of its calls and branches, and their names.
//!
//! In: machine code and the file that it is from. Out: names by address. Does not copy code; see the parent.

use super::{bytes_at, code, read};
use crate::elf::Files;
use crate::names::demangle::demangle;
use crate::resolve::{Detail, resolve};
use deadweight_code::instruction::Kind;
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, ReadRef,
    RelocationTarget,
};
use std::collections::{BTreeMap, BTreeSet};

/// How many bytes of a cold part of a function are read to find its first call.
const COLD: usize = 96;

/// Relocations of ifuncs: the slot gets the address that the resolver at the addend returns (psABI of x86-64,
/// ABI of aarch64).
pub(crate) const R_X86_64_IRELATIVE: u64 = 37;
const R_AARCH64_IRELATIVE: u64 = 1032;

/// Addresses outside a function that its code refers to.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// Targets of calls and jumps, and addresses of pointers that it loads or calls through.
    calls: BTreeSet<u64>,
    /// Targets of branches.
    branches: BTreeSet<u64>,
}

impl References {
    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = u64> {
        self.calls.union(&self.branches).copied()
    }
}

/// What the code of a function at `start` refers to.
pub(crate) fn references(start: u64, bytes: &[u8], language: &str) -> References {
    let inside = start..start.saturating_add(bytes.len() as u64);
    let mut references = References::default();
    for instruction in read(start, bytes, language).instructions() {
        let fixed = instruction.memory.and_then(|memory| memory.fixed());
        match instruction.kind {
            Kind::Branch(to) if !inside.contains(&to) => _ = references.branches.insert(to),
            // A loaded pointer may be called later.
            Kind::Load => references.calls.extend(fixed),
            _ => references.calls.extend(instruction.callee().filter(|to| !inside.contains(to))),
        }
    }
    references
}

/// Addresses that the code of a function at `start` calls, jumps to, or loads from.
#[must_use]
pub fn referenced_addresses(start: u64, bytes: &[u8], language: &str) -> Vec<u64> {
    references(start, bytes, language).all().collect()
}

/// Reads functions (address and size) of any file and names what they call. Returns how many names there are. For
/// fuzzing.
#[must_use]
pub fn called_names<'d, R: ReadRef<'d>>(binary: R, functions: &[(u64, u64)]) -> usize {
    let Ok(file) = object::File::parse(binary) else { return 0 };
    let code = functions.iter().filter_map(|(at, size)| Some((*at, bytes_at(&file, *at, *size)?)));
    let references: Vec<References> = code.map(|(at, bytes)| references(at, bytes, "")).collect();
    targets(binary, None, &references).len()
}

/// The names of what these refer to, in the file with the bytes `binary`.
pub(super) fn targets<'d, R: ReadRef<'d>>(
    binary: R,
    debug: Option<R>,
    references: &[References],
) -> BTreeMap<u64, String> {
    let mut named = BTreeMap::new();
    let Ok(file) = object::File::parse(binary) else { return named };
    let calls: BTreeSet<u64> = references.iter().flat_map(|l| l.calls.iter().copied()).collect();
    let branches: BTreeSet<u64> =
        references.iter().flat_map(|l| l.branches.iter().copied()).collect();
    // The cold part of a function is replaced by the first function that it calls, a PLT stub by its slot.
    let resolved_target = |at: &u64| {
        let cold = || first_call(*at, cold_bytes(&file, *at)?);
        let cold = if branches.contains(at) { cold() } else { None };
        let at = cold.unwrap_or(*at);
        bytes_at(&file, at, 16).and_then(|stub| stub_slot(at, stub)).unwrap_or(at)
    };
    let final_targets: BTreeMap<u64, u64> =
        calls.union(&branches).map(|at| (*at, resolved_target(at))).collect();
    let slots = slots(&file, &final_targets.values().copied().collect());
    let code = |to: &u64| match slots.get(to) {
        Some(Slot::Code(code)) => Some(*code),
        Some(Slot::Import(_)) => None,
        None => Some(*to),
    };
    let addresses: Vec<u64> = final_targets.values().filter_map(code).collect();
    let resolved =
        resolve(Files { binary, debug, shared: None, path: None }, &addresses, Detail::Functions);
    let frames = resolved.frames.into_iter().filter_map(|mut frames| frames.pop());
    let functions: BTreeMap<u64, String> =
        addresses.iter().copied().zip(frames.map(|frame| frame.function)).collect();
    for (at, to) in final_targets {
        let name = match slots.get(&to) {
            Some(Slot::Import(name)) => Some(name.as_str()),
            Some(Slot::Code(code)) => functions.get(code).map(String::as_str),
            None => functions.get(&to).map(String::as_str),
        };
        let plain = |name: &'_ str| name.strip_suffix("_ifunc").unwrap_or(name).to_owned();
        let name = name.map(|name| plain(name.strip_suffix("@plt").unwrap_or(name)));
        named.extend(name.filter(|name| !name.is_empty()).map(|name| (at, name)));
    }
    named
}

/// The slot that a PLT stub at `at` jumps through.
pub(crate) fn stub_slot(at: u64, stub: &[u8]) -> Option<u64> {
    let code = read(at, stub, "");
    let first = code.instructions().iter().find(|i| i.kind != Kind::Nop)?;
    first.callee().filter(|_| first.kind == Kind::Jump(None))
}

/// The first bytes of a cold part.
fn cold_bytes<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, at: u64) -> Option<&'d [u8]> {
    (16..=COLD as u64).rev().step_by(16).find_map(|size| bytes_at(file, at, size))
}

/// The first function that the code at `at` calls, before any branch.
pub(crate) fn first_call(at: u64, bytes: &[u8]) -> Option<u64> {
    deadweight_code::first_call(&code(at, &bytes[..bytes.len().min(COLD)], ""))
}

/// What a pointer in the file points to once the file is loaded.
#[derive(Debug)]
enum Slot {
    /// A function of another file, by its readable name.
    Import(String),
    /// Code of this one.
    Code(u64),
}

/// What the pointers at these addresses point to; addresses of code are skipped.
fn slots<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    addresses: &BTreeSet<u64>,
) -> BTreeMap<u64, Slot> {
    let mut slots = BTreeMap::new();
    let code = |at: u64| {
        let holds = |s: &object::Segment<'d, '_, R>| {
            at.checked_sub(s.address()).is_some_and(|into| into < s.size())
        };
        file.segments().find(holds).is_some_and(|s| s.permissions().executable())
    };
    let data: BTreeSet<u64> = addresses.iter().copied().filter(|at| !code(*at)).collect();
    let relocations = file.dynamic_relocations().into_iter().flatten();
    for (at, relocation) in relocations.filter(|(at, _)| data.contains(at)) {
        let slot = match relocation.target() {
            RelocationTarget::Symbol(index) => file
                .dynamic_symbol_table()
                .and_then(|table| table.symbol_by_index(index).ok())
                .and_then(|symbol| symbol.name().ok().map(demangle))
                .map(Slot::Import),
            _ => u64::try_from(relocation.addend()).ok().map(Slot::Code),
        };
        slots.extend(slot.map(|slot| (at, slot)));
    }
    let resolved = [".rela.plt", ".rela.iplt"]
        .into_iter()
        .filter_map(|name| file.section_by_name(name)?.data().ok());
    // A static program has its own indirect functions (ifunc) here.
    for entry in resolved.flat_map(|bytes| bytes.chunks_exact(24)) {
        let word = |n: usize| entry[8 * n..][..8].try_into().map_or(0, u64::from_le_bytes);
        let chosen = matches!(word(1), R_X86_64_IRELATIVE | R_AARCH64_IRELATIVE);
        if chosen && data.contains(&word(0)) {
            slots.insert(word(0), Slot::Code(word(2)));
        }
    }
    for at in data {
        // Without such a relocation the file holds the address itself, or a packed relative relocation (RELR).
        let word = || bytes_at(file, at, 8)?.try_into().ok().map(u64::from_le_bytes);
        if !slots.contains_key(&at)
            && let Some(to) = word().filter(|to| code(*to))
        {
            slots.insert(at, Slot::Code(to));
        }
    }
    slots
}
