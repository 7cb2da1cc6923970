//! Divisions of integers by a value that is not a constant.
//!
//! Compilers turn a division by a constant into a multiplication, unless they optimise for size: then the constant is in
//! a register. Not for divisions of floating-point numbers.

use crate::code::Code;
use crate::decode;
use crate::instruction::{Division, Instruction, Kind};

/// How far back the constant in a register is searched.
pub(super) const LOOK_BACK: usize = 64;

/// Whether instruction `at` divides by a variable.
pub(super) fn by_variable(instructions: &[Instruction], code: &Code<'_>, at: usize) -> bool {
    let division = decode::division(code, &instructions[at]);
    let Some(Division::Integer(divisor)) = division else { return false };
    let Some(register) = divisor else { return true };
    let mut before = instructions[..at].iter().rev().take(LOOK_BACK);
    let sets = before.find(|i| i.writes.has(register));
    !sets.is_some_and(|i| matches!(i.kind, Kind::Constant(_)) && i.data[0] == Some(register))
}
