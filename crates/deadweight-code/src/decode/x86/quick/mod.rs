//! The length of x86-64 instructions, and the few facts that decide whether a function is worth reading in full.
//!
//! Several times as fast as the complete decoder, which is why it exists: most functions of a program hold nothing that
//! `scan` looks for. Not for roles. Intel's manual, volume 2, chapter 2 and appendix A.

mod floats;

use crate::instruction::Reg;
pub(crate) use floats::Operations;

/// What an instruction is, as far as it matters.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Nothing of interest.
    #[default]
    Other,
    /// A branch or jump to a fixed target.
    To {
        /// The target.
        target: u64,
        /// Whether the next instruction may follow.
        falls: bool,
    },
    /// A call of a fixed target.
    Call(u64),
    /// A call or jump through memory at a fixed address, or a load of a pointer from there.
    Through(u64, Way),
    /// Ends straight code: a return, a jump or call through a register or other memory, `int3`, `ud2`.
    Leaves(Way),
    /// Rarely used instructions that the next one does not follow: `ud0`, `ud1`, `int1`, `iret`, `rsm`, `sysret`, `sysexit`.
    Stops,
    /// A `lock` prefix or an exchange with memory, or a division of integers.
    Slow,
    /// A block instruction with a `rep` prefix.
    Block,
    /// A constant of this size into a register.
    Constant(u64),
    /// Something else, perhaps a constant, into the register of the third argument (System V AMD64 ABI).
    Third,
    /// Loads so many bytes.
    Load(u32),
    /// Stores so many bytes.
    Store(u32),
    /// Stores a register to the frame, below the frame pointer.
    Spill,
    /// Counts a register down by one.
    Step,
    /// Computes with one floating-point number, or one of a vector register's: which operations.
    Scalar(Operations),
    /// The same with all numbers of a vector register.
    Packed(Operations),
}

/// How an instruction goes on from something that is not in its own bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The next instruction follows: it only loads.
    Loads,
    /// The next instruction follows in the end.
    Calls,
    /// It may go anywhere.
    Jumps,
    /// It ends the function, or the program.
    Ends,
}

/// The prefixes of an instruction.
#[derive(Copy, Clone, Default)]
struct Prefixes {
    /// 0x66.
    narrow: bool,
    repeated: bool,
    locked: bool,
    /// REX.W, VEX.W.
    wide: bool,
    /// REX.R and REX.B: the second half of the registers, for the middle and the last register of the encoding.
    high: bool,
    high_base: bool,
    /// Bytes of a vector register, where the prefix says so.
    vector: u32,
    /// Whether a prefix says that a vector instruction uses one number only.
    single: bool,
}

/// The instruction at the start of `code`, which lies at `addr`: its length, at least 1, and its sort. None at the end, and
/// for what the table does not know.
#[inline]
pub(crate) fn step(code: &[u8], addr: u64) -> Option<(usize, Sort)> {
    decoded(code, addr).filter(|(len, _)| *len <= code.len())
}

/// The same; the instruction may be longer than `code`.
#[inline]
fn decoded(code: &[u8], addr: u64) -> Option<(usize, Sort)> {
    let mut prefixes = Prefixes::default();
    let mut at = 0;
    loop {
        match *code.get(at)? {
            0x66 => prefixes.narrow = true,
            0xf2 | 0xf3 => prefixes.repeated = true,
            0xf0 => prefixes.locked = true,
            0x67 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 => {}
            _ => break,
        }
        at += 1;
        if at > 14 {
            return None;
        }
    }
    let mut opcode = *code.get(at)?;
    if opcode & 0xf0 == 0x40 {
        prefixes.wide = opcode & 8 != 0;
        prefixes.high = opcode & 4 != 0;
        prefixes.high_base = opcode & 1 != 0;
        at += 1;
        opcode = *code.get(at)?;
    }
    at += 1;
    match opcode {
        0x0f => two_byte(code, addr, at, prefixes),
        0xc5 => {
            let last = *code.get(at)?;
            prefixes.vector = if last & 4 != 0 { 32 } else { 16 };
            prefixes.single = last & 2 != 0;
            vector(code, at + 1, 1, prefixes)
        }
        0xc4 => {
            let (map, last) = (*code.get(at)? & 0x1f, *code.get(at + 1)?);
            prefixes.vector = if last & 4 != 0 { 32 } else { 16 };
            prefixes.single = last & 2 != 0;
            vector(code, at + 2, map, prefixes)
        }
        0x62 => {
            let (map, last) = (*code.get(at)? & 7, *code.get(at + 2)?);
            prefixes.vector = 16 << (last >> 5 & 3).min(2);
            prefixes.single = *code.get(at + 1)? & 2 != 0;
            vector(code, at + 3, map, prefixes)
        }
        _ => one_byte(code, addr, at, opcode, prefixes),
    }
}

