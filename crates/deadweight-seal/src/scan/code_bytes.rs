//! The bytes of a file's executable sections, by address.
//!
//! Does not know functions; see `functions`.

use object::{Object, ObjectSection, ReadRef, SectionFlags, elf};

/// Executable sections in order of address.
pub(super) struct CodeBytes<'d> {
    sections: Vec<Section<'d>>,
}

struct Section<'d> {
    addr: u64,
    bytes: &'d [u8],
    /// Whether it holds stubs that jump to other files.
    is_stubs: bool,
}

impl<'d> CodeBytes<'d> {
    pub(super) fn read<R: ReadRef<'d>>(file: &object::File<'d, R>) -> Result<Self, String> {
        let mut sections = Vec::new();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            if !sh_flags.contains(elf::SHF_EXECINSTR) || section.size() == 0 {
                continue;
            }
            let bytes = section
                .data()
                .map_err(|error| format!("is a broken ELF file ({error}: its code is cut off)"))?;
            let is_stubs = section.name().is_ok_and(|name| name.starts_with(".plt"));
            sections.push(Section { addr: section.address(), bytes, is_stubs });
        }
        sections.retain(|section| section.addr.checked_add(section.bytes.len() as u64).is_some());
        sections.sort_by_key(|section| section.addr);
        if sections.is_empty() {
            return Err("has no section with code".into());
        }
        Ok(Self { sections })
    }

    /// The bytes from `addr` to the end of its section; none outside of code.
    pub(super) fn from(&self, addr: u64) -> Option<&'d [u8]> {
        self.section(addr)
            .and_then(|section| section.bytes.get(usize::try_from(addr - section.addr).ok()?..))
    }

    /// Whether `addr` is in a stub.
    pub(super) fn is_stub(&self, addr: u64) -> bool {
        self.section(addr).is_some_and(|section| section.is_stubs)
    }

    /// All sections of stubs, with their addresses.
    pub(super) fn stubs(&self) -> impl Iterator<Item = (u64, &'d [u8])> {
        self.sections.iter().filter(|s| s.is_stubs).map(|s| (s.addr, s.bytes))
    }

    fn section(&self, addr: u64) -> Option<&Section<'d>> {
        let at = self.sections.partition_point(|s| s.addr <= addr).checked_sub(1)?;
        let section = &self.sections[at];
        (addr - section.addr < section.bytes.len() as u64).then_some(section)
    }
}
