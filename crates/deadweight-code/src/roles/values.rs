//! Values of registers within basic blocks: constants, loaded values, addresses.
//!
//! Just enough to match a store with the load of its value. Not a data-flow analysis: a value is known only if a single
//! path leads to it.

use super::Place;
use crate::abi::Convention;
use crate::body::Body;
use crate::instruction::{Instruction, Kind, Memory, Reg, Registers};

/// The value of a register.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Value {
    #[default]
    Unknown,
    Constant(i64),
    /// An address in the function's own frame.
    Frame,
    /// The result of a call.
    Returned,
    /// The value that instruction `at` loaded into its register number `half`.
    Loaded {
        at: usize,
        half: u8,
    },
}

/// A memory operand relative to unchanged register values, so that two of them can be compared.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Operand {
    base: Option<(Reg, u32)>,
    index: Option<(Reg, u32)>,
    /// The kind of memory.
    pub(super) place: Place,
}

/// The values of all registers at one point of the code.
pub(super) struct Values {
    held: [Value; Reg::COUNT],
    /// A number for each register's value: a new one with every write that is not an advance.
    version: [u32; Reg::COUNT],
    /// How far a register has advanced since.
    stepped: [i64; Reg::COUNT],
    writes: u32,
    stack: Reg,
    /// The frame register, if the function uses it as one; optimised code often does not.
    frame: Option<Reg>,
    /// General registers that hold the same constant at every use.
    constant: [Option<i64>; Reg::COUNT],
    /// Vector registers that the function only ever sets to zero.
    always_zero: Registers,
}

impl Values {
    /// Where nothing is known, in a function of which these are the first instructions. Registers that hold one value in
    /// the whole function are not known.
    pub(super) fn fresh(entry: &[Instruction], convention: &Convention) -> Self {
        Self {
            held: [Value::Unknown; Reg::COUNT],
            version: [0; Reg::COUNT],
            stepped: [0; Reg::COUNT],
            writes: 0,
            stack: convention.stack,
            frame: keeps_frame(entry, convention).then_some(convention.frame),
            constant: [None; Reg::COUNT],
            always_zero: Registers::default(),
        }
    }

    /// At the entry of `body`.
    pub(super) fn new(body: &Body<'_, '_>) -> Self {
        Self {
            constant: std::array::from_fn(|i| body.single.constant(numbered(i))),
            always_zero: always_zero(body),
            ..Self::fresh(body.instructions, &body.convention)
        }
    }

    /// Forgets all values: this code can be reached on another path.
    pub(super) fn forget(&mut self) {
        self.held = [Value::Unknown; Reg::COUNT];
        self.writes += 1;
        self.version = [self.writes; Reg::COUNT];
        self.stepped = [0; Reg::COUNT];
    }

    /// Keeps the values that a loop does not change: `block` is entered from above and from its own end only.
    pub(super) fn enter_loop(&mut self, block: &[Instruction]) {
        let held = self.held;
        self.forget();
        self.held = held;
        for instruction in block {
            let steps = matches!(instruction.kind, Kind::Advance(_));
            for register in instruction.writes.iter() {
                let kept = steps || instruction.memory.and_then(|m| m.base) == Some(register);
                self.held[register.index()] =
                    if kept { self.stepping(register) } else { Value::Unknown };
            }
        }
    }

    /// The value of `register`.
    pub(super) fn of(&self, register: Reg) -> Value {
        if self.always_zero.has(register) {
            return Value::Constant(0);
        }
        if let Some(value) = self.constant[register.index()] {
            return Value::Constant(value);
        }
        if register == self.stack || self.frame == Some(register) {
            return Value::Frame;
        }
        self.held[register.index()]
    }

    /// The kind of memory that `register` points to, if it is an address of a block.
    pub(super) fn place(&self, register: Option<&Reg>) -> Place {
        match register.map(|r| self.of(*r)) {
            Some(Value::Frame) => Place::Frame,
            Some(Value::Returned) => Place::Returned,
            _ => Place::Unknown,
        }
    }

    /// The operand of `memory`, and the offset from it in bytes.
    pub(super) fn operand(&self, memory: &Memory) -> (Operand, i64) {
        let versioned = |r: Reg| (r, self.version[r.index()]);
        let place = match (memory.base, memory.index) {
            (Some(base), _) if self.of(base) == Value::Frame => Place::Frame,
            (_, Some(_)) => Place::Element,
            (Some(_), None) => Place::Pointer,
            (None, None) => Place::Static,
        };
        let stepped = memory.base.map_or(0, |r| self.stepped[r.index()]);
        let operand =
            Operand { base: memory.base.map(versioned), index: memory.index.map(versioned), place };
        (operand, memory.offset.wrapping_add(stepped))
    }

