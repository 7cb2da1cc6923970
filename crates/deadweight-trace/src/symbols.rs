//! What addresses mean: images, functions, lines and interned call stacks of a sealed trace.
//!
//! Filled by sealing (in `deadweight`) or by the text reader; analysis only looks up.
//! Not for reading ELF or DWARF: the core never opens a file.

use crate::ids::{ImageId, LocationId, NameId, StackId};
use crate::units::FileAddr;
use std::collections::BTreeMap;

/// A binary that code ran in, or the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Path as mapped; `[kernel]`, `[vdso]`, `[anonymous]` and [`JIT_IMAGE`] are names of their own.
    pub path: NameId,
    /// GNU build-id in hexadecimal, or empty.
    pub build_id: NameId,
    /// Source language of the main part, as a reader would say it (`C++`, `Rust`), or empty.
    pub language: NameId,
    /// What made it (`GNU C17 12.2.0 -O2`, `go1.26.8`), or empty.
    pub producer: NameId,
    /// Whether the code was optimised, where that is known.
    pub optimised: Option<bool>,
    /// Whether function names could be had.
    pub has_symbols: bool,
    /// Whether lines could be had.
    pub has_lines: bool,
}

/// One source-level frame at a code address.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceFrame {
    /// Demangled function name without hash suffix; empty where unknown.
    pub function: NameId,
    /// Source path as the compiler recorded it; empty where unknown.
    pub file: NameId,
    /// Line, from 1; 0 where unknown.
    pub line: u32,
}

/// A code address and what it is in the source, innermost inlined frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The binary.
    pub image: ImageId,
    /// The address in it. For callers this is the call, not the return address.
    pub addr: FileAddr,
    /// At least one frame once sealed; the last is the function that has the machine code.
    pub frames: Vec<SourceFrame>,
}

/// The machine code of a function that samples hit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCode {
    /// The binary.
    pub image: ImageId,
    /// Where in it the first byte is.
    pub addr: FileAddr,
    /// The function.
    pub name: NameId,
    /// From its entry to its end.
    pub bytes: Vec<u8>,
    /// What lies at addresses that it calls or jumps to, or behind the pointers that it calls
    /// through, in ascending order. A stub goes by the name of what it leads to; a part of
    /// code of its own that ends in a panic by the name of what it calls.
    pub targets: Vec<(FileAddr, NameId)>,
}

/// The tables that a trace's ids point into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbols {
    /// Interned strings; entry 0 is empty.
    pub names: Vec<String>,
    /// Binaries.
    pub images: Vec<Image>,
    /// Code addresses that were hit; entry 0 is "not known" and has no frames.
    pub locations: Vec<Location>,
    /// Call stacks, leaf first; entry 0 is empty.
    pub stacks: Vec<Vec<LocationId>>,
    /// Text of source lines (file, line from 1), trimmed, of those that could be read when the
    /// trace was sealed.
    pub source: BTreeMap<(NameId, u32), NameId>,
    /// Functions that samples hit, as machine code; in ascending order of image and address.
    pub code: Vec<FunctionCode>,
    /// Types of values that these functions handle, by their size in bytes: those of which a function
    /// handles only one of that size.
    pub values: BTreeMap<(NameId, u32), NameId>,
    /// By name, why functions were not inlined, in their compiler's words, where it was asked. Not a
    /// part of recordings: it is asked for a report.
    pub not_inlined: BTreeMap<String, String>,
    index: Index,
}

/// Where each interned entry is. Entries that were pushed into a table by hand are not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Index {
    names: BTreeMap<String, NameId>,
    locations: BTreeMap<Location, LocationId>,
    stacks: BTreeMap<Vec<LocationId>, StackId>,
}

/// The path of an image that is code which a compiler inside a program made and listed by name.
pub const JIT_IMAGE: &str = "[jit]";

/// Whether an image is the C library or its dynamic linker. Nobody changes a line of theirs, and
/// where their debug information is installed it would be read for every run of every program.
#[must_use]
pub fn is_c_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["libc.so", "libc-2.", "libc.musl", "ld-linux", "ld-musl", "ld-2."]
        .iter()
        .any(|start| name.starts_with(start))
}

impl Default for Symbols {
    fn default() -> Self {
        Self {
            names: vec![String::new()],
            images: Vec::new(),
            locations: vec![Location::default()],
            stacks: vec![Vec::new()],
            source: BTreeMap::new(),
            code: Vec::new(),
            values: BTreeMap::new(),
            not_inlined: BTreeMap::new(),
            index: Index {
                names: BTreeMap::from([(String::new(), NameId(0))]),
                locations: BTreeMap::from([(Location::default(), LocationId(0))]),
                stacks: BTreeMap::from([(Vec::new(), StackId(0))]),
            },
        }
    }
}

impl Symbols {
    /// The id of `name`, made if it is new.
    pub fn intern(&mut self, name: &str) -> NameId {
        if let Some(id) = self.index.names.get(name) {
            return *id;
        }
        let id = NameId::at(self.names.len());
        self.names.push(name.to_owned());
        self.index.names.insert(name.to_owned(), id);
        id
    }

    /// Makes [`Symbols::intern`] know the names of tables that were filled by hand.
    pub(crate) fn index_names(&mut self) {
        for (id, name) in self.names.iter().enumerate() {
            self.index.names.entry(name.clone()).or_insert(NameId::at(id));
        }
    }

    /// The id of `location`, made if it is new.
    pub fn intern_location(&mut self, location: Location) -> LocationId {
        if let Some(id) = self.index.locations.get(&location) {
            return *id;
        }
        let id = LocationId::at(self.locations.len());
        self.locations.push(location.clone());
        self.index.locations.insert(location, id);
        id
    }

    /// The id of the stack with these addresses, leaf first, made if it is new.
    pub fn intern_stack(&mut self, stack: Vec<LocationId>) -> StackId {
        if let Some(id) = self.index.stacks.get(&stack) {
            return *id;
        }
        let id = StackId::at(self.stacks.len());
        self.stacks.push(stack.clone());
        self.index.stacks.insert(stack, id);
        id
    }

    /// The string behind `id`; empty for ids that the tables lack (a truncated trace).
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id.index()).map_or("", String::as_str)
    }

    /// The text of the source line of a frame; empty where it is not known.
    #[must_use]
    pub fn source_line(&self, frame: &SourceFrame) -> &str {
        self.source.get(&(frame.file, frame.line)).map_or("", |text| self.name(*text))
    }

    /// The addresses of a stack, leaf first.
    #[must_use]
    pub fn stack(&self, id: StackId) -> &[LocationId] {
        self.stacks.get(id.index()).map_or(&[], Vec::as_slice)
    }

    /// The source frames of a stack with inlined ones expanded, leaf first.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = (&Location, &SourceFrame)> {
        self.stack(id)
            .iter()
            .filter_map(|l| self.locations.get(l.index()))
            .flat_map(|l| l.frames.iter().map(move |f| (l, f)))
    }

    /// The function names of a stack, leaf first, inlined ones included.
    pub fn functions(&self, id: StackId) -> impl Iterator<Item = &str> {
        self.frames(id).map(|(_, f)| self.name(f.function))
    }
}
