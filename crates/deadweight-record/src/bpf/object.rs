//! The compiled programs: reads them out of the object file, and fills in the maps and numbers that they name.
//!
//! Format: ELF for BPF, as clang writes it. Does not load programs; see `sys`.

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection, ObjectSymbol, RelocationTarget};
use std::io;
use std::os::fd::RawFd;

/// One instruction, as `struct bpf_insn`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u8,
    /// The destination register in the low half, the source register in the high half.
    registers: u8,
    offset: i16,
    value: u32,
}

/// Loads a number of 64 bits, of which the second half is in the next instruction.
const LOAD_IMM_64: u8 = 0x18;
/// `BPF_PSEUDO_MAP_FD` as source register: the number is a map's descriptor.
const MAP: u8 = 1 << 4;

/// What stands for a name that the programs leave open.
#[derive(Copy, Clone, Debug)]
pub(super) enum Value {
    /// A map.
    Map(RawFd),
    /// A number.
    Number(u64),
}

/// The object file.
pub(super) struct Object<'a>(ElfFile64<'a, Endianness>);

impl<'a> Object<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> io::Result<Self> {
        ElfFile64::parse(bytes).map(Self).map_err(io::Error::other)
    }

    /// The program of this section. `value` gives what stands for a name.
    ///
    /// # Errors
    ///
    /// If there is no such section, or a name has no value.
    pub(super) fn program(
        &self,
        section: &str,
        value: impl Fn(&str) -> Option<Value>,
    ) -> io::Result<Vec<Instruction>> {
        let missing = || io::Error::other(format!("no BPF program {section}"));
        let section = self.0.section_by_name(section).ok_or_else(missing)?;
        let code = section.data().map_err(io::Error::other)?;
        let mut program: Vec<_> = code.as_chunks::<8>().0.iter().map(instruction).collect();
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            let symbol = self.0.symbol_by_index(symbol).map_err(io::Error::other)?;
            let name = symbol.name().map_err(io::Error::other)?;
            let unknown = || io::Error::other(format!("a BPF program needs {name}"));
            let value = value(name).ok_or_else(unknown)?;
            let at = usize::try_from(offset / 8).map_err(io::Error::other)?;
            let pair = program.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>());
            fill_in(pair.filter(|pair| pair[0].code == LOAD_IMM_64).ok_or_else(unknown)?, value);
        }
        Ok(program)
    }
}

fn instruction(bytes: &[u8; 8]) -> Instruction {
    let [code, registers, offset @ .., a, b, c, d] = *bytes;
    Instruction {
        code,
        registers,
        offset: i16::from_le_bytes(offset),
        value: u32::from_le_bytes([a, b, c, d]),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a number is loaded as two halves")]
fn fill_in(pair: &mut [Instruction; 2], value: Value) {
    match value {
        Value::Map(map) => {
            pair[0].registers |= MAP;
            (pair[0].value, pair[1].value) = (map.cast_unsigned(), 0);
        }
        Value::Number(number) => {
            (pair[0].value, pair[1].value) = (number as u32, (number >> 32) as u32);
        }
    }
}
