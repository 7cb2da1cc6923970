//! What the code of one function shows before it runs: places that may cost time if they run often.
//!
//! - In: the bytes of a function, and facts about what it calls ([`Callees`], [`Targets`]).
//! - Out: its [`Match`]es, each with the depth of the loop around it.
//! - Must not know: how often code runs, source lines, or cost classes. A match is a candidate, no finding.
//!
//! The rules are those of the cost classes as far as machine code decides them: checks that wait for a load, copies into
//! fresh memory, and everything in a function without optimisation are left out here as there.

mod checks;
mod copies;
mod divisions;
mod floats;
mod moves;
mod passed;
mod quick;
mod screen;

use crate::code::{Code, Names};
use crate::function::Function;
use crate::instruction::{Instruction, Kind};
use crate::roles::{Role, RolesFor, Shape, routine};
use crate::symbol_role::{self, SymbolRole};
use deadweight_trace::units::FileAddr;
pub use passed::Passed;
use quick::Quick;
use screen::Interest;
pub use screen::{Targets, may_be_small};

/// What may cost time.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// A value of constant size is copied: its bytes.
    Copy,
    /// Memory of constant size is set to zero: its bytes.
    Zeroing,
    /// An index is compared with a length, in a loop.
    BoundsCheck,
    /// An atomic operation, in a loop.
    Atomic,
    /// A call of a small function, in a loop: its instructions.
    SmallCall,
    /// A division of integers by a variable, in a loop.
    Division,
    /// Floating-point numbers are computed one by one, in a loop that could compute several at once: its operations.
    ScalarFloats(Floats),
    /// Go's runtime allocates, in a loop.
    GoAllocation,
    /// The function was compiled without optimisation: its instructions.
    Unoptimised,
}

/// What a loop computes one by one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Floats {
    /// Whether there are numbers of 64 bits.
    pub double: bool,
    /// Whether it makes one number of all, each turn from that of the turn before: in this order only, unless the compiler
    /// may choose another one.
    pub reduces: bool,
}

impl Floats {
    /// How many fit into a register of AVX2.
    #[must_use]
    pub fn fit(self) -> u32 {
        if self.double { 4 } else { 8 }
    }
}

/// One place where a pattern is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// What was found.
    pub pattern: Pattern,
    /// The instruction.
    pub at: FileAddr,
    /// How many loops are around it.
    pub depth: u32,
    /// Bytes or instructions, see [`Pattern`]; 1 where there is nothing to measure.
    pub amount: u32,
    /// What is called there, if that is known.
    pub callee: Option<FileAddr>,
}

/// Smaller copies are left out.
pub const LEAST_COPIED: u32 = 128;
/// Smaller clearing is left out.
pub const LEAST_ZEROED: u32 = 1024;
/// A function with fewer instructions does not show how it was compiled.
const LEAST_SHAPED: u64 = 16;

/// What is known of the code that a function calls.
pub struct Callees<'c> {
    /// Names; only those are needed for which [`called`] has an answer.
    pub names: &'c Names<'c>,
    /// The instructions of the function that begins at an address, if it is small (see [`small`]).
    pub small: &'c dyn Fn(FileAddr) -> Option<u32>,
    /// The bytes that the routine at an address writes up to its return (see [`written`]).
    pub written: &'c dyn Fn(FileAddr) -> u32,
}

/// What the name of a called function decides.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Called {
    /// It copies or clears memory.
    Moves,
    /// It panics because of an index.
    BoundsPanic,
    /// It allocates, in Go.
    GoAllocation,
    /// Its name is needed to read its callers.
    Other,
}

/// What `name` decides; none if it decides nothing: such names may be left out.
#[must_use]
pub fn called(name: &str) -> Option<Called> {
    if allocates_in_go(name) {
        return Some(Called::GoAllocation);
    }
    match routine::named(name) {
        Some(routine::Routine::BoundsPanic) => Some(Called::BoundsPanic),
        Some(routine) if routine.moves() => Some(Called::Moves),
        Some(_) => Some(Called::Other),
        None => routine::returns_zeroed(name).then_some(Called::Other),
    }
}

fn allocates_in_go(name: &str) -> bool {
    name.starts_with("runtime.")
        && matches!(symbol_role::of_name(name), Some(SymbolRole::Allocate | SymbolRole::Grow))
}

/// The instructions of a function that costs about as much as its call: see [`Function::calls_if_small`]. Functions that
/// also call something in rare cases are left out: the code does not show how rare.
#[must_use]
pub fn small(code: &Code<'_>, names: &Names<'_>) -> Option<u32> {
    let function = Function::read_small(code, names);
    let at_work = |i: &&Instruction| !matches!(i.kind, Kind::Nop | Kind::Trap);
    let count = function.instructions.iter().filter(at_work).count();
    function.calls_if_small().filter(|calls| calls.is_empty()).and(u32::try_from(count).ok())
}

