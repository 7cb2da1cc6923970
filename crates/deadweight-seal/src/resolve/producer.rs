//! Language, compiler and optimisation of a binary.
//!
//! From Go's build information, else from the DWARF unit that holds `main`, else from the `.comment` section. The rest
//! stays unknown. An interpreter has the language that it runs: its own matters to nobody who wrote a script.

use crate::dwarf::Slice;
use crate::dwarf::split::Split;
use crate::elf;
use crate::names::{pclntab, symbol_table, varint};
use gimli::AttributeValue;
use object::ReadRef;

/// Facts about a binary; empty strings where unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinaryInfo {
    /// Source language.
    pub language: String,
    /// The compiler, with the options that it records.
    pub producer: String,
    /// Whether it was optimised.
    pub optimised: Option<bool>,
    /// Whether function names are known.
    pub has_symbols: bool,
    /// Whether lines are known.
    pub has_lines: bool,
}

type Context<'a> = addr2line::Context<Slice<'a>>;

/// Reads the info of `file`. `addresses` are those that recorded stacks show in it: if there is no `main`, the unit
/// of one of them is taken.
pub(crate) fn read<'d, 's, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    context: Option<(&Context<'s>, &'s Split)>,
    addresses: &[u64],
) -> BinaryInfo {
    if let Some(info) = go(file) {
        return info;
    }
    let marks = symbol_table::marks(file);
    let mut info = BinaryInfo::default();
    if let Some((context, split)) = context {
        let places = marks.main.into_iter().chain(addresses.iter().copied().take(100));
        info = { places }.find_map(|at| unit(context, split, at)).unwrap_or_default();
    }
    if info.language.is_empty() {
        info = comment(file, marks.cpp);
    }
    if let Some(language) = marks.runtime.or(marks.crystal.then_some("Crystal")) {
        language.clone_into(&mut info.language);
    }
    info
}

/// Characters of a producer's text that are read, and kept.
const MOST_READ: usize = 16_000;
const MOST_KEPT: usize = 500;

/// Info from the unit that holds `address`.
fn unit<'s>(context: &Context<'s>, split: &'s Split, address: u64) -> Option<BinaryInfo> {
    // The search would overflow: it adds one.
    address.checked_add(1)?;
    let unit = split.complete(context.find_dwarf_and_unit(address))?;
    let mut entries = unit.entries();
    let root = entries.next_dfs().ok()??;
    let language = match root.attr_value(gimli::DW_AT_language) {
        Some(AttributeValue::Language(language)) => language,
        _ => gimli::DwLang(0),
    };
    let producer = root
        .attr_value(gimli::DW_AT_producer)
        .and_then(|value| unit.attr_string(value).ok())
        .map(|text| text.to_string_lossy().chars().take(MOST_READ).collect::<String>())
        .unwrap_or_default();
    let language = language_name(language, &producer);
    let optimised = optimised(&producer);
    let producer = short(&producer);
    (!language.is_empty()).then(|| BinaryInfo {
        language,
        producer,
        optimised,
        ..BinaryInfo::default()
    })
}

/// A language's usual name.
fn language_name(language: gimli::DwLang, producer: &str) -> String {
    let by_producer = [("zig ", "Zig"), ("Crystal", "Crystal"), ("Go cmd/compile", "Go")];
    if let Some((_, name)) = by_producer.iter().find(|(mark, _)| producer.starts_with(mark)) {
        return (*name).to_owned();
    }
    let known = language.static_string().unwrap_or_default();
    let known = known.strip_prefix("DW_LANG_").unwrap_or(known);
    let plain = known.trim_end_matches(|last: char| last.is_ascii_digit() || last == '_');
    match plain {
        "C_plus_plus" => "C++",
        "Mips_Assembler" | "lo_user" | "Assembly" => "assembly",
        "ObjC" => "Objective-C",
        other => other,
    }
    .to_owned()
}

/// Whether the options in a producer's text ask for optimisation. GCC always records its options, clang only with a
/// flag, others never.
fn optimised(producer: &str) -> Option<bool> {
    let level = producer.split(' ').rev().find_map(|word| word.strip_prefix("-O"));
    let gcc = producer.starts_with("GNU ") && !producer.starts_with("GNU AS");
    match level {
        Some("0") => Some(false),
        Some(_) => Some(true),
        None => gcc.then_some(false),
    }
}

/// `rustc version 1.95.0` out of `clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))`. A long text has lists of the
/// processor's abilities, as `-march=native` makes them: those are left out, except for the processor's name.
fn short(producer: &str) -> String {
    if producer.len() > MOST_KEPT {
        let of_processor = |word: &str| {
            word.starts_with("--param") || word.starts_with("-m") && !word.starts_with("-march")
        };
        let words: Vec<&str> = producer.split(' ').filter(|word| !of_processor(word)).collect();
        return words.join(" ").chars().take(MOST_KEPT).collect();
    }
    match producer.strip_prefix("clang LLVM (").and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => inner.split(" (").next().unwrap_or(inner).to_owned(),
        None => producer.to_owned(),
    }
}

