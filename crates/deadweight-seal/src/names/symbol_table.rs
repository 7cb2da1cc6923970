//! Names of machine functions from an ELF file's symbol tables and its stubs.
//!
//! Only the addresses that were hit are looked up: the tables are read once and nothing of them is kept. Does not name
//! inlined functions, which only DWARF knows; see `dwarf::lines`.

use object::{
    Object, ObjectSection, ObjectSymbol, ReadRef, RelocationFlags, RelocationTarget, SectionFlags,
    Symbol, SymbolKind, elf,
};
use std::ops::Range;

/// The linker names of `addresses` (in ascending order) in `file`.
pub(crate) fn find<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    addresses: &[u64],
) -> Vec<Option<String>> {
    let mut best = sized_symbols(file, addresses);
    if best.iter().any(Option::is_none) {
        unsized_symbols(file, addresses, &mut best);
    }
    let mut names: Vec<_> =
        best.into_iter().map(|best| best.map(|best| best.name.to_owned())).collect();
    if names.iter().any(Option::is_none) {
        for (name, address) in names.iter_mut().zip(addresses) {
            if name.is_none() {
                *name = plt_stub(file, *address);
            }
        }
    }
    names
}

/// The functions with a size that hold `addresses` (in ascending order) in `file`.
fn sized_symbols<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    addresses: &[u64],
) -> Vec<Option<Best<'d>>> {
    let mut best: Vec<Option<Best<'_>>> = vec![None; addresses.len()];
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if let Some(size) = function(&symbol).filter(|size| *size > 0) {
            let start = symbol.address();
            let first = addresses.partition_point(|address| *address < start);
            let covered = addresses[first..].iter().take_while(|at| **at - start < size);
            for held in &mut best[first..first + covered.count()] {
                offer(held, &symbol);
            }
        }
    }
    best
}

/// First address and end of the functions that hold `addresses` (in ascending order), from symbols with a size.
pub(crate) fn bounds<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    addresses: &[u64],
) -> Vec<Option<(u64, u64)>> {
    let best = sized_symbols(file, addresses);
    let bounds = |best: Best<'_>| (best.start, best.start.saturating_add(best.size));
    best.into_iter().map(|best| best.map(bounds)).collect()
}

/// A function's symbol.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionSymbol<'d> {
    pub(crate) start: u64,
    /// The same as the start where the size is not known.
    pub(crate) end: u64,
    pub(crate) name: &'d str,
}

/// All functions that the symbol tables of `file` know, in no order.
pub(crate) fn functions<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
) -> impl Iterator<Item = FunctionSymbol<'d>> {
    file.symbols().chain(file.dynamic_symbols()).filter_map(|symbol| {
        let (start, size) = (symbol.address(), function(&symbol)?);
        let name = symbol.name().ok().filter(|name| !name.is_empty())?;
        Some(FunctionSymbol { start, end: start.saturating_add(size), name })
    })
}

/// Symbols that show the source language, and `main`.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct LanguageMarks {
    /// Address of `main`, if it has a symbol.
    pub(crate) main: Option<u64>,
    /// Whether Crystal's main function is there.
    pub(crate) crystal: bool,
    /// Whether C++'s exception handling is there.
    pub(crate) cpp: bool,
    /// The language that the file runs or compiles to: it holds the runtime, or it is the program that starts it.
    pub(crate) runtime: Option<&'static str>,
}

/// The language whose runtime has a function with this name. Some names also count where they are only imported: those
/// that an interpreter's own program needs and a program that embeds the interpreter does not.
fn runtime(name: &[u8], defined: bool) -> Option<&'static str> {
    match name {
        b"Py_BytesMain" | b"Py_Main" => Some("Python"),
        b"_ZN4node5StartEiPPc" => Some("JavaScript"),
        b"JLI_Launch" => Some("Java"),
        b"ruby_run_node" => Some("Ruby"),
        b"JNI_CreateJavaVM" if defined => Some("Java"),
        b"php_execute_script" if defined => Some("PHP"),
        b"perl_run" if defined => Some("Perl"),
        b"hs_main" if defined => Some("Haskell"),
        b"caml_startup" if defined => Some("OCaml"),
        _ => None,
    }
}

