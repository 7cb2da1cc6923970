//! Type names of structs that functions copy, only for functions whose machine code is in the trace.
//!
//! Does not read DWARF; see `dwarf::value_types`.

use crate::dwarf::value_types::{BySize, in_files};
use crate::elf::debug_files::SeparateDebug;
use crate::host::Host;
use crate::images::Images;
use crate::memory_budget::can_read_lines;
use deadweight_code::{self as asm, Abi, Role};
use deadweight_trace::ids::{ImageId, NameId};
use deadweight_trace::symbols::{FunctionCode, Symbols};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;
use std::collections::BTreeMap;

/// Names the types of the values that functions with kept code copy.
pub(crate) fn name_values(symbols: &mut Symbols, images: &Images, host: &Host) {
    let mut of_image: BTreeMap<ImageId, Vec<(u64, NameId)>> = BTreeMap::new();
    for code in symbols.code.iter().filter(|code| moves_values(symbols, code)) {
        of_image.entry(code.image).or_default().push((code.addr.0, code.name));
    }
    for (image, functions) in of_image {
        let starts: Vec<u64> = functions.iter().map(|(start, _)| *start).collect();
        let found = of_functions(images, image, &starts, host).unwrap_or_default();
        for ((_, function), by_size) in functions.into_iter().zip(found) {
            for (size, name) in by_size {
                if let (Ok(size), Some(name)) = (u32::try_from(size), name) {
                    let name = symbols.intern(&name);
                    symbols.values.insert((function, size), name);
                }
            }
        }
    }
}

/// Whether the code of a function copies at least 32 bytes of a value.
fn moves_values(symbols: &Symbols, code: &FunctionCode) -> bool {
    let language = symbols.images.get(code.image.index()).map_or("", |i| symbols.name(i.language));
    let target = |at: FileAddr| {
        let at = code.targets.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(symbols.name(code.targets[at].1))
    };
    let (abi, addr) = (Abi::of(language), code.addr);
    let bytes = asm::Code { arch: Arch::HOST, abi, addr, bytes: &code.bytes };
    let function = asm::Function::read(&bytes, &target);
    function.instructions().iter().any(|instruction| {
        let role = function.role_at(FileAddr(instruction.addr));
        matches!(role, Some(Role::Copy(run)) if !run.looped && run.bytes >= 32)
    })
}

/// The values that the functions at `starts` of an image handle, in the same order.
fn of_functions(
    images: &Images,
    image: ImageId,
    starts: &[u64],
    host: &Host,
) -> Option<Vec<BySize>> {
    let content = images.content(image).ok()?;
    let separate = SeparateDebug::of(&content, images.file_of(image).map(|(path, _)| path));
    let files = separate.files(&content);
    can_read_lines(host, &files).then(|| in_files(files, starts))?
}