/// Go's build information: version and the settings that it was built with.
fn go<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> Option<BinaryInfo> {
    let Some(bytes) = elf::section(file, ".go.buildinfo") else {
        // The runtime needs this table, whatever a linker removed.
        let runtime = pclntab::Table::read(file).is_some();
        return runtime.then(|| BinaryInfo { language: "Go".to_owned(), ..BinaryInfo::default() });
    };
    let (version, settings) = go_build(&bytes).unwrap_or_default();
    let mut producer = version;
    let option = |key: &str| {
        settings.lines().find_map(|line| line.strip_prefix("build\t")?.strip_prefix(key))
    };
    let flags = option("-gcflags=").unwrap_or_default();
    if !flags.is_empty() {
        producer.push_str(" -gcflags=");
        producer.push_str(flags);
    }
    let unoptimised = flags.split(['"', ' ', '=']).any(|flag| flag == "-N");
    // Optimising is the default; settings are present unless a linker flag leaves them out.
    let optimised = (!settings.is_empty()).then_some(!unoptimised);
    Some(BinaryInfo { language: "Go".to_owned(), producer, optimised, ..BinaryInfo::default() })
}

/// Version and module information of `.go.buildinfo` since Go 1.18: after a header of 32 bytes, each with its length
/// first.
fn go_build(section: &[u8]) -> Option<(String, String)> {
    const MAGIC: &[u8] = b"\xff Go buildinf:";
    const INLINE: u8 = 2;
    let at = section.windows(MAGIC.len()).take(4096).position(|window| window == MAGIC)?;
    let header = &section[at..];
    if header.get(15)? & INLINE == 0 {
        return None;
    }
    let mut rest = header.get(32..)?;
    let mut text = || {
        let len = usize::try_from(varint(&mut rest)?).ok()?;
        let (text, behind) = rest.split_at_checked(len)?;
        rest = behind;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    let version = text()?;
    Some((version, text().unwrap_or_default()))
}

/// Info from `.comment`; a symbol of the runtime distinguishes C++ from C.
fn comment<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, cpp: bool) -> BinaryInfo {
    let bytes = elf::section(file, ".comment").unwrap_or_default();
    let comments: Vec<String> = bytes
        .split(|byte| *byte == 0)
        .take(100)
        .map(|text| String::from_utf8_lossy(&text[..text.len().min(200)]).into_owned())
        .filter(|text| !text.is_empty() && !text.starts_with("Linker:"))
        .collect();
    let rust = comments.iter().find(|text| text.starts_with("rustc"));
    let producer = rust.or_else(|| comments.first()).cloned().unwrap_or_default();
    let language = if rust.is_some() {
        "Rust"
    } else if producer.is_empty() {
        ""
    } else if cpp {
        "C++"
    } else {
        "C"
    };
    // GCC: (Debian 12.2.0-14) 12.2.0
    let gcc = producer.strip_prefix("GCC: (").and_then(|rest| rest.split_once(") "));
    let producer = match gcc {
        Some((_, version)) => format!("GCC {}", version.split(' ').next().unwrap_or_default()),
        None => producer.split(" (").next().unwrap_or_default().to_owned(),
    };
    BinaryInfo { language: language.to_owned(), producer, ..BinaryInfo::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_options_show_optimisation() {
        assert_eq!(optimised("GNU C17 12.2.0 -mtune=generic -g -O2"), Some(true));
        assert_eq!(optimised("GNU C17 12.2.0 -mtune=generic -O2 -g -O0"), Some(false));
        assert_eq!(optimised("GNU C17 12.2.0 -mtune=generic -g"), Some(false));
        assert_eq!(optimised("GNU AS 2.40"), None);
        assert_eq!(optimised("clang version 19.1.7"), None);
    }

    #[test]
    fn options_behind_a_long_list_are_read_and_the_list_is_left_out() {
        let abilities = "-mno-avx512f ".repeat(100);
        let text = format!(
            "GNU C++20 12.2.0 -march=znver3 {abilities}--param=l2-cache-size=512 -g -O3 -std=c++20"
        );
        assert_eq!(optimised(&text), Some(true));
        assert_eq!(short(&text), "GNU C++20 12.2.0 -march=znver3 -g -O3 -std=c++20");
    }

    #[test]
    fn languages_have_their_names() {
        assert_eq!(language_name(gimli::DW_LANG_C_plus_plus_14, ""), "C++");
        assert_eq!(language_name(gimli::DW_LANG_C11, "GNU C17"), "C");
        assert_eq!(language_name(gimli::DW_LANG_C99, "zig 0.14.1"), "Zig");
        assert_eq!(language_name(gimli::DW_LANG_Rust, ""), "Rust");
        assert_eq!(language_name(gimli::DwLang(0), ""), "");
    }

    #[test]
    fn go_build_information_is_read_and_bounded() {
        let mut section = b"\xff Go buildinf:\x08\x02".to_vec();
        section.resize(32, 0);
        section.extend(b"\x06go1.26\x1abuild\t-gcflags=all=-N -l\n\n");
        let (version, settings) = go_build(&section).expect("both are there");
        assert_eq!((version.as_str(), settings.contains("-N")), ("go1.26", true));
        assert_eq!(go_build(&section[..34]), None);
        section[32..].fill(0xff);
        assert_eq!(go_build(&section), None);
    }
}
