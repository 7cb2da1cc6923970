//! Copies from parts of a function: only the straight code around each place that may copy is decoded in full.
//!
//! A part begins where nothing is known of registers, so that its values are those of the whole function. What depends on
//! more than that (clearing, counted loops, values that hold in the whole function) is left to [`super::complete`].

use super::passed::Passed;
use super::quick::Quick;
use super::{LEAST_COPIED, LEAST_ZEROED, Match, Pattern, moves};
use crate::abi::Abi;
use crate::decode;
use crate::instruction::{Instruction, Kind, Reg, Registers};
use crate::roles::{self, Part, Role, routine};
use deadweight_trace::units::FileAddr;
use std::collections::BTreeSet;

/// How many instructions behind a part may still use what it moved, see `roles::runs`.
const BEHIND: usize = 40;
/// How many instructions from its entry show whether a function keeps a frame.
const ENTRY: usize = 8;

/// Where nothing is known of registers.
struct Fresh {
    /// In order: targets of jumps but those of loops of one block, and code that the instruction before does not lead to.
    at: Vec<u32>,
    /// Targets of jumps, in order.
    entered: Vec<u32>,
}

impl Fresh {
    fn of(quick: &Quick<'_, '_>) -> Self {
        let passed = quick.passed;
        let mut fresh = Self { at: vec![0], entered: Vec::new() };
        for (number, turn) in passed.turns.iter().enumerate() {
            fresh.at.extend((!turn.falls).then_some(turn.end));
            let target = turn.target.and_then(|to| passed.instruction(quick.code, to));
            let Some(target) = target.map(|target| passed.starts[target]) else { continue };
            let before = number.checked_sub(1).map_or(0, |before| passed.turns[before].end);
            // In a loop of a single block values from before it may hold.
            let own = (before..=turn.at).contains(&target);
            fresh.at.extend((!own).then_some(target));
            fresh.entered.push(target);
        }
        for list in [&mut fresh.at, &mut fresh.entered] {
            list.sort_unstable();
            list.dedup();
        }
        fresh
    }