    /// Updates the values past instruction number `at`.
    pub(super) fn pass(&mut self, convention: &Convention, at: usize, instruction: &Instruction) {
        if let Kind::Call(_) = instruction.kind {
            self.call(convention.saved, convention.stack);
            self.held[convention.result.index()] = Value::Returned;
            return;
        }
        let kept = match instruction.kind {
            Kind::Push | Kind::Pop => Some(convention.stack),
            Kind::Advance(_) => instruction.data[0],
            _ if instruction.step != 0 => instruction.memory.and_then(|m| m.base),
            _ => None,
        };
        let moved = instruction.data[1].map(|source| self.of(source));
        for register in instruction.writes.iter() {
            if Some(register) != kept {
                self.write(register, Value::Unknown);
            }
        }
        if let Some(register) = kept {
            let step = match instruction.kind {
                Kind::Advance(step) => step,
                Kind::Push => -8,
                Kind::Pop => 8,
                _ => instruction.step,
            };
            self.held[register.index()] = self.stepping(register);
            self.stepped[register.index()] = self.stepped[register.index()].wrapping_add(step);
        }
        let Some(first) = instruction.data[0] else { return };
        match instruction.kind {
            Kind::Constant(value) => self.held[first.index()] = Value::Constant(value),
            Kind::Move => self.held[first.index()] = moved.unwrap_or_default(),
            Kind::Address
                if instruction.memory.is_some_and(|m| m.base == Some(convention.stack)) =>
            {
                self.held[first.index()] = Value::Frame;
            }
            Kind::Load => {
                for (half, register) in (0u8..).zip(instruction.data.iter().flatten()) {
                    self.held[register.index()] = Value::Loaded { at, half };
                }
            }
            _ => {}
        }
    }

    /// The value of a register after it advances.
    fn stepping(&self, register: Reg) -> Value {
        match self.held[register.index()] {
            Value::Frame => Value::Frame,
            _ => Value::Unknown,
        }
    }

    fn write(&mut self, register: Reg, value: Value) {
        self.writes += 1;
        let i = register.index();
        self.version[i] = self.writes;
        self.stepped[i] = 0;
        self.held[i] = value;
    }

    fn call(&mut self, saved: Registers, stack: Reg) {
        for i in 0..Reg::COUNT {
            let register = numbered(i);
            if !saved.has(register) && register != stack {
                self.write(register, Value::Unknown);
            }
        }
    }
}

/// The register with this index.
fn numbered(i: usize) -> Reg {
    if i < 32 { Reg::general(narrow(i)) } else { Reg::vector(narrow(i)) }
}

fn narrow(i: usize) -> u8 {
    u8::try_from(i & 31).unwrap_or(0)
}

/// Whether the frame register is set from the stack pointer near the entry.
fn keeps_frame(entry: &[Instruction], convention: &Convention) -> bool {
    entry.iter().take(8).any(|i| {
        let from_stack = i.data[1] == Some(convention.stack)
            || i.memory.is_some_and(|m| m.base == Some(convention.stack));
        matches!(i.kind, Kind::Move | Kind::Address | Kind::Compute)
            && i.writes.has(convention.frame)
            && from_stack
    })
}

/// A loop's zero register is set before the loop, outside its basic block. A vector register that is only ever set to zero
/// is zero at every store; except results of calls.
fn always_zero(body: &Body<'_, '_>) -> Registers {
    let mut zeroed = Registers::default();
    let mut other = Registers::default();
    let mut calls = false;
    for i in body.instructions {
        calls |= matches!(i.kind, Kind::Call(_));
        match (i.kind, i.data[0]) {
            (Kind::Constant(0), Some(register)) => zeroed.insert(register),
            _ => i.writes.iter().for_each(|register| other.insert(register)),
        }
    }
    if calls {
        other.insert(Reg::vector(0));
    }
    let mut out = Registers::default();
    zeroed.without(other).iter().filter(|r| r.is_vector()).for_each(|r| out.insert(r));
    if let Some(zero) = body.convention.zero.filter(|r| !other.has(*r)) {
        out.insert(zero);
    }
    out
}
