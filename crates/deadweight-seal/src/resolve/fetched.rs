//! Debug files that were fetched by a build-id: what they say about addresses of their binary, which need not be here.
//!
//! Does not fetch anything.

use super::{Detail, Resolved, resolve};
use crate::elf::Files;
use crate::elf::content::Content;
use crate::elf::debug_files::{self, has_build_id};
use crate::frame::Frame;
use crate::host::Host;
use crate::memory_budget::can_read_lines;
use object::{Object, ObjectSection, SectionFlags, elf};
use std::ops::Range;
use std::path::Path;

/// Whether the file at `path` is an ELF file with this build-id, in hexadecimal.
#[must_use]
pub fn is_build(path: &Path, build_id: &str) -> bool {
    Content::open(path).is_some_and(|(content, _)| has_build_id(&content, build_id))
}

/// The build-id of the supplementary file (`dwz -m`) that the debug file at `path` refers to, unless it is installed.
#[must_use]
pub fn missing_supplement(path: &Path) -> Option<String> {
    let (content, _) = Content::open(path)?;
    debug_files::missing_supplement(&content, path)
}

/// Resolves addresses of a binary by the debug file at `path`, and by its supplementary file, if that was fetched too.
/// An address that is no code has no name. None if the file cannot be opened.
#[must_use]
pub fn resolve_fetched(
    path: &Path,
    supplement: Option<&Path>,
    addresses: &[u64],
    detail: Detail,
    host: &Host,
) -> Option<Resolved> {
    let (content, _) = Content::open(path)?;
    let fetched = supplement.and_then(Content::open).map(|(content, _)| content);
    let shared = fetched.or_else(|| debug_files::supplement(&content, path));
    let files = Files { binary: &content, debug: None, shared: shared.as_ref(), path: None };
    let has_memory = detail == Detail::Functions || can_read_lines(host, &files);
    let code = code(&content);
    let is_code = |address: &u64| code.iter().any(|code| code.contains(address));
    let wanted: Vec<u64> = addresses.iter().copied().filter(is_code).collect();
    let mut resolved = resolve(files, &wanted, if has_memory { detail } else { Detail::Functions });
    let mut known = std::mem::take(&mut resolved.frames).into_iter();
    let frames = addresses.iter().map(|address| {
        is_code(address).then(|| known.next()).flatten().unwrap_or_else(|| vec![Frame::default()])
    });
    resolved.frames = frames.collect();
    Some(resolved)
}

/// The addresses of the sections with code: a debug file has their headers.
fn code(content: &Content<'_>) -> Vec<Range<u64>> {
    let Ok(file) = object::File::parse(content) else { return Vec::new() };
    let executable = |flags| match flags {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(elf::SHF_EXECINSTR),
        _ => false,
    };
    let code = file.sections().filter(|section| executable(section.flags()));
    code.map(|s| s.address()..s.address().saturating_add(s.size())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    const ID: &str = "abcdef12";

    /// The debug file of a program, alone in a folder; none if the tools are missing.
    fn debug_file(name: &str) -> Option<PathBuf> {
        let folder = std::env::temp_dir().join(format!("dw-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        fs::write(
            folder.join("a.c"),
            "int counter; int twice(int n) { return 2 * n; }\nint main(void) { return twice(0); }\n",
        )
        .expect("our own folder");
        let run = |words: &[&str]| {
            let done = Command::new(words[0]).args(&words[1..]).current_dir(&folder).status();
            done.is_ok_and(|status| status.success())
        };
        let made = run(&["gcc", "-g", &format!("-Wl,--build-id=0x{ID}"), "-o", "a", "a.c"])
            && run(&["objcopy", "--only-keep-debug", "a", "a.debug"])
            && fs::remove_file(folder.join("a")).is_ok();
        made.then_some(folder)
    }

    #[test]
    fn a_debug_file_alone_names_functions_and_lines() {
        let Some(folder) = debug_file("fetched") else { return };
        let path = folder.join("a.debug");
        assert!(is_build(&path, ID) && !is_build(&path, "abcdef13"));
        assert!(!is_build(&folder.join("a.c"), ID));
        assert_eq!(missing_supplement(&path), None);
        let bytes = fs::read(&path).expect("it was made");
        let file = object::File::parse(bytes.as_slice()).expect("an ELF file");
        let address_of = |name| {
            let symbol = file.symbol_by_name(name).expect("it has one");
            object::ObjectSymbol::address(&symbol)
        };
        let address = address_of("twice");
        let host = Host::default();
        let resolved = resolve_fetched(&path, None, &[address], Detail::Lines, &host).unwrap();
        let frame = &resolved.frames[0][0];
        assert_eq!((frame.function.as_str(), frame.line), ("twice", 1));
        assert!(frame.file.ends_with("a.c") && resolved.info.has_symbols, "{resolved:?}");
        let functions = resolve_fetched(&path, None, &[address], Detail::Functions, &host).unwrap();
        assert_eq!(
            (functions.frames[0][0].function.as_str(), functions.frames[0][0].line),
            ("twice", 0)
        );
        let data = [address_of("counter"), address, 0];
        let data = resolve_fetched(&path, None, &data, Detail::Lines, &host).unwrap();
        assert_eq!([&data.frames[0], &data.frames[2]], [&[Frame::default()]; 2]);
        assert_eq!(data.frames[1], resolved.frames[0]);
        assert_eq!(resolve_fetched(&folder, None, &[address], Detail::Lines, &host), None);
        fs::remove_dir_all(folder).expect("our own folder");
    }
}