/// The bytes that straight code writes up to its return: of a routine that copies or clears a fixed amount, from the
/// place where it is entered.
#[must_use]
pub fn written(code: &Code<'_>) -> u32 {
    let instructions = crate::decode::instructions(code);
    let straight = instructions.iter().take_while(|i| !i.ends_block());
    let memory = straight.filter_map(|i| i.memory).filter(|memory| memory.written);
    memory.fold(0, |sum: u32, memory| sum.saturating_add(memory.size))
}

/// All matches in a function, in order of address. `passed` is overwritten.
#[must_use]
pub fn scan(
    code: &Code<'_>,
    targets: &impl Targets,
    callees: &Callees<'_>,
    passed: &mut Passed,
) -> Vec<Match> {
    let Some(interest) = Interest::of(code, targets, passed) else { return Vec::new() };
    if interest.shape
        && Function::may_spill(code)
        && let Some(found) = unoptimised(code)
    {
        return vec![found];
    }
    if !passed.is_complete {
        return complete(code, interest, callees);
    }
    let quick = Quick::new(code, passed, callees);
    let mut found = quickly(&quick, interest).unwrap_or_else(|| complete(code, interest, callees));
    if interest.floats {
        found.extend(floats::matches(&quick));
        found.sort_unstable_by_key(|found| (found.at, found.pattern));
    }
    found
}

/// All matches from parts of the function; none if all of it must be read.
fn quickly(quick: &Quick<'_, '_>, interest: Interest) -> Option<Vec<Match>> {
    let copies = if interest.moves { copies::matches(quick)? } else { Vec::new() };
    let mut found = quick.matches();
    if interest.checks {
        let checks = checks::matches(quick)?;
        // The check at the end of a loop that only moves belongs to the loop.
        if interest.moves && checks.iter().any(|check| quick.ends_own_block(check)) {
            return None;
        }
        found.extend(checks);
    }
    found.extend(copies);
    found.sort_unstable_by_key(|found| (found.at, found.pattern));
    Some(found)
}

/// The same from all instructions.
fn complete(code: &Code<'_>, interest: Interest, callees: &Callees<'_>) -> Vec<Match> {
    let roles = RolesFor { moves: interest.moves, checks: interest.checks };
    let function = &Function::read_for(code, callees.names, roles);
    let depths = function.loop_depths();
    let scan = Scan { function, code, callees, depths: &depths };
    let mut found = if interest.moves { moves::matches(&scan) } else { Vec::new() };
    for (at, instruction) in function.instructions.iter().enumerate() {
        if depths[at] > 0
            && let Some((pattern, amount)) = scan.in_loop(at, instruction)
        {
            found.push(scan.found(pattern, at, amount));
        }
    }
    found.sort_unstable_by_key(|found| (found.at, found.pattern));
    found
}

/// The match of a function without optimisation. A single one must show both signs that [`Shape`] knows: each alone may
/// be an accident.
fn unoptimised(code: &Code<'_>) -> Option<Match> {
    let shape: Shape = Function::read_shape(code);
    let shows = shape.instructions >= LEAST_SHAPED && shape.is_on_frame() && shape.is_spilling();
    let amount = u32::try_from(shape.instructions).unwrap_or(u32::MAX);
    let (pattern, at) = (Pattern::Unoptimised, code.addr);
    shows.then_some(Match { pattern, at, depth: 0, amount, callee: None })
}

/// A function that is being scanned.
struct Scan<'s, 'c> {
    function: &'s Function,
    code: &'s Code<'s>,
    callees: &'s Callees<'c>,
    /// By instruction.
    depths: &'s [u32],
}

impl Scan<'_, '_> {
    fn found(&self, pattern: Pattern, at: usize, amount: u32) -> Match {
        let instruction = &self.function.instructions[at];
        let callee = instruction.callee().map(FileAddr);
        let at = (FileAddr(instruction.addr), self.depths[at]);
        Match { pattern, at: at.0, depth: at.1, amount, callee }
    }

    /// What an instruction in a loop is, with its amount.
    fn in_loop(&self, at: usize, instruction: &Instruction) -> Option<(Pattern, u32)> {
        match (instruction.kind, self.function.roles[at]) {
            (Kind::Branch(_), Role::BoundsCheck { after_load: false }) => {
                Some((Pattern::BoundsCheck, 1))
            }
            (Kind::Atomic, _) => Some((Pattern::Atomic, 1)),
            (Kind::Compute, _)
                if divisions::by_variable(&self.function.instructions, self.code, at) =>
            {
                Some((Pattern::Division, 1))
            }
            (Kind::Call(Some(to)), _) => self.call(FileAddr(to)),
            _ => None,
        }
    }

    /// What a call in a loop is.
    fn call(&self, to: FileAddr) -> Option<(Pattern, u32)> {
        if (self.callees.names)(to).is_some_and(allocates_in_go) {
            return Some((Pattern::GoAllocation, 1));
        }
        let own = self.code.holds(to);
        let small = (!own).then(|| (self.callees.small)(to)).flatten();
        small.map(|instructions| (Pattern::SmallCall, instructions))
    }
}

#[cfg(test)]
mod tests;