/// The number of RDX.
const THIRD: u8 = 2;

/// The general register that an instruction sets whole, and the constant that it gets, if it is one: for constants, moves,
/// loads and addresses. None for what else there is.
pub(crate) fn set(bytes: &[u8]) -> Option<(Reg, Option<u64>)> {
    let at = bytes.iter().position(|byte| *byte != 0x66)?;
    let (rex, rest) = match bytes.get(at..)? {
        [rex, rest @ ..] if rex & 0xf0 == 0x40 => (*rex, rest),
        rest => (0, rest),
    };
    let register = |high: u8, low: u8| Reg::general((high & 1) << 3 | low & 7);
    let value = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    match rest {
        [opcode @ 0xb8..=0xbf, rest @ ..] => Some((register(rex, *opcode), Some(value(rest)))),
        [0xc7, operand, rest @ ..] if *operand >= 0xc0 => {
            Some((register(rex, *operand), Some(value(rest))))
        }
        [0x89, operand, ..] if *operand >= 0xc0 => Some((register(rex, *operand), None)),
        [0x8b | 0x8d, operand, ..] => Some((register(rex >> 2, operand >> 3), None)),
        _ => None,
    }
}

/// An operand in memory or a register.
#[derive(Copy, Clone)]
struct Operand {
    /// Bytes of the operand's encoding.
    len: usize,
    /// The register or the rest of the opcode.
    middle: u8,
    in_memory: bool,
    /// The last register, where it is no memory.
    last: u8,
    /// Whether the address is the frame pointer minus something.
    in_frame: bool,
    /// The distance from the next instruction, where that is the whole address.
    fixed: Option<i32>,
}

/// The operand whose encoding begins at `at`.
#[inline]
fn operand(code: &[u8], at: usize) -> Option<Operand> {
    let byte = *code.get(at)?;
    let (mode, base) = (byte >> 6, byte & 7);
    let mut len = 1;
    let mut fixed = None;
    let mut in_frame = false;
    if mode != 3 {
        let mut far = mode == 2;
        if base == 4 {
            len += 1;
            far |= mode == 0 && *code.get(at + 1)? & 7 == 5;
        } else if base == 5 {
            far |= mode == 0;
            in_frame = mode != 0 && *code.get(at + 1)? & 0x80 != 0 || mode == 2;
            if mode == 0 {
                fixed = Some(i32::from_le_bytes(code.get(at + 1..at + 5)?.try_into().ok()?));
            }
        }
        len += if far { 4 } else { usize::from(mode == 1) };
    }
    let (middle, in_memory) = (byte >> 3 & 7, mode != 3);
    Some(Operand { len, middle, in_memory, last: base, in_frame, fixed })
}

/// An instruction of the first table, whose opcode ends before `at`.
#[inline]
fn one_byte(
    code: &[u8],
    addr: u64,
    at: usize,
    opcode: u8,
    prefixes: Prefixes,
) -> Option<(usize, Sort)> {
    // The size of an immediate that follows the operand size.
    let full = if prefixes.narrow && !prefixes.wide { 2 } else { 4 };
    let plain = |len: usize, sort: Sort| Some((at + len, sort));
    let size = match opcode {
        0x00..=0x3f => match opcode & 7 {
            0..=3 => 0,
            4 => return plain(1, Sort::Other),
            5 => return plain(full, Sort::Other),
            _ => return None,
        },
        0x63 | 0x84..=0x8e | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe | 0xff => 0,
        // Other forms are AMD's XOP instructions.
        0x8f if *code.get(at)? >> 3 & 7 == 0 => 0,
        0x69 | 0x81 | 0xc7 => full,
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => 1,
        0xf6 | 0xf7 => {
            let tests = *code.get(at)? >> 3 & 7 < 2;
            let size = if opcode == 0xf6 { 1 } else { full };
            if tests { size } else { 0 }
        }
        _ => return without_operand(code, addr, at, opcode, full, prefixes),
    };
    with_operand(code, addr, at, opcode, size, prefixes)
}

