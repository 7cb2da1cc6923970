//! A place in the program: a site at its own source line, several sites of one line as one.
//!
//! The program's own frame counts, as in findings: an inlined library function belongs to the line that calls it.

use super::kind::Kind;
use deadweight_code::scan::{Floats, Pattern};
use deadweight_core::is_library_code;
use deadweight_seal::{Frame, Site};

/// A place with its sites added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The function, or the binary and an address where it has no name.
    pub function: String,
    /// The source file; empty where unknown.
    pub file: String,
    /// The line; 0 where unknown.
    pub line: u32,
    /// How many loops of its function are around the most nested site.
    pub depth: u32,
    /// The sum or the maximum of the sites' amounts, in the unit of the kind.
    pub amount: u32,
    /// How many sites of the machine code are here.
    pub sites: u32,
    /// What is called here: a small function, or a routine that allocates.
    pub callee: String,
    /// The source file of what is called; empty where unknown.
    pub callee_file: String,
    /// Why it was not inlined, in the compiler's words; empty unless that was asked and is known.
    pub why: String,
    /// What is computed one by one; none of other kinds.
    pub floats: Option<Floats>,
    /// Whether the function has no name.
    pub has_no_name: bool,
    /// Whether amounts add up.
    adds_up: bool,
}

/// What makes a place one: function, file, line and callee.
pub(super) type Key = (String, String, u32, String);

impl Place {
    /// The place of a site in `binary`; none for library code, unless `libraries` are wanted.
    pub(super) fn of(site: &Site, kind: &Kind, binary: &str, libraries: bool) -> Option<Self> {
        let callee = site.callee.as_ref();
        if !libraries && callee.is_some_and(|f| kind.is_about_callee() && is_library(f)) {
            return None;
        }
        let own = site.frames.iter().find(|frame| !is_library(frame));
        let frame = own.or_else(|| site.frames.first().filter(|_| libraries))?;
        let unnamed = || format!("{binary}+{:#x}", site.function.0);
        Some(Self {
            function: if frame.function.is_empty() { unnamed() } else { frame.function.clone() },
            file: frame.file.clone(),
            line: frame.line,
            depth: site.depth,
            amount: site.amount,
            sites: 1,
            callee: callee.map(|frame| frame.function.clone()).unwrap_or_default(),
            callee_file: callee.map(|frame| frame.file.clone()).unwrap_or_default(),
            why: String::new(),
            floats: match site.pattern {
                Some(Pattern::ScalarFloats(floats)) => Some(floats),
                _ => None,
            },
            has_no_name: frame.function.is_empty(),
            adds_up: kind.adds_up(),
        })
    }

    pub(super) fn key(&self) -> Key {
        (self.function.clone(), self.file.clone(), self.line, self.callee.clone())
    }

    /// Adds a site at the same place.
    pub(super) fn merge(&mut self, other: &Self) {
        if (other.depth, other.amount) > (self.depth, self.amount) {
            self.floats = other.floats;
        }
        self.depth = self.depth.max(other.depth);
        self.sites = self.sites.saturating_add(other.sites);
        self.amount = if self.adds_up {
            self.amount.saturating_add(other.amount)
        } else {
            self.amount.max(other.amount)
        };
    }

    /// What is shown first: the most nested, then the most.
    pub(super) fn rank(&self) -> (u32, u32, u32) {
        (self.depth, self.amount, self.sites)
    }

    /// What happens here, in a few words.
    #[must_use]
    pub fn text(&self, kind: &Kind) -> String {
        kind.text(self.amount, self.sites, &self.callee, self.floats)
    }

    /// `file.c:12`; empty where unknown.
    #[must_use]
    pub fn source(&self) -> String {
        let base = self.file.rsplit('/').next().unwrap_or_default();
        match (base, self.line) {
            ("", _) => String::new(),
            (base, 0) => base.to_owned(),
            (base, line) => format!("{base}:{line}"),
        }
    }
}

