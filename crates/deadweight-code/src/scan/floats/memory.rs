//! The memory that a turn of a loop uses: whether the loop uses all of it in order, and whether a turn needs what an
//! earlier one stored.

use crate::function::steps;
use crate::instruction::{Instruction, Memory, Reg};

/// In more bytes per turn there are gaps.
const LARGEST: u64 = 256;
/// What was stored so many turns before does not matter: a register holds fewer numbers.
const FAR: i64 = 16;
/// General registers have lower numbers.
const GENERAL: usize = 32;

/// What a register holds: a value that another one, or itself, had at the start of a turn, and a number more; or, with a
/// number of its own, what an instruction computed.
type Value = (usize, i64);

/// The memory of one turn.
pub(super) struct Used {
    held: [Value; GENERAL],
    others: usize,
    all: Vec<Use>,
}

struct Use {
    /// The values of base and index, and the scale.
    place: (Option<usize>, Option<usize>, u8),
    step: i64,
    offset: i64,
    size: u32,
    stores: bool,
}

impl Used {
    pub(super) fn new() -> Self {
        Self { held: std::array::from_fn(|n| (n, 0)), others: GENERAL, all: Vec::new() }
    }

    /// Notes an operand whose address moves by `step` in each turn.
    pub(super) fn add(&mut self, memory: &Memory, step: i64) {
        let part = |register: Option<Reg>| register.and_then(|r| self.held.get(r.index()));
        let (base, index) = (part(memory.base), part(memory.index));
        let times =
            |value: Option<&Value>, scale: i64| value.map_or(0, |v| v.1.wrapping_mul(scale));
        let more = times(base, 1).wrapping_add(times(index, memory.scale.into()));
        self.all.push(Use {
            place: (base.map(|v| v.0), index.map(|v| v.0), memory.scale),
            step,
            offset: memory.offset.wrapping_add(more),
            size: memory.size,
            stores: memory.written,
        });
    }

    /// Follows what registers hold.
    pub(super) fn pass(&mut self, instruction: &Instruction) {
        let sum = steps::sum(instruction).and_then(|(from, more)| {
            let (origin, before) = self.held.get(from.index())?;
            Some((*origin, before.wrapping_add(more)))
        });
        for written in instruction.writes.iter().filter(|r| !r.is_vector()) {
            self.others += 1;
            let value = sum.filter(|_| instruction.data[0] == Some(written));
            if let Some(held) = self.held.get_mut(written.index()) {
                *held = value.unwrap_or((self.others, 0));
            }
        }
    }

    /// Whether the turns use every byte of what they pass over.
    pub(super) fn is_dense(&self) -> bool {
        !self.all.is_empty()
            && self.all.iter().all(|one| {
                let step = one.step.unsigned_abs();
                let alike = || {
                    self.all
                        .iter()
                        .filter(|other| (other.place, other.step) == (one.place, one.step))
                };
                step <= LARGEST
                    && (0..step).all(|byte| {
                        alike().any(|other| {
                            let from = other
                                .offset
                                .rem_euclid(one.step.saturating_abs().max(1))
                                .unsigned_abs();
                            (byte + step - from) % step.max(1) < u64::from(other.size)
                        })
                    })
            })
    }

    /// Whether a turn loads what one of the turns before stored.
    pub(super) fn is_chained(&self) -> bool {
        let stores = || self.all.iter().filter(|one| one.stores);
        self.all.iter().any(|load| {
            let same = stores().filter(|s| (s.place, s.step) == (load.place, load.step));
            same.into_iter().any(|store| {
                (1..=FAR).any(|turns| {
                    let at = load.offset.wrapping_add(turns.wrapping_mul(load.step));
                    at < store.offset.wrapping_add(store.size.into())
                        && store.offset < at.wrapping_add(load.size.into())
                })
            })
        })
    }

    /// How many numbers of this size a turn uses of one array.
    pub(super) fn numbers(&self, size: u64) -> u64 {
        self.all.iter().map(|one| one.step.unsigned_abs() / size).max().unwrap_or(1).max(1)
    }
}
