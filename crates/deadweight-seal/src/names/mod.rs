//! Names of machine functions.
//!
//! - In: a parsed ELF file and addresses, or a linker name.
//! - Out: linker names, bounds of functions, readable names.
//! - Must not know: DWARF (inlined functions, lines; see `dwarf`), or how files are opened.

pub(crate) mod crystal;
pub(crate) mod demangle;
pub(crate) mod pclntab;
pub(crate) mod rust;
pub(crate) mod symbol_table;

/// Takes a number off the front, seven bits per byte (unsigned LEB128), as Go's tables hold it.
pub(crate) fn varint(rest: &mut &[u8]) -> Option<u32> {
    let (mut value, mut shift) = (0_u32, 0);
    loop {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
}
