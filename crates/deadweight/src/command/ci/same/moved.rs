//! Whether two binaries are one program at two places in memory: the linker moved its code, or only a build-id differs.
//!
//! A processor may run such code faster or slower by 10 %; no change of the program explains it. Compared is all that is
//! loaded, but for notes and the tables that exceptions are unwound by. Does not run anything.

use deadweight_code::{Abi, Code, is_same_code};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;
use object::elf::{SHF_ALLOC, SHF_EXECINSTR, SHT_NOTE, SectionFlags};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Architecture, Endianness, Object};

/// What a linker fills a page with.
const PADDING: &[u8] = b".relro_padding";
/// Tables with distances to all code: they follow from the code.
const UNWINDING: [&[u8]; 2] = [b".eh_frame", b".eh_frame_hdr"];

/// Something that is loaded.
#[derive(Debug)]
struct Section<'d> {
    name: &'d [u8],
    addr: u64,
    size: u64,
    is_code: bool,
    /// Empty for memory that begins as zeros.
    data: &'d [u8],
}

/// Whether the contents of two ELF files are the same program. False where it is not certain.
pub(super) fn is_same(a: &[u8], b: &[u8]) -> bool {
    let Some((of_a, of_b)) = image(a).zip(image(b)) else { return false };
    let alike = |(a, b): (&Section<'_>, &Section<'_>)| {
        (a.name, a.size, a.is_code) == (b.name, b.size, b.is_code)
    };
    let (a, b) = (&of_a.sections, &of_b.sections);
    if a.is_empty() || a.len() != b.len() || of_a.arch != of_b.arch || !a.iter().zip(b).all(alike) {
        return false;
    }
    let same = |x, y| place(a, x) == place(b, y);
    let equal = |(a, b): (&Section<'_>, &Section<'_>)| match a.is_code {
        true => is_same_code(&of_a.code(a), &of_b.code(b), &same),
        false => UNWINDING.contains(&a.name) || are_same_words(a.data, b.data, &same),
    };
    same(of_a.entry, of_b.entry) && a.iter().zip(b).all(equal)
}

/// What a binary loads.
struct Image<'d> {
    arch: Arch,
    entry: u64,
    sections: Vec<Section<'d>>,
}

impl<'d> Image<'d> {
    fn code(&self, section: &Section<'d>) -> Code<'d> {
        let addr = FileAddr(section.addr);
        Code { arch: self.arch, abi: Abi::Platform, addr, bytes: section.data }
    }
}

fn image(content: &[u8]) -> Option<Image<'_>> {
    let file = ElfFile64::<Endianness>::parse(content).ok()?;
    let arch = match file.architecture() {
        Architecture::X86_64 => Arch::X86_64,
        Architecture::Aarch64 => Arch::Aarch64,
        _ => return None,
    };
    let endian = file.endian();
    let table = file.elf_header().sections(endian, content).ok()?;
    let has = |section: &&object::elf::SectionHeader64<Endianness>, flag: SectionFlags| {
        section.sh_flags(endian).contains(flag)
    };
    let loaded = table
        .iter()
        .filter(|section| has(section, SHF_ALLOC) && section.sh_type(endian) != SHT_NOTE);
    let mut sections = Vec::new();
    for section in loaded {
        let name = table.section_name(endian, section).ok()?;
        if name != PADDING {
            sections.push(Section {
                name,
                addr: section.sh_addr(endian),
                size: section.sh_size(endian),
                is_code: has(&section, SHF_EXECINSTR),
                data: section.data(endian, content).ok()?,
            });
        }
    }
    Some(Image { arch, entry: file.entry(), sections })
}

/// The section that holds an address, and where in it; an address elsewhere is itself.
fn place(sections: &[Section<'_>], addr: u64) -> (usize, u64) {
    let holds = |of: &Section<'_>| addr >= of.addr && addr - of.addr < of.size.max(1);
    match sections.iter().position(holds) {
        Some(index) => (index, addr - sections[index].addr),
        None => (usize::MAX, addr),
    }
}

/// Whether data is equal but for words that are addresses of one thing.
fn are_same_words(a: &[u8], b: &[u8], same: &dyn Fn(u64, u64) -> bool) -> bool {
    let word = |bytes: &[u8]| <[u8; 8]>::try_from(bytes).map(u64::from_le_bytes);
    let equal = |(a, b): (&[u8], &[u8])| {
        a == b || word(a).ok().zip(word(b).ok()).is_some_and(|(a, b)| same(a, b))
    };
    a.len() == b.len() && a.chunks(8).zip(b.chunks(8)).all(equal)
}
