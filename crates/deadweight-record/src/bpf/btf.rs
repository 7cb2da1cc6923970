//! The kernel's description of its types (BTF): ids of types, and offsets of members.
//!
//! Format: `Documentation/bpf/btf.rst` of the kernel. Reads any bytes safely. Does not use the ids;
//! see `bpf`.

use std::fs;
use std::io;

/// Kinds of types: those that are looked up, and those with data after the header.
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const ENUM64: u32 = 19;
}

/// The first bytes, in this machine's byte order.
const MAGIC: u16 = 0xeb9f;
/// Size of a type's header, and of a structure's member, in bytes.
const HEADER_SIZE: usize = 12;
const MEMBER_SIZE: usize = 12;

/// A BTF description.
pub(super) struct Types {
    bytes: Vec<u8>,
    types: [usize; 2],
    strings: usize,
}

/// One type.
#[derive(Copy, Clone)]
struct Type {
    number: u32,
    kind: u32,
    /// Whether a structure's member offsets also hold the sizes of bit fields.
    has_bit_fields: bool,
    members: usize,
    name: usize,
    /// Offset of the data after the header.
    body: usize,
}

impl Types {
    /// Of the running kernel.
    pub(super) fn of_kernel() -> io::Result<Self> {
        let bytes = fs::read("/sys/kernel/btf/vmlinux").map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => no_btf(),
            _ => error,
        })?;
        Self::read(bytes).ok_or_else(no_btf)
    }

    fn read(bytes: Vec<u8>) -> Option<Self> {
        let magic = u16::from_ne_bytes(*bytes.first_chunk()?);
        let [header, types, length, strings] = [4, 8, 12, 16]
            .map(|at| read_u32(&bytes, at).and_then(|value| usize::try_from(value).ok()));
        let (first, strings) = (header?.checked_add(types?)?, header?.checked_add(strings?)?);
        let types = [first, first.checked_add(length?)?];
        (magic == MAGIC && types[1] <= bytes.len()).then_some(Self { bytes, types, strings })
    }

    /// The id of the typedef with this name.
    pub(super) fn definition(&self, name: &str) -> Option<u32> {
        self.find(kind::TYPEDEF, name).map(|found| found.number)
    }

    /// The offset of this member in this structure, in bytes.
    pub(super) fn member(&self, structure: &str, member: &str) -> Option<u32> {
        let found = self.find(kind::STRUCT, structure)?;
        (0..found.members).find_map(|at| {
            let at = found.body + at * MEMBER_SIZE;
            let bits = read_u32(&self.bytes, at + 8)?;
            let bits = if found.has_bit_fields { bits & 0xff_ffff } else { bits };
            let matches = self.has_name(usize::try_from(read_u32(&self.bytes, at)?).ok()?, member);
            (matches && bits.is_multiple_of(8)).then_some(bits / 8)
        })
    }

    fn find(&self, kind: u32, name: &str) -> Option<Type> {
        self.all().find(|found| found.kind == kind && self.has_name(found.name, name))
    }

    fn all(&self) -> impl Iterator<Item = Type> {
        let (mut at, mut number) = (self.types[0], 0);
        std::iter::from_fn(move || {
            // Id 0 is `void`.
            number += 1;
            let found = self.at(at, number).filter(|found| found.body <= self.types[1])?;
            at = found.body.checked_add(found.body_length()?)?;
            Some(found)
        })
    }

    fn at(&self, at: usize, number: u32) -> Option<Type> {
        let info = read_u32(&self.bytes, at + 4)?;
        Some(Type {
            number,
            kind: info >> 24 & 0x1f,
            has_bit_fields: info >> 31 != 0,
            members: usize::try_from(info & 0xffff).ok()?,
            name: usize::try_from(read_u32(&self.bytes, at)?).ok()?,
            body: at + HEADER_SIZE,
        })
    }

    fn has_name(&self, name: usize, wanted: &str) -> bool {
        let found = self.strings.checked_add(name).and_then(|at| self.bytes.get(at..));
        let rest = found.and_then(|found| found.strip_prefix(wanted.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }
}

impl Type {
    /// Size of the data after the header. None for an unknown kind.
    fn body_length(self) -> Option<usize> {
        Some(match self.kind {
            kind::INT | kind::VAR | kind::DECL_TAG => 4,
            kind::ARRAY => 12,
            kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => self.members * 12,
            kind::ENUM | kind::FUNC_PROTO => self.members * 8,
            other if other < kind::ENUM64 => 0,
            _ => return None,
        })
    }
}

/// The error if a type is not described.
pub(super) fn no_btf() -> io::Error {
    io::Error::other(
        "this kernel has no description of its types (BTF), or one that lacks what is needed",
    )
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|read_u32| u32::from_ne_bytes(*read_u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A description of an integer, a structure with two members, and a typedef.
    fn example() -> Vec<u8> {
        let strings = b"\0int\0task\0flags\0pid\0called\0";
        let name = |wanted: &str| {
            let found = strings.windows(wanted.len()).position(|at| at == wanted.as_bytes());
            u32::try_from(found.unwrap()).unwrap()
        };
        let types = [
            [name("int"), kind::INT << 24, 4].as_slice(),
            &[0x20],
            &[name("task"), kind::STRUCT << 24 | 2, 16],
            &[name("flags"), 1, 0, name("pid"), 1, 64],
            &[name("called"), kind::TYPEDEF << 24, 1],
        ]
        .concat();
        let length = u32::try_from(4 * types.len()).unwrap();
        let header = [u32::from(MAGIC) | 1 << 16, 24, 0, length, length, 27];
        let words = header.iter().chain(&types).flat_map(|read_u32| read_u32.to_ne_bytes());
        words.chain(strings.iter().copied()).collect()
    }

    #[test]
    fn types_and_members_are_found_by_name() {
        let types = Types::read(example()).unwrap();
        assert_eq!(types.definition("called"), Some(3));
        assert_eq!(types.definition("task"), None);
        assert_eq!(types.member("task", "pid"), Some(8));
        assert_eq!(types.member("task", "pi"), None);
    }

    #[test]
    fn a_description_that_was_cut_is_refused_or_lacks_what_is_missing() {
        let all = example();
        for length in 0..all.len() {
            if let Some(types) = Types::read(all[..length].to_vec()) {
                _ = types.definition("called");
                _ = types.member("task", "pid");
            }
        }
    }

    #[test]
    fn the_running_kernel_describes_what_is_used() {
        let Ok(types) = Types::of_kernel() else {
            eprintln!("skipped: this kernel does not describe its types");
            return;
        };
        assert!(types.definition("btf_trace_sys_enter").is_some());
        assert!(types.member("task_struct", "pid").is_some());
    }
}
