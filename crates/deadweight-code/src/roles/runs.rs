//! Zeroing and copying: runs of stores of zero, of loads stored unchanged elsewhere, block instructions, and calls of
//! block routines.
//!
//! Not for loaded values that are also computed with: a hash function's state passes through memory too. Not for a few
//! saved registers: runs have a minimum size.

use super::routine::{self, Routine};
use super::values::{Operand, Value, Values};
use super::{Role, Run};
use crate::body::Body;
use crate::instruction::{Instruction, Kind, Reg};
use std::ops::Range;

/// Fewest bytes of a run that counts as zeroing: two AVX stores. Constructors of small values have fewer.
const LEAST_ZEROED: u32 = 32;
/// Fewest bytes of a run that counts as a copy: six registers, so that saving and restoring registers does not count.
const LEAST_COPIED: u32 = 48;
/// Fewest bytes of a backward copy: fewer may be the reversal of a short array.
const LEAST_MIRRORED: u32 = 256;
/// Fewest bytes of a run that continues the run of a counted loop before it.
const LEAST_REST: u32 = 8;
/// Bytes of padding that a run may skip.
const PADDING: i64 = 8;
/// How far before a call its arguments are searched.
const LOOK_BACK: usize = 12;
/// Shorter copies are no block with an aligned start; smaller constants round a length up.
const ALIGNED: u32 = 64;
/// A loop that clears memory goes on by no more bytes per turn: the next element, or the same part of the next one.
const NEAR: u64 = 128;
/// How far other uses of a copied register are searched.
const LOOK_AHEAD: usize = 32;

/// A store and its value.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    to: Operand,
    /// None for a store of zero; otherwise the source, and a number that all pieces of one value share: the difference of
    /// the two offsets, or their sum for a mirrored copy.
    from: Option<(Operand, i64)>,
    offset: i64,
    bytes: u32,
    load: usize,
    store: usize,
    register: Option<Reg>,
}

impl Piece {
    /// Turns a copied piece into one of a mirrored copy: `false` for zeroing.
    fn mirror(&mut self) -> bool {
        let Some((_, shared)) = &mut self.from else { return false };
        *shared = self.offset.wrapping_mul(2).wrapping_sub(*shared);
        true
    }
}

/// Marks all of `body`.
pub(super) fn mark(body: &Body<'_, '_>, roles: &mut [Role]) {
    mark_from(body, Values::new(body), &|at| entries(body, at) == 1, roles);
}

/// The same with these values at its start. `alone`: whether only one jump leads to an instruction. Returns where the first
/// loop with a constant count begins.
pub(super) fn mark_from(
    body: &Body<'_, '_>,
    values: Values,
    alone: &dyn Fn(usize) -> bool,
    roles: &mut [Role],
) -> Option<usize> {
    let mut counted = None;
    let count = body.instructions.len();
    let mut scan = Scan {
        body,
        values,
        loads: Vec::new(),
        used: vec![false; count],
        pieces: Vec::new(),
        rounds: None,
        rest: false,
    };
    for block in body.blocks() {
        let first = block.start;
        let inside = &body.instructions[block.clone()];
        scan.rest = scan.rounds.is_some();
        scan.rounds = None;
        if first == 0 || !body.instructions[first - 1].falls_through() {
            scan.values.forget();
        } else if loops(inside) && alone(first) {
            scan.rounds = rounds(&scan.values, inside);
            counted = counted.or(scan.rounds.map(|_| first));
            scan.values.enter_loop(inside);
        } else if body.entered[first] {
            scan.values.forget();
        }
        let mut start = first;
        for at in block.clone() {
            let instruction = &body.instructions[at];
            if let Some(role) = scan.whole(instruction) {
                roles[at] = role;
            }
            scan.note(at, instruction);
            scan.values.pass(&body.convention, at, instruction);
            if matches!(instruction.kind, Kind::Call(_)) {
                scan.settle(start..at + 1, roles);
                start = at + 1;
            }
        }
        scan.settle(start..block.end, roles);
    }
    counted
}

struct Scan<'a, 'n> {
    body: &'a Body<'a, 'n>,
    values: Values,
    /// The source of each load, in order of instructions.
    loads: Vec<(usize, Operand, i64)>,
    /// Whether the value that an instruction loaded is used in a computation.
    used: Vec<bool>,
    /// Stores since the last call or end of a block.
    pieces: Vec<Piece>,
    /// The number of iterations of the current block, if it is a loop with a constant count.
    rounds: Option<u32>,
    /// Whether the block follows such a loop.
    rest: bool,
}