/// The same without an operand; an immediate that follows the operand size has `full` bytes.
fn without_operand(
    code: &[u8],
    addr: u64,
    at: usize,
    opcode: u8,
    full: usize,
    prefixes: Prefixes,
) -> Option<(usize, Sort)> {
    let plain = |len: usize, sort: Sort| Some((at + len, sort));
    match opcode {
        0xb8..=0xbf => {
            let size = if prefixes.wide { 8 } else { full };
            let bytes = code.get(at..at + size)?;
            let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            plain(size, Sort::Constant(value))
        }
        0x70..=0x7f | 0xe0..=0xe3 => near(code, addr, at, 1, true),
        0xeb => near(code, addr, at, 1, false),
        0xe9 => near(code, addr, at, 4, false),
        0xe8 => match near(code, addr, at, 4, false)? {
            (len, Sort::To { target, .. }) => Some((len, Sort::Call(target))),
            other => Some(other),
        },
        0xa4..=0xa5 | 0xaa..=0xab if prefixes.repeated => plain(0, Sort::Block),
        0xc2 | 0xca => plain(2, Sort::Leaves(Way::Ends)),
        0xc3 | 0xcb | 0xcc => plain(0, Sort::Leaves(Way::Ends)),
        0xcf | 0xf1 => plain(0, Sort::Stops),
        0xc8 => plain(3, Sort::Other),
        0xb2 if !prefixes.high_base => plain(1, Sort::Third),
        0x68 | 0xa9 => plain(full, Sort::Other),
        0x6a | 0xa8 | 0xb0..=0xb7 | 0xcd | 0xe4..=0xe7 => plain(1, Sort::Other),
        0x50..=0x5f | 0x6c..=0x6f | 0x90..=0x99 | 0x9b..=0x9f | 0xa4..=0xa7 | 0xaa..=0xaf => {
            plain(0, Sort::Other)
        }
        0xc9 | 0xd7 | 0xec..=0xef | 0xf4..=0xf5 | 0xf8..=0xfd => plain(0, Sort::Other),
        _ => None,
    }
}

/// A branch, jump or call with a distance of `size` bytes.
#[inline]
fn near(code: &[u8], addr: u64, at: usize, size: usize, falls: bool) -> Option<(usize, Sort)> {
    let bytes = code.get(at..at + size)?;
    let distance = match bytes.try_into() {
        Ok(bytes) => i32::from_le_bytes(bytes),
        Err(_) => i32::from(bytes[0].cast_signed()),
    };
    let len = at + size;
    let target = addr.wrapping_add(len as u64).wrapping_add_signed(distance.into());
    Some((len, Sort::To { target, falls }))
}

/// An instruction of the first table with an operand, and an immediate of `size` bytes behind it.
#[inline]
fn with_operand(
    code: &[u8],
    addr: u64,
    at: usize,
    opcode: u8,
    size: usize,
    prefixes: Prefixes,
) -> Option<(usize, Sort)> {
    let operand = operand(code, at)?;
    let len = at + operand.len + size;
    let word = if prefixes.wide { 8 } else { 4 };
    let fixed = |way| {
        let end = addr.wrapping_add(len as u64);
        let to = |distance: i32| Sort::Through(end.wrapping_add_signed(distance.into()), way);
        operand.fixed.map(to)
    };
    let sort = match (opcode, operand.middle) {
        _ if prefixes.locked => Sort::Slow,
        (0x86 | 0x87, _) if operand.in_memory => Sort::Slow,
        (0xf6 | 0xf7, 6 | 7) => Sort::Slow,
        (0xff, 2..=3) => fixed(Way::Calls).unwrap_or(Sort::Leaves(Way::Calls)),
        (0xff, 4..=5) => fixed(Way::Jumps).unwrap_or(Sort::Leaves(Way::Jumps)),
        (0xff, 1) => Sort::Step,
        (0x83, 5) if code.get(len - 1) == Some(&1) => Sort::Step,
        (0x83, 0) if code.get(len - 1) == Some(&0xff) => Sort::Step,
        (0x88 | 0x89, _) if operand.in_frame => Sort::Spill,
        (0x89, _) if operand.in_memory => Sort::Store(word),
        (0x88, _) if operand.in_memory => Sort::Store(1),
        (0xc7, _) if operand.in_memory => Sort::Store(word),
        (0xc7, _) => {
            let value = code.get(len - 4..len)?.try_into().map_or(0, u32::from_le_bytes);
            Sort::Constant(value.into())
        }
        (0x8b, _) if operand.in_memory => fixed(Way::Loads).unwrap_or(Sort::Load(word)),
        (0x8a, _) if operand.in_memory => Sort::Load(1),
        (0x88 | 0x89 | 0xc6, _) if operand.last == THIRD && !prefixes.high_base => Sort::Third,
        (0x8a | 0x8b, THIRD) if !prefixes.high => Sort::Third,
        _ => Sort::Other,
    };
    Some((len, sort))
}

