//! Whether a function keeps its variables in memory, as unoptimised code does.
//!
//! Two signs, which differ between toolchains: arguments spilled at entry, and memory operands in the frame. Not for
//! judging a single function: shapes are added up over a program's hot functions.

use crate::abi::Convention;
use crate::body::Body;
use crate::instruction::{Instruction, Kind, Registers};
use std::ops::AddAssign;

/// Counts about the code of one function, or of several together.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Functions, by weight (such as samples).
    pub functions: u64,
    /// Functions that spill arguments to their frame at entry.
    pub spilling: u64,
    /// Instructions.
    pub instructions: u64,
    /// Instructions that read or write the function's own frame.
    pub stack: u64,
    /// Instructions that load a value from the frame that a register held already.
    pub reloads: u64,
}

impl Shape {
    /// The counts multiplied by `weight`.
    #[must_use]
    pub fn weighed(self, weight: u64) -> Self {
        Self {
            functions: self.functions.saturating_mul(weight),
            spilling: self.spilling.saturating_mul(weight),
            instructions: self.instructions.saturating_mul(weight),
            stack: self.stack.saturating_mul(weight),
            reloads: self.reloads.saturating_mul(weight),
        }
    }

    /// Share of instructions that access the frame, in 0..=1.
    #[must_use]
    pub fn stack_share(&self) -> f64 {
        share(self.stack, self.instructions)
    }

    /// Whether as many instructions work on the function's own frame as without optimisation: 0 to 23 % in optimised
    /// programs of six languages, 29 to 48 % in those that were not (one program each).
    #[must_use]
    pub fn is_on_frame(&self) -> bool {
        self.stack_share() >= 0.26
    }

    /// Whether as many functions first spill their arguments to the stack as without optimisation: 89 and 100 % of those
    /// that GCC and Zig did not optimise, none that was optimised.
    #[must_use]
    pub fn is_spilling(&self) -> bool {
        self.spilling_share() >= 0.5
    }

    /// Share of instructions that reload from the frame a value that a register held, in 0..=1.
    #[must_use]
    pub fn reload_share(&self) -> f64 {
        share(self.reloads, self.instructions)
    }

    /// Share of functions that spill their arguments, in 0..=1.
    #[must_use]
    pub fn spilling_share(&self) -> f64 {
        share(self.spilling, self.functions)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl AddAssign for Shape {
    fn add_assign(&mut self, other: Self) {
        self.functions = self.functions.saturating_add(other.functions);
        self.spilling = self.spilling.saturating_add(other.spilling);
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.stack = self.stack.saturating_add(other.stack);
        self.reloads = self.reloads.saturating_add(other.reloads);
    }
}

/// How many frame offsets are remembered at a time.
const REMEMBERED: usize = 8;

/// The shape of `body`.
pub(super) fn of(body: &Body<'_, '_>) -> Shape {
    let mut shape = Shape { functions: 1, ..Shape::default() };
    let mut known = Vec::with_capacity(REMEMBERED);
    for (at, instruction) in body.instructions.iter().enumerate() {
        if body.entered[at] || matches!(instruction.kind, Kind::Call(_)) {
            known.clear();
        }
        if matches!(instruction.kind, Kind::Nop | Kind::Trap | Kind::Unknown) {
            continue;
        }
        shape.instructions += 1;
        let Some(place) = frame_place(body, instruction) else { continue };
        shape.stack += 1;
        if instruction.kind == Kind::Load && known.contains(&place) {
            shape.reloads += 1;
        }
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push(place);
    }
    shape.spilling = u64::from(spills_arguments(body.instructions, &body.convention));
    shape
}

/// The frame slot that an instruction accesses, as base and offset.
fn frame_place(body: &Body<'_, '_>, instruction: &Instruction) -> Option<(bool, i64)> {
    let memory = instruction.memory.filter(|m| m.read || m.written)?;
    let c = &body.convention;
    let framed = memory.is_at(c.frame) && memory.offset < 0;
    (framed || memory.is_at(c.stack)).then_some((framed, memory.offset))
}

/// Callee-saved registers that unoptimised code may use: GCC uses one for temporaries.
const FEW: u32 = 1;

/// How many instructions from its entry a function spills its arguments.
pub(crate) const ENTRY: usize = 16;

/// Whether argument registers are stored to the frame before any use, by code that keeps nothing in registers. Optimised
/// code that runs short of registers saves callee-saved registers first.
pub(crate) fn spills_arguments(instructions: &[Instruction], c: &Convention) -> bool {
    let mut arguments: Registers = c.arguments.iter().copied().collect();
    let kept = c.saved.without(Registers::of(&[c.frame]));
    let mut saved = 0;
    for instruction in instructions.iter().take(ENTRY) {
        let source = instruction.data[0].filter(|_| instruction.kind == Kind::Store);
        let memory = instruction.memory;
        let in_frame = memory.is_some_and(|m| m.is_at(c.frame) && m.offset < 0);
        if in_frame && source.is_some_and(|r| arguments.has(r)) {
            return true;
        }
        let saves = matches!(instruction.kind, Kind::Push | Kind::Store);
        saved += u32::from(saves && instruction.reads.meets(kept));
        if saved > FEW {
            return false;
        }
        if instruction.ends_block() || matches!(instruction.kind, Kind::Call(_)) {
            return false;
        }
        arguments = arguments.without(instruction.writes);
    }
    false
}
