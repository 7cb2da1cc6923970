//! What the quick pass of a function keeps: where instructions begin and how blocks end, from which the depth of loops
//! follows without the complete instructions.
//!
//! One value serves all functions that a thread reads. Does not judge; see `screen` and `quick`.

use crate::abi::Abi;
use crate::code::Code;
use crate::decode::{Operations, Sort, Way};
use crate::function::graph::{End, Graph};
use crate::instruction::Registers;
use deadweight_trace::units::FileAddr;

/// Notes of the quick pass over one function. Offsets are from its first byte.
#[derive(Debug, Default)]
pub struct Passed {
    /// Whether the pass knew all instructions; else nothing here counts.
    pub(super) is_complete: bool,
    /// Where each instruction begins.
    pub(super) starts: Vec<u32>,
    /// The instructions that end a block.
    pub(super) turns: Vec<Turn>,
    /// From where to where jumps back lead, in order and apart from each other.
    pub(super) spans: Vec<(u32, u32)>,
    /// Whether a jump may go anywhere: then code outside of these may be in a loop, too.
    pub(super) anywhere: bool,
    /// What is of interest in a loop.
    pub(super) events: Vec<(u32, Event)>,
    /// Whether a pointer to a routine that panics is loaded, and may be called through a register.
    pub(super) loads_panic: bool,
    /// Where enough may be copied, from and to: straight code with stores, and calls of routines that move memory. In order.
    pub(super) sites: Vec<(u32, u32)>,
    /// Registers that get a large constant.
    pub(super) constants: Registers,
    /// Whether stores may clear enough memory.
    pub(super) clears: bool,
    /// Registers that get a pointer to a routine that moves memory, which may be called through them.
    pub(super) movers: Registers,
    /// Where single floating-point numbers are computed, and how.
    pub(super) scalars: Vec<(u32, Operations)>,
    /// What is computed of several at once.
    pub(super) packed: Operations,
}

/// An instruction that ends a block.
#[derive(Copy, Clone, Debug)]
pub(super) struct Turn {
    pub(super) at: u32,
    /// The end of the instruction.
    pub(super) end: u32,
    /// The address that it jumps or branches to.
    pub(super) target: Option<u64>,
    /// Whether the next instruction may follow: then it is a branch.
    pub(super) falls: bool,
    /// Whether it may go anywhere.
    pub(super) anywhere: bool,
}

/// What may be of interest if it is in a loop.
#[derive(Copy, Clone, Debug)]
pub(super) enum Event {
    /// An atomic operation or a division.
    Slow,
    /// A call of this address.
    Call(u64),
}

impl Passed {
    pub(super) fn clear(&mut self) {
        self.is_complete = false;
        self.loads_panic = false;
        self.clears = false;
        self.movers = Registers::default();
        self.constants = Registers::default();
        self.spans.clear();
        self.anywhere = false;
        self.sites.clear();
        self.starts.clear();
        self.turns.clear();
        self.events.clear();
        self.scalars.clear();
        self.packed = Operations::default();
    }

    /// Notes the instruction from `at` to `end`.
    #[inline]
    pub(super) fn note(&mut self, at: u32, end: u32, sort: Sort) {
        self.starts.push(at);
        let turn = Turn { at, end, target: None, falls: false, anywhere: false };
        match sort {
            Sort::To { target, falls } => {
                self.turns.push(Turn { target: Some(target), falls, ..turn });
            }
            Sort::Leaves(Way::Jumps) | Sort::Through(_, Way::Jumps) => {
                self.anywhere = true;
                self.turns.push(Turn { anywhere: true, ..turn });
            }
            Sort::Leaves(Way::Ends) | Sort::Stops => self.turns.push(turn),
            Sort::Slow => self.events.push((at, Event::Slow)),
            Sort::Call(to) => self.events.push((at, Event::Call(to))),
            Sort::Scalar(how) => self.scalars.push((at, how)),
            Sort::Packed(how) => self.packed = self.packed.and(how),
            _ => {}
        }
    }

