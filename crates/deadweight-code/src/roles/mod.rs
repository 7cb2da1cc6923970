//! The rules that give each instruction its role, one file for each kind of role.
//!
//! - In: a function's body.
//! - Out: a [`Role`] for each instruction, and the [`Shape`] of the whole.
//! - Must not know: samples or costs. A role is a purpose, not a judgement: a copy may be the program's task.
//!
//! If two rules match an instruction, the order in `find` decides: data movement first, then checks, then calls.

mod accumulators;
mod calls;
pub(super) mod checks;
pub(super) mod routine;
mod runs;
mod shape;
mod values;

use crate::body::Body;
use crate::code::{Code, Names};
use crate::decode;
use crate::flow;
use crate::instruction::{Instruction, Kind};
use crate::single_assignment::SingleAssignment;
pub(super) use checks::{AROUND as AROUND_CHECK, ROUND};
pub use shape::Shape;
pub(super) use shape::{ENTRY, spills_arguments};

/// The purpose of an instruction.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The program's own work, as far as the code shows.
    #[default]
    Work,
    /// Sets memory to zero; also a call of a routine that does so.
    Zeroing(Run),
    /// Calls a routine that sets memory to a value just loaded or computed: it does not zero.
    Filling,
    /// Zeroes memory for accumulators, or allocates zeroed memory for them: the code then reads, changes and writes back
    /// elements before anything else fills them.
    AccumulatorZeroing,
    /// Copies a value in memory unchanged; also a call of a routine that does so.
    Copy(Run),
    /// Compares an index with a length, or branches on the result to a panic.
    BoundsCheck {
        /// The index was just loaded: samples here wait for that load rather than for the check.
        after_load: bool,
    },
    /// Any other check that ends in a panic: overflow, nil, division, unwrap.
    OtherCheck,
    /// Part of the garbage collector's write barrier.
    WriteBarrier,
    /// Atomic read-modify-write; or a load nearby of the same memory, which waits for it.
    Atomic,
    /// Sets up the function's frame: saved registers, stack space, Go's stack check.
    Prologue,
    /// Removes the function's frame and returns.
    Epilogue,
    /// Moves arguments and results of a call, or spills values that a call would overwrite, and reloads them.
    Arguments,
    /// The call itself.
    Call,
}

/// Instructions that zero or copy consecutive memory.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// Bytes moved in all, in a loop by one iteration; 0 if only known at run time.
    pub bytes: u32,
    /// Whether it is a loop that does nothing else.
    pub looped: bool,
    /// Where copied bytes come from.
    pub from: Place,
    /// Where they go.
    pub to: Place,
    /// The index of its first instruction: it identifies the run within the function.
    pub at: u32,
}

/// The kind of memory of an operand.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The code does not show it.
    #[default]
    Unknown,
    /// The function's own frame: a local variable, or an argument or result on the stack.
    Frame,
    /// The result of a call: mostly memory just allocated.
    Returned,
    /// Behind a pointer.
    Pointer,
    /// Behind a pointer and an index: an element.
    Element,
    /// At a fixed address.
    Static,
}

/// The kinds of roles that are found on request.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RolesFor {
    /// Copies and clearing.
    pub(crate) moves: bool,
    /// Checks.
    pub(crate) checks: bool,
}

/// A role for each instruction of `body`.
pub(super) fn find(body: &Body<'_, '_>) -> Vec<Role> {
    let mut roles = find_for(body, RolesFor { moves: true, checks: true });
    calls::mark(body, &mut roles);
    roles
}

/// The same without the roles that serve calls, which come last, and with those of these kinds only.
pub(super) fn find_for(body: &Body<'_, '_>, wanted: RolesFor) -> Vec<Role> {
    let mut roles = vec![Role::Work; body.instructions.len()];
    if wanted.moves {
        runs::mark(body, &mut roles);
        accumulators::mark(body, &mut roles);
    }
    atomics(body, &mut roles);
    if wanted.checks {
        checks::mark(body, &mut roles);
    }
    roles
}

