//! The rules that find each instruction's role, one file per kind.
//!
//! A role says what an instruction is there for, not that it is waste: a copy may be the program's
//! job. Where two rules want an instruction, the order of [`find`] decides: what moves data first,
//! then checks, then what calling needs.

mod accumulators;
mod calls;
pub(super) mod checks;
pub(super) mod routine;
mod runs;
mod shape;
mod values;

use crate::body::Body;
use crate::flow;
use crate::instruction::{Instruction, Kind};
pub use shape::Shape;

/// What an instruction is there for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The program's own work, as far as the code tells.
    #[default]
    Work,
    /// Sets memory to zero; also a call that does.
    Zeroing(Run),
    /// Calls what sets memory to a value that was just loaded or computed: nothing is cleared.
    Filling,
    /// Sets memory to zero in which the code then counts, or asks for memory that is: its elements are
    /// read, changed and written back before anything else fills them.
    AccumulatorZeroing,
    /// Moves a value from one place in memory to another, unchanged; also a call that does.
    Copy(Run),
    /// Compares an index with a length, or branches on that to a panic.
    BoundsCheck {
        /// The index was itself just loaded: samples here wait for that load rather than for
        /// the check.
        after_load: bool,
    },
    /// Any other check that ends in a panic: overflow, nil, division, unwrap.
    OtherCheck,
    /// Serves the garbage collector's knowledge of pointers that are written.
    WriteBarrier,
    /// Reads, changes and writes memory as one step for all CPUs; or loads what such a step nearby
    /// changes, and waits for it.
    Atomic,
    /// Sets up a function's frame: saved registers, stack space, Go's check of the stack.
    Prologue,
    /// Takes a function's frame down and returns.
    Epilogue,
    /// Moves values to where a callee looks for them, its results to where they are kept, or what
    /// a call would lose into the frame and back.
    Arguments,
    /// The call itself.
    Call,
}

/// A stretch of instructions that zero or copy together.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// Bytes moved by the stretch, in a loop by one round of it; 0 where only the running program
    /// knows.
    pub bytes: u32,
    /// Whether it is a loop that does nothing else.
    pub looped: bool,
    /// Where copied bytes come from.
    pub from: Place,
    /// Where they go.
    pub to: Place,
    /// The number of its first instruction: tells two runs of a function apart.
    pub at: u32,
}

/// What kind of memory an operand names.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Not told by the code.
    #[default]
    Unknown,
    /// The function's own frame: a local variable, or an argument or result passed on the stack.
    Frame,
    /// What a call has just returned: memory that was allocated, mostly.
    Returned,
    /// Behind a pointer.
    Pointer,
    /// Behind a pointer and an index: an element.
    Element,
    /// At a fixed address.
    Static,
}

/// A role for each instruction of `body`.
pub(super) fn find(body: &Body<'_, '_>) -> Vec<Role> {
    let mut roles = vec![Role::Work; body.instructions.len()];
    runs::mark(body, &mut roles);
    accumulators::mark(body, &mut roles);
    atomics(body, &mut roles);
    checks::mark(body, &mut roles);
    calls::mark(body, &mut roles);
    roles
}

/// Whether `body` is small enough that calling it costs as much as running it: straight code that
/// calls nothing but panics, and what only its rare cases call. The calls of those; none if it is not
/// small in any case.
pub(super) fn calls_of_small(body: &Body<'_, '_>) -> Option<Vec<Instruction>> {
    /// About what compilers inline when asked to, at three to four bytes each.
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
    // Past a branch; past such a call, until the code goes on elsewhere or is entered.
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
            // A rare case that ends behind the function goes back to it.
            Kind::Jump(_) if rare => {}
            // To the entry after the stack has grown; elsewhere back is a loop, if it comes round.
            _ if i.target().is_some_and(|to| comes_round(body, to, at)) => return None,
            _ => {}
        }
        guarded |= matches!(i.kind, Kind::Branch(_));
        rare &= i.falls_through();
    }
    Some(calls)
}

/// Whether a jump at instruction `at` back to `target` makes a loop. The entry is where Go comes back to once
/// the stack has grown.
fn comes_round(body: &Body<'_, '_>, target: u64, at: usize) -> bool {
    let [first, ..] = body.instructions else { return false };
    let back = target <= body.instructions[at].addr && target != first.addr;
    let round = |from| flow::reaches(body.instructions, (from, at), |_| true);
    back && body.at(target).is_none_or(round)
}

/// How `body` looks as a whole.
pub(super) fn shape(body: &Body<'_, '_>) -> Shape {
    shape::of(body)
}

/// Marks atomic operations, and loads nearby of what they change: these wait for them.
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

/// Whether the routine called `name` copies or zeroes memory, so that its caller's code tells how
/// much: the C library's and the languages' own.
#[must_use]
pub fn moves_blocks(name: &str) -> bool {
    use routine::Routine as R;
    let routine = routine::named(name);
    matches!(routine, Some(R::Copy | R::CopyFixed | R::Fill | R::Zero | R::ZeroFixed))
}

/// Gives instruction `i` a role, if it has none yet.
fn claim(roles: &mut [Role], i: usize, role: Role) {
    if roles[i] == Role::Work {
        roles[i] = role;
    }
}