    /// Whether the instruction at this offset may be in a loop: from its first address to its last one a loop is covered by
    /// jumps back.
    pub(super) fn may_be_in_loop(&self, offset: u32) -> bool {
        let after = self.spans.partition_point(|(first, _)| *first <= offset);
        self.anywhere || after.checked_sub(1).is_some_and(|at| offset <= self.spans[at].1)
    }

    /// The code from instruction `first` on up to the end of instruction `last`.
    pub(super) fn part<'c>(&self, code: &Code<'c>, first: usize, last: usize) -> Option<Code<'c>> {
        let from = *self.starts.get(first)?;
        let to = self.starts.get(last + 1).map_or(code.bytes.len(), |to| *to as usize);
        let bytes = code.bytes.get(from as usize..to)?;
        let addr = FileAddr(code.addr.0.wrapping_add(u64::from(from)));
        Some(Code { addr, bytes, ..*code })
    }

    /// Where jumps and branches of the function lead in it, in order.
    pub(super) fn entered(&self, code: &Code<'_>) -> Vec<u32> {
        let targets = self.turns.iter().filter_map(|turn| self.instruction(code, turn.target?));
        let mut entered: Vec<u32> = targets.map(|number| self.starts[number]).collect();
        entered.sort_unstable();
        entered.dedup();
        entered
    }

    /// The number of the instruction at an address.
    pub(super) fn instruction(&self, code: &Code<'_>, addr: u64) -> Option<usize> {
        let at = u32::try_from(addr.checked_sub(code.addr.0)?).ok()?;
        self.starts.binary_search(&at).ok()
    }
}

/// How many natural loops are around each block.
#[derive(Debug)]
pub(super) struct Depths {
    /// Where the blocks begin, in order.
    starts: Vec<u32>,
    depths: Vec<u32>,
}

impl Depths {
    /// Those of `code`, of which `passed` has the notes.
    pub(super) fn of(code: &Code<'_>, passed: &Passed) -> Self {
        let base = code.addr.0;
        let back = |turn: &Turn| {
            turn.target.is_some_and(|to| to <= base.saturating_add(u64::from(turn.at)))
        };
        if passed.starts.is_empty() || !passed.turns.iter().any(back) {
            return Self { starts: vec![0], depths: vec![0] };
        }
        let mut starts = vec![0];
        for turn in &passed.turns {
            starts.extend((u64::from(turn.end) < code.bytes.len() as u64).then_some(turn.end));
            let target = turn.target.and_then(|to| passed.instruction(code, to));
            starts.extend(target.map(|number| passed.starts[number]));
        }
        starts.sort_unstable();
        starts.dedup();
        let mut turns = passed.turns.iter().peekable();
        let ends: Vec<End> = (1..=starts.len())
            .map(|next| {
                let end = starts.get(next).copied().unwrap_or(u32::MAX);
                while turns.next_if(|turn| turn.end < end && next < starts.len()).is_some() {}
                let last = next == starts.len();
                let turn = turns.next_if(|turn| turn.end == end || last);
                let Some(turn) = turn else { return End { falls: true, ..End::default() } };
                let target = turn.target.and_then(|to| u32::try_from(to.checked_sub(base)?).ok());
                End {
                    target: target.and_then(|to| starts.binary_search(&to).ok()),
                    falls: turn.falls,
                    anywhere: turn.anywhere,
                }
            })
            .collect();
        let depths = Graph::of(&ends).depths(code.abi == Abi::Go);
        Self { starts, depths }
    }

    /// The depth of the instruction at this offset.
    pub(super) fn at(&self, offset: u32) -> u32 {
        let after = self.starts.partition_point(|start| *start <= offset);
        self.depths.get(after.saturating_sub(1)).copied().unwrap_or_default()
    }
}
