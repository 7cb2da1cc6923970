//! Names of machine functions.
//!
//! In: a parsed ELF file and addresses, or a linker name. Out: linker names, bounds of functions, readable names.
//! Does not know DWARF (inlined functions, lines): see `dwarf`. Opens no file.

pub(crate) mod crystal;
pub(crate) mod demangle;
pub(crate) mod pclntab;
pub(crate) mod symbol_table;
