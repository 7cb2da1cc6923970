//! Divisions of integers by a value that is not a constant.
//!
//! Compilers turn a division by a constant into a multiplication, unless they optimise for size: then the constant is in
//! a register. Not for divisions of floating-point numbers.

use super::Scan;
use crate::decode;
use crate::instruction::{Division, Kind};

/// How far back the constant in a register is searched.
const LOOK_BACK: usize = 64;

/// Whether instruction `at` divides by a variable.
pub(super) fn by_variable(scan: &Scan<'_, '_>, at: usize) -> bool {
    let instructions = &scan.function.instructions;
    let division = decode::division(scan.code, &instructions[at]);
    let Some(Division::Integer(divisor)) = division else { return false };
    let Some(register) = divisor else { return true };
    let mut before = instructions[..at].iter().rev().take(LOOK_BACK);
    let sets = before.find(|i| i.writes.has(register));
    !sets.is_some_and(|i| matches!(i.kind, Kind::Constant(_)) && i.data[0] == Some(register))
}