    /// The last such place up to `offset`.
    fn before(&self, offset: u32) -> u32 {
        let after = self.at.partition_point(|at| *at <= offset);
        self.at.get(after.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// The copies in a function; none if it must be read completely.
pub(super) fn matches(quick: &Quick<'_, '_>) -> Option<Vec<Match>> {
    let (code, passed) = (quick.code, quick.passed);
    if passed.clears || code.abi == Abi::Go {
        return None;
    }
    if passed.sites.is_empty() {
        return Some(Vec::new());
    }
    let fresh = Fresh::of(quick);
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for (start, end) in &passed.sites {
        let from = fresh.before(*start);
        match parts.last_mut().filter(|before| from <= before.1) {
            Some(before) => *before = (before.0.min(from), before.1.max(*end)),
            None => parts.push((from, *end)),
        }
    }
    let entry = passed.part(code, 0, ENTRY.min(passed.starts.len()) - 1)?;
    let entry = decode::instructions(&entry);
    let constants = constants(quick);
    let mut found = Vec::new();
    for (from, end) in parts {
        let around = Around { fresh: &fresh, entry: &entry, constants };
        in_part(quick, &around, (from, end), &mut found)?;
    }
    found.sort_unstable_by_key(|found: &Match| found.at);
    found.dedup_by_key(|found| found.at);
    Some(found)
}

/// What a part needs of its function.
struct Around<'a> {
    fresh: &'a Fresh,
    /// The first instructions.
    entry: &'a [Instruction],
    /// Registers that survive calls and may hold one large constant wherever they are used.
    constants: Registers,
}

/// See [`Around`].
fn constants(quick: &Quick<'_, '_>) -> Registers {
    let saved = decode::convention(quick.code).saved;
    let mut constants: Registers =
        quick.passed.constants.iter().filter(|register| saved.has(*register)).collect();
    let mut known = [None; Reg::COUNT];
    for (n, start) in quick.passed.starts.iter().enumerate() {
        if constants.is_empty() {
            break;
        }
        let end = quick.passed.starts.get(n + 1).map_or(quick.code.bytes.len(), |at| *at as usize);
        let bytes = quick.code.bytes.get(*start as usize..end).unwrap_or_default();
        let Some((register, value)) = decode::set(bytes) else { continue };
        if constants.has(register)
            && (value.is_none() || *known[register.index()].get_or_insert(value) != value)
        {
            constants = constants.without(Registers::of(&[register]));
        }
    }
    constants
}

/// Adds the copies in a part; none if the whole function must be read.
fn in_part(
    quick: &Quick<'_, '_>,
    around: &Around<'_>,
    (from, end): (u32, u32),
    found: &mut Vec<Match>,
) -> Option<()> {
    let Passed { starts, .. } = quick.passed;
    let Around { fresh, entry, constants } = around;
    let first = starts.binary_search(&from).ok()?;
    let after = starts.partition_point(|start| *start < end);
    let last = (after + BEHIND).min(starts.len()).checked_sub(1)?;
    let code = quick.passed.part(quick.code, first, last)?;
    let instructions = decode::instructions(&code);
    let count = (after - first).min(instructions.len());
    let offset = |i: &Instruction| u32::try_from(i.addr.wrapping_sub(quick.code.addr.0)).ok();
    let is_in =
        |list: &[u32], i: &Instruction| offset(i).is_some_and(|at| list.binary_search(&at).is_ok());
    let entered: Vec<bool> =
        instructions.iter().enumerate().map(|(n, i)| n == 0 || is_in(&fresh.entered, i)).collect();
    let part = Part { instructions: &instructions, entered: &entered, entry };
    let alone = |at: usize| !is_in(&fresh.at, &instructions[at]);
    let roles = roles::runs_of_part(&code, part, quick.callees.names, &alone, count)?;
    let mut runs = BTreeSet::new();
    let mut sizes = Sizes::new(quick, *constants);
    for (instruction, role) in instructions.iter().zip(&roles).take(count) {
        if sizes.may_be_of_function(instruction, *role) {
            return None;
        }
        sizes.pass(instruction);
        let Role::Copy(run) = role else { continue };
        let whole = matches!(instruction.kind, Kind::Call(_) | Kind::Jump(_) | Kind::CopyBlock);
        let is_large = (LEAST_COPIED..=moves::MOST).contains(&run.bytes);
        let counts = is_large && !run.looped && !moves::fills_fresh_memory(run);
        if counts && !whole && quick.is_before_jump_back(offset(instruction)?) {
            // Whether a loop does nothing else may depend on a register that the whole function sets to zero only.
            return None;
        }
        if counts && (whole || runs.insert(run.at)) {
            let depth = quick.depth(offset(instruction)?);
            let (pattern, callee) = (Pattern::Copy, instruction.callee().map(FileAddr));
            let (at, amount) = (FileAddr(instruction.addr), run.bytes);
            found.push(Match { pattern, at, depth, amount, callee });
        }
    }
    Some(())
}

/// Which registers may hold a size that the part does not decide.
struct Sizes<'k, 'c> {
    quick: &'k Quick<'k, 'c>,
    /// The registers of sizes: the third argument, and the count of a block instruction.
    size: Reg,
    count: Reg,
    /// See [`Around`] ...
    always: Registers,
    /// ... and copies of them.
    of_function: Registers,
    /// Those with a large constant of the part, and copies of them; and those that are enough for clearing.
    of_part: Registers,
    clearing: Registers,
}

impl<'k, 'c> Sizes<'k, 'c> {
    fn new(quick: &'k Quick<'k, 'c>, always: Registers) -> Self {
        let convention = decode::convention(quick.code);
        let count = convention.block.map_or(convention.stack, |[.., count]| count);
        let size = convention.arguments[2];
        let (of_part, clearing) = (Registers::default(), Registers::default());
        Self { quick, size, count, always, of_function: always, of_part, clearing }
    }

    /// Whether an instruction may move or clear as much as a constant of the whole function says, or clear enough that its
    /// use counts.
    fn may_be_of_function(&self, instruction: &Instruction, role: Role) -> bool {
        match (instruction.kind, role) {
            (_, Role::Zeroing(run)) if run.bytes >= LEAST_ZEROED => true,
            (Kind::CopyBlock, _) | (Kind::FillBlock, Role::Zeroing(_)) => {
                self.of_function.has(self.count)
            }
            (Kind::FillBlock, _) => true,
            (Kind::Call(_) | Kind::Jump(_), Role::Copy(_)) => self.of_function.has(self.size),
            (Kind::Call(_) | Kind::Jump(_), Role::Zeroing(_)) => !self.of_function.is_empty(),
            (Kind::Call(None) | Kind::Jump(None), _) if instruction.memory.is_none() => {
                let may_move = instruction.reads.meets(self.quick.passed.movers);
                may_move && self.of_function.and(self.of_part).has(self.size)
            }
            (Kind::Call(_) | Kind::Jump(_), Role::Work) => {
                self.of_function.and(self.clearing).has(self.size) && self.fills(instruction)
            }
            _ => false,
        }
    }

    /// Whether a call is of a routine that fills memory.
    fn fills(&self, call: &Instruction) -> bool {
        let name = call.callee().and_then(|to| (self.quick.callees.names)(FileAddr(to)));
        name.and_then(routine::named).is_some_and(routine::Routine::fills)
    }

    fn pass(&mut self, instruction: &Instruction) {
        let [to, from] = instruction.data;
        let from = from.filter(|_| instruction.kind == Kind::Move);
        let moved = |set: Registers| from.is_some_and(|from| set.has(from));
        let sets =
            |least: u32| matches!(instruction.kind, Kind::Constant(size) if size >= least.into());
        let to = Registers::of(to.as_slice());
        let after = |set: Registers, insert: bool| {
            let left = set.without(instruction.writes);
            if insert { left.and(to) } else { left }
        };
        self.of_part = after(self.of_part, sets(LEAST_COPIED) || moved(self.of_part));
        self.clearing = after(self.clearing, sets(LEAST_ZEROED) || moved(self.clearing));
        self.of_function = after(self.of_function, moved(self.of_function)).and(self.always);
    }
}
