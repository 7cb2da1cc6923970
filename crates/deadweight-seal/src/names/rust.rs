//! Paths of Rust's library functions where debug information has only their last part.
//!
//! With `debug = "line-tables-only"`, debug information names a function without its modules and with its types:
//! `contains_key<u64, u32, std::hash::random::RandomState, alloc::alloc::Global, u64>`. The source file of a crate
//! shows the modules. Types say nothing of what a function does.

/// The path of a function of a crate from a registry, or of the standard library, by its source file; none for other
/// files, and for names with a path of their own.
pub(crate) fn path(name: &str, file: &str) -> Option<String> {
    let name = match name.find('<') {
        Some(at) => &name[..at],
        None => name,
    };
    // Mangled names have their path; reserved ones have none.
    if name.is_empty() || name.starts_with('_') || name.contains(':') {
        return None;
    }
    let (package, inner) = package(file)?.split_once("/src/")?;
    let inner = inner.strip_suffix(".rs").filter(|inner| !inner.contains(".."))?;
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    let modules = if inner == "lib" { Vec::new() } else { inner.split('/').collect() };
    let package = without_version(package).replace('-', "_");
    let parts = std::iter::once(package.as_str()).chain(modules).chain([name]);
    Some(parts.collect::<Vec<_>>().join("::"))
}

/// The path of a source file from its package's folder on.
fn package(file: &str) -> Option<&str> {
    if let Some((_, rest)) = file.split_once("/.cargo/registry/src/") {
        return rest.split_once('/').map(|(_, rest)| rest);
    }
    if let Some((_, rest)) = file.split_once("/rust/deps/") {
        return Some(rest);
    }
    let (_, rest) = file.split_once("/library/")?;
    ["core/", "alloc/", "std/"].iter().any(|of| rest.starts_with(of)).then_some(rest)
}

/// `regex-automata` of `regex-automata-0.4.19`.
fn without_version(folder: &str) -> &str {
    let version = |(at, _): &(usize, &str)| {
        folder[at + 1..].starts_with(|first: char| first.is_ascii_digit())
    };
    let at = folder.match_indices('-').find(version).map(|(at, _)| at);
    &folder[..at.unwrap_or(folder.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crates_file_gives_the_path_of_a_bare_name() {
        for (name, file, expected) in [
            (
                "c_cap",
                "/h/.cargo/registry/src/index.crates.io-1949/regex-automata-0.4.19/src/nfa/thompson/compiler.rs",
                "regex_automata::nfa::thompson::compiler::c_cap",
            ),
            (
                "make_hash<u64, std::hash::random::RandomState>",
                "/rust/deps/hashbrown-0.16.1/src/map.rs",
                "hashbrown::map::make_hash",
            ),
            ("write<u8>", "/rustc/59807616/library/core/src/ptr/mod.rs", "core::ptr::write"),
            ("{closure#0}<u8>", "/rustc/59807616/library/std/src/lib.rs", "std::{closure#0}"),
        ] {
            assert_eq!(path(name, file).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn names_with_a_path_and_the_programs_own_files_are_left_alone() {
        let library = "/rustc/59807616/library/alloc/src/vec/mod.rs";
        for (name, file) in [
            ("_RNvCs1_5alloc3vec4push", library),
            ("__rust_alloc", library),
            ("alloc::vec::Vec<T,A>::push", library),
            ("<T as alloc::string::ToString>::to_string", library),
            ("", library),
            ("bfs<alloc::alloc::Global>", "graph/src/main.rs"),
            ("memcpy", "/rustc/59807616/library/compiler-builtins/src/mem/mod.rs"),
            (
                "_mm_add",
                "/rustc/5980/library/core/src/../../stdarch/crates/core_arch/src/x86/sse2.rs",
            ),
            (
                "movemask",
                "/rustc/5980/library/core/src/../../stdarch/crates/core_arch/src/x86/sse2.rs",
            ),
        ] {
            assert_eq!(path(name, file), None, "{name}");
        }
    }
}