/// Searches the marks in one pass over the symbols.
pub(crate) fn marks<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> LanguageMarks {
    let mut marks = LanguageMarks::default();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        match symbol.name_bytes() {
            Ok(b"main.main" | b"main") if function(&symbol).is_some() => {
                marks.main.get_or_insert(symbol.address());
            }
            Ok(b"__crystal_main") => marks.crystal = true,
            Ok(b"__gxx_personality_v0") => marks.cpp = true,
            Ok(name) => {
                marks.runtime = marks.runtime.or_else(|| runtime(name, symbol.is_definition()))
            }
            Err(_) => {}
        }
    }
    marks
}

/// The best symbol for an address up to now.
#[derive(Copy, Clone)]
struct Best<'d> {
    start: u64,
    size: u64,
    name: &'d str,
}

/// The size of a symbol if it is a function that the file itself contains.
fn function<'d, R: ReadRef<'d>>(symbol: &Symbol<'d, '_, R>) -> Option<u64> {
    let code = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown);
    (code && symbol.is_definition() && symbol.address() != 0).then(|| symbol.size())
}

fn offer<'d, R: ReadRef<'d>>(best: &mut Option<Best<'d>>, symbol: &Symbol<'d, '_, R>) {
    let start = symbol.address();
    if best.as_ref().is_some_and(|best| best.start > start) {
        return;
    }
    let Ok(name) = symbol.name() else { return };
    let better = best
        .as_ref()
        .is_none_or(|best| best.start < start || alias_rank(name) < alias_rank(best.name));
    if better && !name.is_empty() {
        *best = Some(Best { start, size: symbol.size(), name });
    }
}

/// Of several names for one address, the name with the smallest rank is the public one.
pub(crate) fn alias_rank(name: &str) -> (usize, bool, usize, &str) {
    let underscores = name.bytes().take_while(|byte| *byte == b'_').count();
    let internal = name.starts_with("_IO_") || name.contains("_GI_") || name.contains("libc_");
    // The underscore of a mangled name does not make it reserved.
    let reserved = if name.starts_with("_Z") || name.starts_with("_R") { 0 } else { underscores };
    (reserved, internal, name.len(), name)
}

/// Hand-written code often has symbols without a size: each extends to the next symbol.
fn unsized_symbols<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    addresses: &[u64],
    best: &mut [Option<Best<'d>>],
) {
    let mut starts: Vec<(u64, u64)> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter_map(|symbol| function(&symbol).map(|size| (symbol.address(), size)))
        .collect();
    starts.sort_unstable();
    let nearest: Vec<Option<u64>> = addresses
        .iter()
        .map(|address| {
            let after = starts.partition_point(|(start, _)| start <= address);
            starts[..after].last().filter(|(_, size)| *size == 0).map(|(start, _)| *start)
        })
        .collect();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let Some(code) = (function(&symbol) == Some(0)).then(|| code_of(file, &symbol)).flatten()
        else {
            continue;
        };
        for ((held, nearest), address) in best.iter_mut().zip(&nearest).zip(addresses) {
            if *nearest == Some(symbol.address())
                && code.contains(address)
                && held.is_none_or(|held| held.start == symbol.address())
            {
                offer(held, &symbol);
            }
        }
    }
}

/// The bounds of a symbol's section if it holds code: linker symbols (`_end`) are no functions, and no function
/// extends into the next section. By section flag, because the sections of a separate debug file have no bytes.
fn code_of<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    symbol: &Symbol<'d, '_, R>,
) -> Option<Range<u64>> {
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return None };
    let bounds = section.address()..section.address().saturating_add(section.size());
    sh_flags.contains(elf::SHF_EXECINSTR).then_some(bounds)
}

