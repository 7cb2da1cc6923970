//! Where functions begin in a file, for probes that count calls.
//!
//! Read after a recording of the program was sealed. Does not name addresses; see `resolve`.

use super::bytes_at;
use crate::elf::Layout;
use crate::elf::content::Content;
use crate::elf::debug_files;
use crate::names::{pclntab, symbol_table};
use deadweight_code::{self as asm, Abi};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;
use object::{Object, ObjectSegment, ObjectSymbol, ReadRef};
use std::path::Path;

/// What compilers append to the name of a part of a function: a call of the part is no call of the function.
const PARTS: [&str; 2] = [".cold", ".part."];

/// Bytes of a function that are read.
const LONGEST: u64 = 1 << 16;

/// A binary, opened to find where its functions begin.
pub struct Entries {
    content: Content<'static>,
    debug: Option<Content<'static>>,
}

impl Entries {
    /// Opens a file; none if it is not an ELF file or has another build-id than this (in hexadecimal; empty for any).
    pub fn open(path: &Path, build_id: &str) -> Option<Self> {
        let (content, _) = Content::open(path)?;
        let found = Layout::read(&content).ok()?.build_id;
        let debug = debug_files::find(&content, path);
        (build_id.is_empty() || build_id == found).then_some(Self { content, debug })
    }

    /// File offsets of the functions that hold `addresses`, each once, without parts that a compiler moved out of a
    /// function.
    pub fn holding(&self, addresses: &[u64]) -> Vec<u64> {
        let mut sorted = addresses.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut starts = vec![None; sorted.len()];
        let mut parts = vec![false; sorted.len()];
        let Some(file) = parsed(&self.content) else { return Vec::new() };
        let go = pclntab::Table::read(&file);
        for symbols in self.debug.as_ref().and_then(parsed).iter().chain([&file]) {
            let bounds = symbol_table::bounds(symbols, &sorted);
            for ((start, part), (bounds, name)) in starts
                .iter_mut()
                .zip(&mut parts)
                .zip(bounds.into_iter().zip(symbol_table::find(symbols, &sorted)))
            {
                *start = start.or(bounds);
                *part |= name.is_some_and(|name| PARTS.iter().any(|p| name.contains(p)));
            }
        }
        for (start, address) in starts.iter_mut().zip(&sorted) {
            *start = start.or_else(|| go.as_ref()?.bounds(*address));
        }
        let whole = starts.into_iter().zip(parts).filter(|(_, part)| !part);
        let mut offsets: Vec<u64> = whole
            .filter_map(|(bounds, _)| offset(&file, entrance(&file, bounds?, go.is_some())))
            .collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    /// File offsets of the functions with these linker names; none for a function that the file lacks.
    pub fn named(&self, names: &[&str]) -> Vec<Option<u64>> {
        let mut found = vec![None; names.len()];
        let Some(file) = parsed(&self.content) else { return found };
        let go = pclntab::Table::read(&file);
        let is_go = go.is_some();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if !symbol.is_definition() || symbol.address() == 0 {
                continue;
            }
            let Ok(name) = symbol.name() else { continue };
            let name = name.split('@').next().unwrap_or(name);
            if let Some(at) = names.iter().position(|wanted| *wanted == name) {
                let bounds = (symbol.address(), symbol.address().saturating_add(symbol.size()));
                found[at] = offset(&file, entrance(&file, bounds, is_go));
            }
        }
        for (found, name) in found.iter_mut().zip(names).filter(|(found, _)| found.is_none()) {
            let bounds = go.as_ref().and_then(|go| go.bounds(go.start_of(name)?));
            *found = bounds.and_then(|bounds| offset(&file, entrance(&file, bounds, true)));
        }
        found
    }
}

fn parsed<'d>(content: &'d Content<'static>) -> Option<object::File<'d, &'d Content<'static>>> {
    object::File::parse(content).ok()
}

/// The file offset of an address.
fn offset<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, address: u64) -> Option<u64> {
    file.segments().find_map(|segment| {
        let within = address.checked_sub(segment.address())?;
        let (offset, len) = segment.file_range();
        (within < len).then(|| offset + within)
    })
}

/// Where a probe counts calls of the function with these bounds.
fn entrance<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, bounds: (u64, u64), go: bool) -> u64 {
    let (start, end) = bounds;
    let size = end.saturating_sub(start).min(LONGEST);
    let bytes = bytes_at(file, start, size);
    let arch = match file.architecture() {
        object::Architecture::X86_64 => Arch::X86_64,
        _ => return start,
    };
    let abi = if go { Abi::Go } else { Abi::Platform };
    let code = |bytes| asm::Code { arch, abi, addr: FileAddr(start), bytes };
    bytes.map_or(start, |bytes| asm::probe_site(&code(bytes)).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_begin_where_their_symbols_say() {
        let own = Entries::open(Path::new("/proc/self/exe"), "").expect("our own binary");
        let main = own.named(&["main", "no such function"]);
        assert!(main[0].is_some() && main[1].is_none(), "{main:?}");
        let file = parsed(&own.content).expect("an ELF file");
        let symbol = file.symbols().find(|s| s.name() == Ok("main")).expect("it has one");
        assert_eq!(own.holding(&[symbol.address() + 1, symbol.address()]), [main[0].unwrap()]);
    }

    #[test]
    fn another_file_is_not_taken_for_it() {
        assert!(Entries::open(Path::new("/proc/self/exe"), "00ff").is_none());
        assert!(Entries::open(Path::new("/dev/null"), "").is_none());
    }
}
