//! The called routines whose names decide something, by address: their own code, stubs, and pointers to them.
//!
//! All other names are left out: most calls are of functions that no rule asks for.

use super::code_bytes::CodeBytes;
use super::threads::in_threads;
use crate::code::{R_X86_64_IRELATIVE, first_call, stub_slot};
use crate::elf;
use crate::names::symbol_table::FunctionSymbol;
use deadweight_code::scan::{Called, called};
use deadweight_trace::hash::ByFast;
use object::{
    Object, ObjectSection, ObjectSymbolTable, ReadRef, RelocationFlags, RelocationTarget,
};
use object::{ObjectSymbol, elf as constants};
use std::collections::HashMap;

/// How many names a thread reads at a time.
const NAMES: usize = 1024;
/// The size of a stub.
const STUB: usize = 16;

/// Routines by address.
pub(super) struct Routines<'d> {
    /// In order of address.
    own: Vec<Routine<'d>>,
    /// Where each of them begins.
    starts: Vec<u64>,
    /// Pointers that lead to a routine once the file is loaded, and stubs that jump through them.
    through: HashMap<u64, (&'d str, Called), ByFast>,
    /// Where parts begin that a compiler moved out of a function, in order.
    parts: Vec<u64>,
    /// Which addresses may be one of these.
    filter: Filter,
}

/// Stretches of addresses by a few of their bits: most addresses are of none of a few thousand routines.
struct Filter(Vec<u64>);

impl Filter {
    /// Fits into a processor's first cache.
    const BITS: u64 = 1 << 17;

    fn bit(addr: u64) -> (usize, u64) {
        let bit = (addr >> 6) % Self::BITS;
        (usize::try_from(bit / 64).unwrap_or_default(), 1 << (bit % 64))
    }

    fn of(addresses: impl Iterator<Item = std::ops::Range<u64>>) -> Self {
        let mut bits = vec![0; usize::try_from(Self::BITS / 64).unwrap_or_default()];
        for range in addresses {
            // All bits are set after so many steps.
            let last = range.end.saturating_sub(1).min(range.start.saturating_add(Self::BITS << 6));
            for stretch in range.start >> 6..=last >> 6 {
                let (word, bit) = Self::bit(stretch << 6);
                bits[word] |= bit;
            }
        }
        Self(bits)
    }

    fn may_hold(&self, addr: u64) -> bool {
        let (word, bit) = Self::bit(addr);
        self.0[word] & bit != 0
    }
}

#[derive(Copy, Clone)]
struct Routine<'d> {
    start: u64,
    end: u64,
    name: &'d str,
    called: Called,
}

/// The routines among these symbols, and where parts of functions begin.
fn named<'d>(symbols: &[FunctionSymbol<'d>]) -> (Vec<Routine<'d>>, Vec<u64>) {
    let (mut own, mut parts) = (Vec::new(), Vec::new());
    for FunctionSymbol { start, end, name } in symbols.iter().copied() {
        if let Some(called) = called(name) {
            // Hand-written code may have no size.
            let end = end.max(start.saturating_add(1));
            own.push(Routine { start, end, name, called });
        } else if name.contains(".cold") {
            parts.push(start);
        }
    }
    (own, parts)
}

impl<'d> Routines<'d> {
    pub(super) fn of<R: ReadRef<'d>>(
        file: &object::File<'d, R>,
        symbols: &[FunctionSymbol<'d>],
        code: &CodeBytes<'d>,
    ) -> Self {
        let (mut own, mut parts) = (Vec::new(), Vec::new());
        // Names are long, and each is searched for many words.
        for (routines, starts) in in_threads(symbols.len(), NAMES, |range| named(&symbols[range])) {
            own.extend(routines);
            parts.extend(starts);
        }
        own.sort_unstable_by_key(|routine| (routine.start, routine.end, routine.name));
        parts.sort_unstable();
        let starts = own.iter().map(|routine| routine.start).collect();
        let filter = Filter::of(std::iter::empty());
        let mut routines = Self { own, starts, through: HashMap::default(), parts, filter };
        routines.pointers(file);
        for (addr, bytes) in code.stubs() {
            for (at, stub) in (addr..).step_by(STUB).zip(bytes.chunks_exact(STUB)) {
                let slot = stub_slot(at, stub);
                let to = slot.and_then(|slot| routines.through.get(&slot)).copied();
                routines.through.extend(to.map(|to| (at, to)));
            }
        }
        let own = routines.own.iter().map(|routine| routine.start..routine.end);
        let through = routines.through.keys().map(|at| *at..at.saturating_add(1));
        routines.filter = Filter::of(own.chain(through));
        routines
    }