/// Whether an instruction of the second table (`0f`, or map 1 of VEX) has an immediate byte.
fn has_immediate(opcode: u8) -> bool {
    matches!(opcode, 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 | 0x0f)
}

/// An instruction behind `0f`.
#[inline]
fn two_byte(code: &[u8], addr: u64, at: usize, prefixes: Prefixes) -> Option<(usize, Sort)> {
    let opcode = *code.get(at)?;
    let at = at + 1;
    match opcode {
        0x05..=0x09
        | 0x0b
        | 0x0e
        | 0x30..=0x37
        | 0x77
        | 0xa0..=0xa2
        | 0xa8..=0xaa
        | 0xc8..=0xcf => {
            let sort = match opcode {
                0x0b => Sort::Leaves(Way::Ends),
                0x07 | 0x35 | 0xaa => Sort::Stops,
                _ => Sort::Other,
            };
            Some((at, sort))
        }
        0x80..=0x8f => near(code, addr, at, 4, true),
        0x38 => Some((at + 1 + operand(code, at + 1)?.len, Sort::Other)),
        0x3a => Some((at + 2 + operand(code, at + 1)?.len, Sort::Other)),
        0x04 | 0x0a | 0x0c | 0x20..=0x27 | 0x39 | 0x3b..=0x3f => None,
        _ => {
            let operand = operand(code, at)?;
            let len = at + operand.len + usize::from(has_immediate(opcode));
            let narrow = prefixes.repeated && matches!(opcode, 0x10 | 0x11);
            let bytes = if narrow { 8 } else { 16 };
            let sort = match opcode {
                _ if prefixes.locked => Sort::Slow,
                0xb9 | 0xff => Sort::Stops,
                0x2a | 0x2c | 0x2d | 0x51..=0x5f | 0xe6 => floats::sort(opcode, prefixes.repeated),
                _ if operand.in_memory => moved(opcode, bytes),
                _ => Sort::Other,
            };
            Some((len, sort))
        }
    }
}

/// An instruction with a VEX or EVEX prefix, whose opcode is at `at`, in this map.
fn vector(code: &[u8], at: usize, map: u8, prefixes: Prefixes) -> Option<(usize, Sort)> {
    let opcode = *code.get(at)?;
    if map == 1 && opcode == 0x77 {
        return Some((at + 1, Sort::Other));
    }
    let operand = operand(code, at + 1)?;
    let immediate = map == 3 || map == 1 && has_immediate(opcode);
    let len = at + 1 + operand.len + usize::from(immediate);
    let sort = match (map, opcode) {
        (1, 0x2a | 0x2c | 0x2d | 0x51..=0x5f | 0xe6) => floats::sort(opcode, prefixes.single),
        (1, _) if operand.in_memory => moved(opcode, prefixes.vector),
        (2, 0x96..=0x9f | 0xa6..=0xaf | 0xb6..=0xbf) => floats::multiplied_and_added(opcode),
        _ => Sort::Other,
    };
    Some((len, sort))
}

/// What a vector instruction with a memory operand moves.
fn moved(opcode: u8, bytes: u32) -> Sort {
    match opcode {
        0x10 | 0x28 | 0x6f | 0x6e | 0x7e | 0xf0 | 0x12 | 0x16 => Sort::Load(bytes),
        0x11 | 0x29 | 0x7f | 0xd6 | 0xe7 | 0x2b | 0x13 | 0x17 => Sort::Store(bytes),
        _ => Sort::Other,
    }
}

#[cfg(test)]
mod tests;