/// The number of jumps and branches to an instruction.
fn entries(body: &Body<'_, '_>, at: usize) -> usize {
    let addr = Some(body.instructions[at].addr);
    body.instructions.iter().filter(|i| i.target() == addr).count()
}

/// Whether a block ends with a branch to its own start.
fn loops(block: &[Instruction]) -> bool {
    matches!((block.first(), block.last()),
        (Some(first), Some(last)) if last.kind == Kind::Branch(first.addr))
}

/// The number of iterations of a loop whose counter runs from a constant down to zero.
fn rounds(before: &Values, block: &[Instruction]) -> Option<u32> {
    let counter = block.iter().rev().nth(1)?;
    let register = counter.data[0].filter(|_| counter.kind == Kind::Advance(-1))?;
    match before.of(register) {
        Value::Constant(n) => u32::try_from(n).ok().filter(|n| *n > 0),
        _ => None,
    }
}

impl Scan<'_, '_> {
    /// The role of an instruction that zeroes or copies by itself.
    fn whole(&self, instruction: &Instruction) -> Option<Role> {
        let convention = &self.body.convention;
        let argument = |n: usize| convention.arguments.get(n).map(|r| self.values.of(*r));
        let amount = |n: usize| match argument(n) {
            Some(Value::Constant(bytes)) => u32::try_from(bytes).unwrap_or(0),
            _ => 0,
        };
        let place = |register: Option<&Reg>| self.values.place(register);
        let [to, from] = match (instruction.kind, &convention.block) {
            (Kind::CopyBlock | Kind::FillBlock, Some(block)) => {
                [place(block.first()), place(block.get(1))]
            }
            _ => [place(convention.arguments.first()), place(convention.arguments.get(1))],
        };
        let zeroing = |bytes| Role::Zeroing(Run { bytes, to, ..Run::default() });
        let copy = |bytes| Role::Copy(Run { bytes, from, to, ..Run::default() });
        match instruction.kind {
            Kind::CopyBlock => Some(copy(self.block_bytes(instruction))),
            Kind::FillBlock if self.values.of(convention.result) == Value::Constant(0) => {
                Some(zeroing(self.block_bytes(instruction)))
            }
            Kind::Call(_) | Kind::Jump(_) => {
                match routine::named(self.body.callee(instruction)?)? {
                    Routine::Copy => Some(copy(amount(2))),
                    Routine::CopyFixed => Some(Role::Copy(Run::default())),
                    Routine::Fill if argument(1) == Some(Value::Constant(0)) => {
                        Some(zeroing(amount(2)))
                    }
                    Routine::Fill
                        if self
                            .is_loaded_or_computed(instruction, convention.arguments.get(1)?) =>
                    {
                        Some(Role::Filling)
                    }
                    Routine::Zero => Some(zeroing(amount(1))),
                    Routine::WriteBarrier => Some(Role::WriteBarrier),
                    Routine::ZeroFixed => Some(Role::Zeroing(Run::default())),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether the value of `register` at `call` was just loaded or computed.
    fn is_loaded_or_computed(&self, call: &Instruction, register: &Reg) -> bool {
        if let Value::Loaded { .. } = self.values.of(*register) {
            return true;
        }
        let Some(at) = self.body.at(call.addr) else { return false };
        let before = self.body.instructions[..at].iter().rev().take_while(|i| !i.ends_block());
        let sets = before.take(LOOK_BACK).find(|i| i.writes.has(*register));
        sets.is_some_and(|i| matches!(i.kind, Kind::Compute | Kind::Load))
    }

    /// The bytes that a block instruction moves, if its count is a constant.
    fn block_bytes(&self, instruction: &Instruction) -> u32 {
        match self.body.convention.block.map(|[.., count]| self.values.of(count)) {
            Some(Value::Constant(count)) => {
                u32::try_from(count).unwrap_or(0).saturating_mul(instruction.width())
            }
            _ => self.aligned_bytes(instruction).unwrap_or(0),
        }
    }

    /// The bytes that a block instruction moves behind an aligned start, if they are a constant: GCC stores the first and
    /// the last word by themselves, and computes the count as (constant + address - aligned address) / word.
    fn aligned_bytes(&self, instruction: &Instruction) -> Option<u32> {
        let mut count = self.body.convention.block.map(|[.., count]| count)?;
        let at = self.body.at(instruction.addr)?;
        let before = self.body.instructions[..at].iter().rev().take(LOOK_BACK);
        let mut divided = false;
        for i in before.take_while(|i| !i.ends_block()) {
            if !i.writes.has(count) {
                continue;
            }
            match (i.kind, i.data[1]) {
                (Kind::Move, Some(from)) if !divided => count = from,
                (Kind::Compute, None) if !divided && i.memory.is_none() => divided = true,
                (Kind::Advance(bytes), _) if divided => {
                    let whole = bytes % i64::from(instruction.width()) == 0;
                    return u32::try_from(bytes).ok().filter(|n| whole && *n >= ALIGNED);
                }
                _ => return None,
            }
        }
        None
    }

    /// Records loads, stores with their values, and uses of loaded values.
    fn note(&mut self, at: usize, instruction: &Instruction) {
        let mut reads = instruction.reads;
        match (instruction.kind, &instruction.memory) {
            (Kind::Load, Some(memory)) if !memory.thread_local => {
                let (operand, offset) = self.values.operand(memory);
                self.loads.push((at, operand, offset));
            }
            (Kind::StoreZero, Some(memory)) if !memory.thread_local => {
                let (to, offset) = self.values.operand(memory);
                self.pieces.push(Piece {
                    to,
                    from: None,
                    offset,
                    bytes: memory.size,
                    load: at,
                    store: at,
                    register: None,
                });
            }
            (Kind::Store, Some(memory)) if !memory.thread_local => {
                reads = memory.base.into_iter().chain(memory.index).collect();
                self.store(at, instruction);
            }
            _ => {}
        }
        for register in reads.iter() {
            if let Value::Loaded { at, .. } = self.values.of(register) {
                self.used[at] = true;
            }
        }
    }

    fn store(&mut self, at: usize, instruction: &Instruction) {
        let Some(memory) = &instruction.memory else { return };
        let (to, start) = self.values.operand(memory);
        let bytes = instruction.width();
        for (n, register) in (0i64..).zip(instruction.data.iter().flatten()) {
            let offset = start.wrapping_add(n * i64::from(bytes));
            let piece = Piece {
                to,
                from: None,
                offset,
                bytes,
                load: at,
                store: at,
                register: Some(*register),
            };
            match self.values.of(*register) {
                Value::Constant(0) => self.pieces.push(piece),
                Value::Loaded { at: load, half } => {
                    let Ok(found) = self.loads.binary_search_by_key(&load, |l| l.0) else {
                        continue;
                    };
                    let (_, operand, source) = self.loads[found];
                    if self.body.instructions[load].width() == bytes {
                        let source = source.wrapping_add(i64::from(half) * i64::from(bytes));
                        let apart = offset.wrapping_sub(source);
                        self.pieces.push(Piece { from: Some((operand, apart)), load, ..piece });
                    }
                }
                _ => {}
            }
        }
    }

    /// Marks the runs among the pieces of `range`, which ends at a call or with its block.
    fn settle(&mut self, range: Range<usize>, roles: &mut [Role]) {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.retain(|piece| {
            let after = piece.store.max(range.end.saturating_sub(1)) + 1;
            piece.from.is_none()
                || !self.used[piece.load]
                    && !piece.register.is_some_and(|r| read_on(self.body, after, r))
        });
        pieces.sort_unstable();
        let moves_only = self.only_moves(&range, &pieces);
        let least = if self.rest { [LEAST_REST; 2] } else { [LEAST_ZEROED, LEAST_COPIED] };
        let mut others = self.mark_runs(&pieces, &range, moves_only, least, roles);
        // LLVM splits a large value and stores the parts in the order of their last use: backwards.
        others.retain_mut(|piece| piece.mirror());
        others.sort_unstable();
        self.mark_runs(&others, &range, false, [LEAST_MIRRORED; 2], roles);
        pieces.clear();
        self.pieces = pieces;
    }

    /// Marks runs of consecutive pieces among `pieces`, which are sorted; returns the pieces outside any run. `least`: fewest
    /// bytes of zeroing and of a copy.
    fn mark_runs(
        &self,
        pieces: &[Piece],
        range: &Range<usize>,
        moves_only: bool,
        least: [u32; 2],
        roles: &mut [Role],
    ) -> Vec<Piece> {
        let mut of_none = Vec::new();
        let mut rest = pieces;
        while let Some(first) = rest.first() {
            let (length, bytes) = stretch(rest);
            let (run, others) = rest.split_at(length);
            rest = others;
            // A loop with a constant count moves one value in several iterations.
            let bytes = bytes.saturating_mul(self.rounds.filter(|_| moves_only).unwrap_or(1));
            let looped = moves_only && self.rounds.is_none();
            let at = run.iter().map(|piece| piece.load).min().unwrap_or_default();
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let stretch = Run { bytes, looped, to: first.to.place, at, ..Run::default() };
            let role = match first.from {
                None if moves_only || bytes >= least[0] => Role::Zeroing(stretch),
                Some((from, _)) if moves_only || bytes >= least[1] => {
                    Role::Copy(Run { from: from.place, ..stretch })
                }
                _ => {
                    of_none.extend_from_slice(run);
                    continue;
                }
            };
            for piece in run {
                roles[piece.load] = role;
                roles[piece.store] = role;
            }
            if moves_only {
                range.clone().for_each(|i| super::claim(roles, i, role));
            }
        }
        of_none
    }

    /// Whether `range` is a loop with nothing but these pieces and its counters.
    fn only_moves(&self, range: &Range<usize>, pieces: &[Piece]) -> bool {
        let body = &self.body.instructions[range.clone()];
        if pieces.is_empty() || !loops(body) {
            return false;
        }
        let mut moving = vec![false; body.len()];
        for piece in pieces {
            for at in [piece.load, piece.store] {
                if let Some(at) = at.checked_sub(range.start).filter(|at| *at < body.len()) {
                    moving[at] = true;
                }
            }
        }
        let counters = |i: &Instruction| match i.kind {
            Kind::Advance(_) | Kind::Compare | Kind::Nop | Kind::Branch(_) => true,
            Kind::Compute => i.memory.is_none() && !i.writes.iter().any(Reg::is_vector),
            _ => false,
        };
        if !pieces
            .iter()
            .filter(|piece| piece.from.is_none())
            .all(|piece| self.is_near(body, piece))
        {
            return false;
        }
        let others = body.iter().zip(&moving).filter(|(_, moving)| !**moving);
        let computes = others.clone().filter(|(i, _)| i.kind == Kind::Compute).count();
        others.clone().all(|(i, _)| counters(i)) && computes <= 2
    }

    /// Whether a loop's store goes on by a few words from turn to turn. One that strikes out multiples, or a column, goes
    /// through memory for another reason than to clear it.
    fn is_near(&self, body: &[Instruction], piece: &Piece) -> bool {
        let Some(memory) = &self.body.instructions[piece.store].memory else { return true };
        let registers = [(memory.base, 1), (memory.index, i64::from(memory.scale))];
        let steps = registers.into_iter().filter_map(|(register, scale)| Some((register?, scale)));
        let mut step = 0_i64;
        for (register, scale) in steps {
            for change in body.iter().filter(|i| i.writes.has(register)) {
                match change.kind {
                    Kind::Advance(by) => step = step.saturating_add(by.saturating_mul(scale)),
                    // An address that the access itself moves goes on by less than 512 bytes.
                    Kind::Store | Kind::StoreZero | Kind::Load => {}
                    _ => return false,
                }
            }
        }
        step.unsigned_abs() <= NEAR
    }
}

/// The number of consecutive pieces at the start of `pieces`, and the bytes that they cover.
fn stretch(pieces: &[Piece]) -> (usize, u32) {
    let Some(first) = pieces.first() else { return (0, 0) };
    let mut end = first.offset.wrapping_add(i64::from(first.bytes));
    let mut bytes = first.bytes;
    let mut length = 1;
    for piece in &pieces[1..] {
        let same = piece.to == first.to && piece.from == first.from;
        if !same || piece.offset > end.saturating_add(PADDING) {
            break;
        }
        let reach = piece.offset.wrapping_add(i64::from(piece.bytes));
        let fresh = reach.saturating_sub(end.max(piece.offset)).max(0);
        bytes = bytes.saturating_add(u32::try_from(fresh).unwrap_or(0));
        end = end.max(reach);
        length += 1;
    }
    (length, bytes)
}

/// Whether the code from instruction `start` on reads `register` before writing it, without a branch.
fn read_on(body: &Body<'_, '_>, start: usize, register: Reg) -> bool {
    for instruction in body.instructions.iter().skip(start).take(LOOK_AHEAD) {
        let stores = instruction.kind == Kind::Store;
        let address = instruction
            .memory
            .is_some_and(|m| m.base == Some(register) || m.index == Some(register));
        if instruction.reads.has(register) && (!stores || address) {
            return true;
        }
        let ends = !instruction.falls_through() || matches!(instruction.kind, Kind::Call(_));
        if instruction.writes.has(register) || ends {
            return false;
        }
    }
    false
}