fn is_library(frame: &Frame) -> bool {
    is_library_code(&frame.function, &frame.file) || is_in_rusts_library(frame)
}

/// Whether a function without a line is of a crate that Rust's standard library brings along, to print where a panic came
/// from: each Rust program has these.
fn is_in_rusts_library(frame: &Frame) -> bool {
    const CRATES: &[&str] =
        &["addr2line", "adler2", "gimli", "memchr", "miniz_oxide", "object", "rustc_demangle"];
    let path = frame.function.trim_start_matches(['<', '&']);
    frame.file.is_empty() && path.split_once("::").is_some_and(|(name, _)| CRATES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::super::Candidates;
    use deadweight_code::scan::Pattern;
    use deadweight_seal::{Frame, Scan, Site};

    fn site(pattern: Pattern, frames: &[(&str, &str, u32)]) -> Site {
        let frame = |(function, file, line): &(&str, &str, u32)| Frame {
            function: (*function).into(),
            file: (*file).into(),
            line: *line,
        };
        let frames = frames.iter().map(frame).collect();
        Site { pattern: Some(pattern), depth: 1, amount: 1, frames, ..Site::default() }
    }

    fn candidates(sites: Vec<Site>, libraries: bool) -> Candidates {
        Candidates::of("/bin/app", &Scan { sites, ..Scan::default() }, libraries)
    }

    #[test]
    fn crates_that_rusts_library_brings_along_are_left_out_where_they_have_no_lines() {
        let shown = |function: &str, file: &str| {
            let site = site(Pattern::Division, &[(function, file, u32::from(!file.is_empty()))]);
            candidates(vec![site], false).places().count()
        };
        let display = "<rustc_demangle::v0::Ident as core::fmt::Display>::fmt";
        assert_eq!(shown(display, ""), 0);
        assert_eq!(shown("miniz_oxide::inflate::core::decompress", ""), 0);
        assert_eq!(shown("miniz_oxide::inflate::core::decompress", "/src/inflate/core.rs"), 1);
        assert_eq!(shown("objects::find", ""), 1);
        assert_eq!(shown("object", ""), 1);
    }

    #[test]
    fn inlined_library_code_belongs_to_the_line_that_calls_it() {
        let clone = ("alloc::sync::Arc<T>::clone", "/rustc/1/library/alloc/src/sync.rs", 9);
        let inlined = site(Pattern::Atomic, &[clone, ("work", "/src/a.rs", 7)]);
        let alone = site(Pattern::Atomic, &[clone]);
        let found = candidates(vec![inlined.clone(), inlined, alone], false);
        let places: Vec<_> = found.places().map(|(k, p)| (k.name, p.source(), p.amount)).collect();
        assert_eq!(places, [("atomics", "a.rs:7".into(), 2)]);
        assert_eq!(found.left_out, 1);
    }

    #[test]
    fn library_code_is_shown_when_asked_for_and_code_without_a_name_always() {
        let write = site(Pattern::Division, &[("runtime.mallocgc", "", 0)]);
        let unnamed = site(Pattern::Division, &[("", "", 0)]);
        let found = candidates(vec![write.clone(), unnamed.clone()], false);
        let names = |found: &Candidates| {
            found.places().map(|(_, p)| p.function.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&found), ["app+0x0"]);
        assert_eq!(names(&candidates(vec![write, unnamed], true)).len(), 2);
    }

    #[test]
    fn the_most_nested_come_first_and_large_copies_are_buffers() {
        let copy = |line, depth, amount| Site {
            depth,
            amount,
            ..site(Pattern::Copy, &[("f", "/src/a.c", line)])
        };
        let found = candidates(vec![copy(1, 0, 900), copy(2, 2, 128), copy(3, 0, 70_000)], false);
        let places: Vec<_> = found.places().map(|(k, p)| (k.name, p.line)).collect();
        assert_eq!(places, [("struct-copies", 2), ("struct-copies", 1), ("buffer-copies", 3)]);
    }
}
