//! What addresses mean: images, functions, lines and interned call stacks of a sealed trace.
//!
//! `deadweight-seal` or the text reader fills the tables; the analysis only looks entries up. Not for reading ELF or
//! DWARF.

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
    /// Source language of the main part by its usual name (`C++`, `Rust`), or empty.
    pub language: NameId,
    /// The compiler that produced it (`GNU C17 12.2.0 -O2`, `go1.26.8`), or empty.
    pub producer: NameId,
    /// Whether the code was optimised, where that is known.
    pub optimised: Option<bool>,
    /// Whether it has function names.
    pub has_symbols: bool,
    /// Whether it has line numbers.
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
    /// Address of the first byte.
    pub addr: FileAddr,
    /// The function.
    pub name: NameId,
    /// From its entry to its end.
    pub bytes: Vec<u8>,
    /// Names of the code at the addresses that it calls or jumps to, or behind the pointers that it calls
    /// through, in ascending order. A stub has the name of its target; a separate part of the function that ends
    /// in a panic has the name of the routine that it calls.
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
    /// Types of values that these functions handle, by their size in bytes. Only where a function handles a single
    /// type of that size.
    pub values: BTreeMap<(NameId, u32), NameId>,
    /// By function name: why the compiler did not inline it, in the compiler's words. Not part of recordings: the
    /// compiler is asked when a report is made.
    pub not_inlined: BTreeMap<String, String>,
    index: Index,
}

/// Where each interned entry is. Entries pushed into a table directly are missing here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Index {
    names: BTreeMap<String, NameId>,
    locations: BTreeMap<Location, LocationId>,
    stacks: BTreeMap<Vec<LocationId>, StackId>,
}

/// The path of the image for JIT-compiled code that its process listed by name.
pub const JIT_IMAGE: &str = "[jit]";

/// Whether an image is the C library or its dynamic linker. Users don't change them, and their debug information,
/// where installed, would be read for every run of every program.
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
    /// The id of `name`; a new one if it is new.
    pub fn intern(&mut self, name: &str) -> NameId {
        if let Some(id) = self.index.names.get(name) {
            return *id;
        }
        let id = NameId::at(self.names.len());
        self.names.push(name.to_owned());
        self.index.names.insert(name.to_owned(), id);
        id
    }

    /// Makes [`Symbols::intern`] find the names of tables that were filled directly.
    pub(crate) fn index_names(&mut self) {
        for (id, name) in self.names.iter().enumerate() {
            self.index.names.entry(name.clone()).or_insert(NameId::at(id));
        }
    }

    /// The id of `location`; a new one if it is new.
    pub fn intern_location(&mut self, location: Location) -> LocationId {
        if let Some(id) = self.index.locations.get(&location) {
            return *id;
        }
        let id = LocationId::at(self.locations.len());
        self.locations.push(location.clone());
        self.index.locations.insert(location, id);
        id
    }

    /// The id of the stack with these addresses, leaf first; a new one if it is new.
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

    /// The text of a frame's source line; empty where unknown.
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