    /// Notes the pointers (entries of the GOT) that lead to a routine.
    fn pointers<R: ReadRef<'d>>(&mut self, file: &object::File<'d, R>) {
        let table = file.dynamic_symbol_table();
        for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let name = match relocation.target() {
                RelocationTarget::Symbol(index)
                    if r_type == constants::R_X86_64_JUMP_SLOT
                        || r_type == constants::R_X86_64_GLOB_DAT =>
                {
                    let symbol = table.as_ref().and_then(|t| t.symbol_by_index(index).ok());
                    symbol
                        .and_then(|symbol| symbol.name().ok())
                        .and_then(|name| Some((name, called(name)?)))
                }
                RelocationTarget::Symbol(_) => None,
                _ => u64::try_from(relocation.addend()).ok().and_then(|to| self.begins(to)),
            };
            self.through.extend(name.map(|name| (at, name)));
        }
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        for name in [".rela.plt", ".rela.iplt"] {
            // A static program has its own indirect functions (ifunc) here.
            for entry in elf::section(file, name).unwrap_or_default().chunks_exact(24) {
                let to = word(&entry[16..]);
                let chosen = word(&entry[8..16]) == R_X86_64_IRELATIVE;
                let name = self.begins(to).filter(|_| chosen);
                self.through.extend(name.map(|name| (word(&entry[..8]), name)));
            }
        }
        for name in [".got", ".got.plt"] {
            // Without a relocation that says so the file holds the address itself.
            let Some(section) = file.section_by_name(name) else { continue };
            let bytes = section.data().unwrap_or_default();
            for (at, bytes) in (section.address()..).step_by(8).zip(bytes.chunks_exact(8)) {
                if let Some(name) = self.begins(word(bytes)) {
                    self.through.entry(at).or_insert(name);
                }
            }
        }
    }

    /// The routine that begins at `addr`.
    fn begins(&self, addr: u64) -> Option<(&'d str, Called)> {
        let routine = self.holding(addr).filter(|routine| routine.start == addr)?;
        Some((routine.name, routine.called))
    }

    /// The routine whose code holds `addr`.
    fn holding(&self, addr: u64) -> Option<&Routine<'d>> {
        let at = self.starts.partition_point(|start| *start <= addr).checked_sub(1)?;
        Some(&self.own[at]).filter(|routine| addr < routine.end)
    }

    /// The routine at an address, or behind a pointer there.
    fn known(&self, addr: u64) -> Option<(&'d str, Called)> {
        if !self.filter.may_hold(addr) {
            return None;
        }
        let own = self.holding(addr).map(|routine| (routine.name, routine.called));
        own.or_else(|| self.through.get(&addr).copied())
    }

    /// What the routine at an address, or behind a pointer there, decides.
    pub(super) fn called(&self, addr: u64) -> Option<Called> {
        self.known(addr).map(|(_, called)| called)
    }

    /// What a part of a function at `addr` leads to: the first routine that it calls.
    pub(super) fn moved_part(&self, addr: u64, code: &CodeBytes<'_>) -> Option<(&'d str, Called)> {
        self.known(addr).or_else(|| self.known(first_call(addr, code.from(addr)?)?))
    }

    /// The routine at an address, or behind a pointer there. A part of a function that a compiler moved away is the first
    /// routine that it calls. `begins`: whether a function begins there.
    pub(super) fn name(&self, addr: u64, begins: bool, code: &CodeBytes<'_>) -> Option<&'d str> {
        let known = self.known(addr).or_else(|| {
            let is_part = !begins || self.parts.binary_search(&addr).is_ok();
            if is_part { self.moved_part(addr, code) } else { None }
        });
        known.map(|(name, _)| name)
    }
}