/// If `body` is small, so that calling it costs about as much as running it: the calls of its rare cases. Small: code
/// without a loop whose other calls are panics. None if it is not small.
pub(super) fn calls_of_small(body: &Body<'_, '_>) -> Option<Vec<Instruction>> {
    /// About the number of instructions that compilers inline on request, at three to four bytes each.
    const SMALL: usize = 64;
    let at_work = |i: &&Instruction| !matches!(i.kind, Kind::Nop | Kind::Trap);
    let panics = |i: &Instruction| {
        use routine::Routine as R;
        let routine = body.callee(i).and_then(routine::named);
        matches!(routine, Some(R::BoundsPanic | R::OtherPanic | R::PanicValue | R::StackGrowth))
    };
    if body.instructions.iter().filter(at_work).count() > SMALL {
        return None;
    }
    let mut calls = Vec::new();
    // `guarded`: past a branch. `rare`: past such a call, until a jump or a jump target.
    let (mut guarded, mut rare) = (false, false);
    for (at, i) in body.instructions.iter().enumerate() {
        rare &= !body.entered[at];
        match i.kind {
            Kind::Call(_) if panics(i) => {}
            Kind::Call(_) if guarded => {
                calls.push(*i);
                rare = true;
            }
            Kind::Call(_) | Kind::CopyBlock | Kind::FillBlock => return None,
            // A rare case behind the hot part jumps back to it.
            Kind::Jump(_) if rare => {}
            // A jump back is a loop if it forms a cycle; a jump to the entry follows the growth of the stack.
            _ if i.target().is_some_and(|to| comes_round(body, to, at)) => return None,
            _ => {}
        }
        guarded |= matches!(i.kind, Kind::Branch(_));
        rare &= i.falls_through();
    }
    Some(calls)
}

/// Whether a jump at instruction `at` back to `target` forms a loop. Not for the entry, where Go jumps to after the stack
/// has grown.
fn comes_round(body: &Body<'_, '_>, target: u64, at: usize) -> bool {
    let [first, ..] = body.instructions else { return false };
    let back = target <= body.instructions[at].addr && target != first.addr;
    let round = |from| flow::reaches(body.instructions, (from, at), |_| true);
    back && body.at(target).is_none_or(round)
}

/// A part of a function, from where nothing is known of registers.
#[derive(Copy, Clone)]
pub(super) struct Part<'p> {
    pub(super) instructions: &'p [Instruction],
    /// As in [`Body`].
    pub(super) entered: &'p [bool],
    /// The first instructions of the function.
    pub(super) entry: &'p [Instruction],
}

/// The roles of what moves memory in a part of a function. `alone`: whether no more than one jump leads to an instruction.
/// None if a loop with a constant count is among the first `count` instructions: what it clears the whole function decides.
pub(super) fn runs_of_part(
    code: &Code<'_>,
    part: Part<'_>,
    names: &Names<'_>,
    alone: &dyn Fn(usize) -> bool,
    count: usize,
) -> Option<Vec<Role>> {
    let convention = decode::convention(code);
    let values = values::Values::fresh(part.entry, &convention);
    let single = SingleAssignment::unknown(convention.saved);
    let Part { instructions, entered, .. } = part;
    let body = Body { instructions, entered, convention, names, single };
    let mut roles = vec![Role::Work; instructions.len()];
    let counted = runs::mark_from(&body, values, alone, &mut roles);
    counted.is_none_or(|at| at >= count).then_some(roles)
}

/// Whether the index of the check at branch `at` of a part, which goes on at `hot`, was just loaded.
pub(super) fn is_after_load(code: &Code<'_>, part: Part<'_>, at: usize, hot: usize) -> bool {
    let convention = decode::convention(code);
    let single = SingleAssignment::unknown(convention.saved);
    let Part { instructions, entered, .. } = part;
    let body = Body { instructions, entered, convention, names: &|_| None, single };
    checks::is_after_load(&body, at, hot)
}

/// The shape of `body`.
pub(super) fn shape(body: &Body<'_, '_>) -> Shape {
    shape::of(body)
}

/// Marks atomic operations, and loads nearby of the same memory, which wait for them.
fn atomics(body: &Body<'_, '_>, roles: &mut [Role]) {
    /// How far from the operation.
    const NEAR: usize = 24;
    let place =
        |i: &Instruction| i.memory.filter(|m| m.index.is_none()).map(|m| (m.base, m.offset));
    for (at, instruction) in body.instructions.iter().enumerate() {
        if instruction.kind != Kind::Atomic {
            continue;
        }
        roles[at] = Role::Atomic;
        let near = at.saturating_sub(NEAR)..body.instructions.len().min(at + NEAR);
        for other in near {
            let load = &body.instructions[other];
            if load.kind == Kind::Load && place(load) == place(instruction) {
                claim(roles, other, Role::Atomic);
            }
        }
    }
}

/// Whether the routine called `name` (of the C library or of a language's runtime) copies or zeroes memory: then its
/// caller's code shows how much.
#[must_use]
pub fn moves_blocks(name: &str) -> bool {
    routine::named(name).is_some_and(routine::Routine::moves)
}

/// Gives instruction `i` a role, if it has none yet.
fn claim(roles: &mut [Role], i: usize, role: Role) {
    if roles[i] == Role::Work {
        roles[i] = role;
    }
}
