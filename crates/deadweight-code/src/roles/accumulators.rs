//! Memory that is zeroed for accumulators: the code repeatedly reads an element, changes it and writes it back, before
//! anything else fills the memory.
//!
//! A histogram, a row of sums, a product of matrices. Tracks the pointer within one function, in order of address and not
//! along every path. Not for what other functions do with the memory: that is unknown.

use super::{Role, routine};
use crate::body::Body;
use crate::instruction::{Instruction, Kind, Memory, Reg, Registers};

/// How far after the zeroing its use is searched.
const AHEAD: usize = 256;
/// How far before a call other copies of its pointer are searched.
const BEFORE: usize = 16;

/// Marks instructions that zero memory for accumulators.
pub(super) fn mark(body: &Body<'_, '_>, roles: &mut [Role]) {
    for at in 0..body.instructions.len() {
        let zeroes = matches!(roles[at], Role::Zeroing(_)) || returns_zeroed(body, at);
        if zeroes
            && TrackedMemory::from(body, at)
                .is_some_and(|mut memory| memory.is_accumulated(at, roles))
        {
            roles[at] = Role::AccumulatorZeroing;
        }
    }
    // The other instructions of a run.
    let counted: Vec<usize> =
        (0..roles.len()).filter(|at| roles[*at] == Role::AccumulatorZeroing).collect();
    for at in counted {
        let near = at.saturating_sub(AHEAD)..roles.len().min(at + AHEAD);
        let stores = |i: &Instruction| i.memory.filter(|m| m.written).and_then(|m| m.base);
        let Some(base) = stores(&body.instructions[at]) else { continue };
        for other in near {
            let same = stores(&body.instructions[other]) == Some(base);
            if same && matches!(roles[other], Role::Zeroing(_)) {
                roles[other] = Role::AccumulatorZeroing;
            }
        }
    }
}

/// Whether a call returns zeroed memory.
fn returns_zeroed(body: &Body<'_, '_>, at: usize) -> bool {
    let call = &body.instructions[at];
    let name = matches!(call.kind, Kind::Call(_)).then(|| body.callee(call)).flatten();
    name.is_some_and(routine::returns_zeroed)
}

/// A block of memory, and what the code holds of it.
struct TrackedMemory<'a, 'n> {
    body: &'a Body<'a, 'n>,
    /// Registers with an address in the block.
    held: Registers,
    /// Stack offsets that hold an address of the block.
    kept: Vec<i64>,
    /// Its start, if it is in the function's own frame.
    frame: Option<i64>,
    /// Elements that were read, with the registers that hold values derived from them.
    read: Vec<(Memory, Registers)>,
}

impl<'a, 'n> TrackedMemory<'a, 'n> {
    /// The memory that instruction `at` zeroes or returns; none if its address is not known.
    fn from(body: &'a Body<'a, 'n>, at: usize) -> Option<Self> {
        let convention = &body.convention;
        let instruction = &body.instructions[at];
        let mut memory = Self {
            body,
            held: Registers::default(),
            kept: Vec::new(),
            frame: None,
            read: Vec::new(),
        };
        let pointer = match instruction.kind {
            Kind::Call(_) => {
                memory.held.insert(convention.result);
                (!returns_zeroed(body, at)).then(|| convention.arguments.first()).flatten()
            }
            Kind::FillBlock => convention.block.as_ref().map(|block| &block[0]),
            _ => {
                let written = instruction.memory.filter(|m| m.written)?;
                let base = written.base?;
                if base == convention.stack {
                    memory.frame = Some(written.offset);
                } else {
                    memory.held.insert(base);
                }
                None
            }
        };
        if let Some(pointer) = pointer {
            memory.copies(at, *pointer);
        }
        Some(memory)
    }

    /// Finds other copies of the address that `pointer` holds at instruction `at`.
    fn copies(&mut self, at: usize, mut pointer: Reg) {
        let before = self.body.instructions[..at].iter().rev().take(BEFORE);
        let mut changed = Registers::default();
        for i in before.take_while(|i| !i.ends_block() && !matches!(i.kind, Kind::Call(_))) {
            match (i.kind, i.data) {
                (Kind::Move, [Some(to), Some(from)]) if to == pointer || from == pointer => {
                    let other = if to == pointer { from } else { to };
                    if !changed.has(other) {
                        self.held.insert(other);
                    }
                    pointer = from;
                }
                _ if !i.writes.has(pointer) => {}
                (Kind::Address, _) => return self.frame = self.in_frame(i),
                (Kind::Load, _) => return self.kept.extend(self.in_frame(i)),
                _ => return,
            }
            changed = changed.and(i.writes);
        }
    }

    /// The frame offset of an instruction's memory, if it is fixed.
    fn in_frame(&self, instruction: &Instruction) -> Option<i64> {
        let memory = instruction.memory.filter(|m| m.index.is_none())?;
        (memory.base == Some(self.body.convention.stack)).then_some(memory.offset)
    }

