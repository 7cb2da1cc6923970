//! Debug information: lines, inlined functions and the types of values.
//!
//! - In: parsed ELF files and addresses.
//! - Out: frames, and type names by size.
//! - Must not know: symbol tables (`names`), or how files are found (`elf::debug_files`),
//!   except for the parts of split debug information, whose names only it knows.
//!
//! The language and compiler of a file are read in `resolve::producer`.

pub(crate) mod lines;
pub(crate) mod split;
pub(crate) mod value_types;

use gimli::{EndianSlice, RunTimeEndian};

pub use value_types::value_types;

/// The bytes of DWARF, borrowed.
pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