/// The entry points of a program: the entry address of the file, and the function that the code there passes to the C
/// library as `main`. They have no name in a stripped program.
pub(crate) fn entry_points<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
) -> Vec<(u64, &'static str)> {
    let start = file.entry();
    let mut entry_points = vec![(start, "_start")];
    let code = file.sections().find_map(|section| section.data_range(start, 64).ok()?);
    let x86_64 = file.architecture() == object::Architecture::X86_64;
    if let Some(code) = code.filter(|_| x86_64 && start != 0) {
        // lea distance(%rip), %rdi, or mov $address, %rdi: the first argument.
        let argument = code.windows(7).enumerate().find_map(|(at, code)| {
            let value = i32::from_le_bytes(code[3..].try_into().ok()?);
            let next = start.wrapping_add(u64::try_from(at).ok()? + 7);
            match code[..3] {
                [0x48, 0x8d, 0x3d] => Some(next.wrapping_add_signed(value.into())),
                [0x48, 0xc7, 0xc7] => u64::try_from(value).ok(),
                _ => None,
            }
        });
        entry_points.extend(argument.map(|main| (main, "main")));
    }
    entry_points
}

/// The name of the PLT stub that holds `address`: `read@plt`.
fn plt_stub<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, address: u64) -> Option<String> {
    const SIZE: u64 = 16;
    let section = file.sections().find(|section| {
        address.checked_sub(section.address()).is_some_and(|into| into < section.size())
            && section.name().is_ok_and(|name| name.starts_with(".plt"))
    })?;
    let at = section.address() + (address - section.address()) / SIZE * SIZE;
    let code = section.data_range(at, SIZE).ok()??;
    let target = jump_target(code, at);
    let by_slot = |slot: u64| {
        file.dynamic_relocations()?.find(|(at, _)| *at == slot).map(|(_, relocation)| relocation)
    };
    let relocation = match target? {
        Target::Slot(slot) => by_slot(slot)?,
        Target::Number(number) => file
            .dynamic_relocations()?
            .map(|(_, relocation)| relocation)
            .filter(|relocation| {
                let flags = RelocationFlags::Elf { r_type: elf::R_X86_64_JUMP_SLOT };
                relocation.flags() == flags
            })
            .nth(usize::try_from(number).ok()?)?,
    };
    let RelocationTarget::Symbol(index) = relocation.target() else { return None };
    use object::ObjectSymbolTable;
    let symbol = file.dynamic_symbol_table()?.symbol_by_index(index).ok()?;
    symbol.name().ok().filter(|name| !name.is_empty()).map(|name| format!("{name}@plt"))
}

/// What a PLT stub of x86-64 jumps through.
enum Target {
    /// A slot at this address.
    Slot(u64),
    /// The slot with this number, which the stub pushes for the dynamic linker.
    Number(u32),
}

fn jump_target(code: &[u8], at: u64) -> Option<Target> {
    let word =
        |from: usize| code.get(from..from.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes);
    // `endbr64` and a `bnd` prefix may come first.
    let mut from = if code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) { 4 } else { 0 };
    if code.get(from) == Some(&0x68) {
        return word(from + 1).map(Target::Number);
    }
    if code.get(from) == Some(&0xf2) {
        from += 1;
    }
    let next = at.wrapping_add(u64::try_from(from).ok()? + 6);
    // jmp *distance(%rip)
    (code.get(from..from + 2) == Some(&[0xff, 0x25])).then(|| word(from + 2)).flatten().map(
        |distance| {
            let distance = i64::from(i32::from_le_bytes(distance.to_le_bytes()));
            Target::Slot(next.wrapping_add_signed(distance))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::runtime;

    #[test]
    fn who_embeds_a_runtime_is_not_written_in_its_language() {
        for (name, defined, expected) in [
            ("Py_BytesMain", false, Some("Python")),
            ("Py_InitializeEx", false, None),
            ("JNI_CreateJavaVM", true, Some("Java")),
            ("JNI_CreateJavaVM", false, None),
            ("perl_run", true, Some("Perl")),
            ("perl_run", false, None),
        ] {
            assert_eq!(runtime(name.as_bytes(), defined), expected, "{name}");
        }
    }
}
