//! Which opcodes compute with floating-point numbers, by one or several: enough to compare a loop with its vectorised form.
//!
//! Not registers; see `x86::floats`.

use super::Sort;

/// A set of operations.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operations(u8);

impl Operations {
    const ADD: Self = Self(1);
    const MULTIPLY: Self = Self(2);
    const DIVIDE: Self = Self(4);
    const ROOT: Self = Self(8);
    const LEAST: Self = Self(16);
    const CONVERT: Self = Self(32);

    /// Those that are in either.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of them are in `others`.
    pub(crate) fn are_in(self, others: Self) -> bool {
        self.0 & !others.0 == 0
    }
}

/// What an opcode of the second table computes. `single`: by a prefix `f2` or `f3`, or what stands for it.
pub(super) fn sort(opcode: u8, single: bool) -> Sort {
    let of = if single { Sort::Scalar } else { Sort::Packed };
    match opcode {
        0x58 | 0x5c => of(Operations::ADD),
        0x59 => of(Operations::MULTIPLY),
        0x5e | 0x53 => of(Operations::DIVIDE),
        0x51 => of(Operations::ROOT),
        // An inverse root.
        0x52 => of(Operations::ROOT.and(Operations::DIVIDE)),
        0x5d | 0x5f => of(Operations::LEAST),
        0x5a => of(Operations::CONVERT),
        0x2a | 0x2c | 0x2d if single => Sort::Scalar(Operations::CONVERT),
        0x5b | 0xe6 => Sort::Packed(Operations::CONVERT),
        _ => Sort::Other,
    }
}

/// The same of the instructions of FMA: the odd ones use one number.
pub(super) fn multiplied_and_added(opcode: u8) -> Sort {
    let both = Operations::ADD.and(Operations::MULTIPLY);
    if opcode & 1 == 1 && opcode & 0xf >= 9 { Sort::Scalar(both) } else { Sort::Packed(both) }
}
