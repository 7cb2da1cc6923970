//! The unwind sections of an ELF file, read and indexed.
//!
//! Does not interpret their entries; see the parent.

use super::{CallFrames, Machine, Section};
use crate::elf::section;
use object::{Object, ObjectSection, ReadRef};

/// The address that a section is loaded at, 0 if it is absent.
fn address<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, name: &str) -> u64 {
    file.section_by_name(name).map_or(0, |section| section.address())
}

/// The unwind sections of a 64-bit file, none if they describe no function; and whether they are damaged.
pub(crate) fn call_frames<'d, R: ReadRef<'d>>(data: R) -> (Option<CallFrames>, bool) {
    let frames = indexed(data);
    let is_damaged = frames.as_ref().is_some_and(|frames| frames.is_damaged);
    (frames.filter(|frames| !frames.is_empty()), is_damaged)
}

fn indexed<'d, R: ReadRef<'d>>(data: R) -> Option<CallFrames> {
    let file = object::File::parse(data).ok()?;
    let machine = match file.architecture() {
        object::Architecture::X86_64 if file.is_64() => Machine::X86_64,
        object::Architecture::Aarch64 if file.is_64() => Machine::Aarch64,
        _ => return None,
    };
    let read = |name| Section {
        address: address(&file, name),
        bytes: section(&file, name).unwrap_or_default().into_owned(),
    };
    Some(CallFrames::new(
        machine,
        read(".eh_frame"),
        read(".debug_frame"),
        address(&file, ".text"),
        address(&file, ".got"),
    ))
}

/// Reads the unwind sections of any bytes and searches rules for `addresses`. Returns how many addresses have a
/// rule. For fuzzing.
#[must_use]
pub fn unwind_rules<'d, R: ReadRef<'d>>(binary: R, addresses: &[u64]) -> usize {
    let (Some(mut frames), _) = call_frames(binary) else { return 0 };
    let mut context = gimli::UnwindContext::new();
    addresses.iter().filter(|address| frames.rule(**address, &mut context).is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_binary_has_call_frames() {
        let bytes = std::fs::read("/proc/self/exe").expect("our own binary");
        assert!(matches!(call_frames(bytes.as_slice()), (Some(_), false)));
    }
}