    /// Whether the code after `start` changes elements in place before it fills them or passes the memory on.
    fn is_accumulated(&mut self, start: usize, roles: &[Role]) -> bool {
        let instructions = self.body.instructions.iter().zip(roles).enumerate();
        for (at, (i, role)) in instructions.skip(start + 1).take(AHEAD) {
            if matches!(role, Role::Zeroing(_)) {
                self.pass(i);
                continue;
            }
            if matches!(i.kind, Kind::Call(_)) && self.is_passed_on() {
                return false;
            }
            if let Some(memory) = i.memory.filter(|m| self.is_of_it(m)) {
                let round = self.round(start, at);
                let varies = round.is_some_and(|first| self.varies(&memory, first, at));
                if varies && self.changes(i, &memory) {
                    return true;
                }
                let fills = matches!(i.kind, Kind::CopyBlock | Kind::FillBlock)
                    || round.is_some() && memory.written && !memory.read;
                if fills {
                    return false;
                }
            }
            self.pass(i);
        }
        false
    }

    /// Whether a call at this point gets its address.
    fn is_passed_on(&self) -> bool {
        self.body.convention.arguments.iter().any(|argument| self.held.has(*argument))
    }

    /// Whether a memory operand is an element of the block.
    fn is_of_it(&self, memory: &Memory) -> bool {
        if memory.base == Some(self.body.convention.stack) {
            return memory.index.is_some() && self.frame.is_some_and(|from| memory.offset >= from);
        }
        [memory.base, memory.index].into_iter().flatten().any(|r| self.held.has(r))
    }

    /// The first instruction of the loop around instruction `at`, if that loop is after `start`.
    fn round(&self, start: usize, at: usize) -> Option<usize> {
        let behind = self.body.instructions[at..].iter().take(AHEAD);
        let mut firsts = behind.filter_map(|i| self.body.at(i.target()?));
        firsts.find(|first| *first > start && *first <= at)
    }

    /// Whether a memory operand names another element in each iteration of the loop that begins at `first`.
    fn varies(&self, memory: &Memory, first: usize, at: usize) -> bool {
        let moving = [memory.base, memory.index].into_iter().flatten();
        let inside = self.body.instructions[first..].iter().take(at - first + AHEAD);
        let last = self.body.instructions.get(first).map_or(0, |i| i.addr);
        let mut written = Registers::default();
        for i in inside {
            written = written.and(i.writes);
            if i.addr > self.body.instructions[at].addr && i.target() == Some(last) {
                break;
            }
        }
        moving.into_iter().any(|r| written.has(r))
    }

    /// Whether this instruction writes back an element that was read from the same address and changed since.
    fn changes(&self, instruction: &Instruction, memory: &Memory) -> bool {
        if memory.read && memory.written {
            return matches!(instruction.kind, Kind::Compute | Kind::Atomic);
        }
        let stored = instruction.data[0].filter(|_| instruction.kind == Kind::Store);
        let same = |read: &Memory| {
            (read.base, read.index, read.offset) == (memory.base, memory.index, memory.offset)
        };
        stored.is_some_and(|register| {
            self.read.iter().any(|(read, made)| same(read) && made.has(register))
        })
    }

    /// Updates the state past an instruction.
    fn pass(&mut self, i: &Instruction) {
        let convention = &self.body.convention;
        let element = i.memory.filter(|m| m.read && !m.written && self.is_of_it(m));
        let place = self.in_frame(i);
        let stays = match (i.kind, i.data) {
            (Kind::Move, [_, Some(from)]) => self.held.has(from),
            (Kind::Advance(_), _) => true,
            (Kind::Address, _) => i.memory.is_some_and(|m| self.is_of_it(&m)),
            (Kind::Load, _) => place.is_some_and(|at| self.kept.contains(&at)),
            // An address advances by a register's value.
            (Kind::Compute, _) => i.memory.is_none() && !i.reads.without(i.writes).is_empty(),
            _ => false,
        };
        if let (Kind::Store, Some(place), Some(stored)) = (i.kind, place, i.data[0]) {
            self.kept.retain(|at| *at != place);
            if self.held.has(stored) {
                self.kept.push(place);
            }
        }
        let fresh = matches!(i.kind, Kind::Move | Kind::Address | Kind::Load);
        let mut held = self.held;
        for register in i.writes.iter() {
            let keeps = stays && (fresh || self.held.has(register));
            if keeps {
                held.insert(register)
            } else {
                held = held.without(Registers::of(&[register]))
            }
        }
        if matches!(i.kind, Kind::Call(_)) {
            held = held.iter().filter(|r| convention.saved.has(*r)).collect();
            self.read.clear();
        }
        self.held = held;
        for (_, made) in &mut self.read {
            let of_it = i.reads.meets(*made) && i.memory.is_none_or(|m| !m.written);
            *made = made.without(i.writes);
            if of_it && i.kind != Kind::Compare {
                *made = made.and(i.writes);
            }
        }
        let moved = |m: &Memory| [m.base, m.index].into_iter().flatten().any(|r| i.writes.has(r));
        self.read.retain(|(memory, _)| !moved(memory));
        if let Some(memory) = element.filter(|m| !moved(m)) {
            self.read.push((memory, i.writes));
        }
    }
}
