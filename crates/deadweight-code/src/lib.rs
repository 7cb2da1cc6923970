//! Machine code of one function into a role for every instruction: what is work, and what is
//! zeroing, copying, checking, calling or locking on its behalf.
//!
//! - In: the bytes of a function ([`Code`]), and names for the addresses that it calls ([`Names`]).
//! - Out: a [`Function`], whose instructions have a [`Role`] each, and which
//!   [charges](Function::charge) a sampled address to the instruction that the sample waited for.
//! - Must not know: where bytes and names come from (the sealer), or what a role costs (the cost classes). Any bytes are
//!   accepted, in time and memory proportional to their number.
//!
//! Read in this order: [`instruction`] (the few kinds of instructions that rules need), `decode` (the only place that
//! knows an architecture), [`roles`] (the rules, one file for each kind of role), `function` (the result, its loops and
//! listings). Then [`machine_code`], which joins functions and samples of a trace; [`removal`], which finds the bytes to
//! replace so that a cost is not paid; [`scan`], what a function shows before it runs; `probe_site`, where a probe counts
//! calls best; and [`symbol_role`], the purpose of
//! library functions by name. A *call* is a call of a function here.

#![forbid(unsafe_code)]

mod abi;
mod body;
mod code;
mod decode;
mod flow;
mod function;
pub mod instruction;
pub mod machine_code;
mod probe_site;
pub mod removal;
pub mod roles;
pub mod scan;
mod single_assignment;
pub mod symbol_role;

/// Whether two pieces of code do the same, each at its place: all instructions are equal but for their distances to what
/// `same` takes for one thing (an address in `a`, one in `b`). On aarch64 only code at one address is taken to be the same.
#[must_use]
pub fn is_same_code(a: &Code<'_>, b: &Code<'_>, same: &dyn Fn(u64, u64) -> bool) -> bool {
    decode::is_same(a, b, same)
}

#[cfg(test)]
mod tests;

pub use abi::Abi;
pub use code::{Code, Names};
pub use flow::first_call;
pub use function::Function;
pub use function::listing::Line;
pub use function::loops::Loop;
pub use function::search::{Found, Search};
pub use function::steps::Step;
pub use function::turns::{Access, Cycle, Pattern};
pub use probe_site::probe_site;
pub use roles::{Place, Role, Run, Shape, moves_blocks};
