//! Debug information: lines, inlined functions and the types of values.
//!
//! In: parsed ELF files and addresses. Out: frames, and type names by size. Does not know symbol tables (`names`),
//! and opens no file (`elf::debug_files`). What made the file is read in `resolve::producer`.

pub(crate) mod lines;
pub(crate) mod value_types;

pub use value_types::value_types;
