//! What registers hold while straight-line code runs: constants, loaded values, addresses.
//!
//! Just enough to pair a store with the load it came from. A register's value is known only
//! from what the code does on the one way to it; anything else is unknown.

use super::Place;
use crate::body::Body;
use crate::instruction::{Instruction, Kind, Memory, Reg, Registers};

/// What a register holds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Value {
    #[default]
    Unknown,
    Constant(i64),
    /// An address in the function's own frame.
    Frame,
    /// What a call returned.
    Returned,
    /// What instruction `at` loaded into its register number `half`.
    Loaded {
        at: usize,
        half: u8,
    },
}

/// A memory operand relative to register values that did not change, so that two of them can be
/// compared.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    base: Option<(Reg, u32)>,
    index: Option<(Reg, u32)>,
    /// What kind of memory it is.
    pub(super) place: Place,
}

/// The registers' contents at one point of the code.
pub(super) struct Values {
    held: [Value; Reg::COUNT],
    /// Which value a register holds, by number: a new one with every write that is not a step.
    version: [u32; Reg::COUNT],
    /// How far a register has stepped since.
    stepped: [i64; Reg::COUNT],
    writes: u32,
    stack: Reg,
    /// The frame register, where it is used as one, which optimised code often does not.
    frame: Option<Reg>,
    /// General registers that hold the same constant wherever they are used.
    constant: [Option<i64>; Reg::COUNT],
    /// Vector registers that the function never sets to anything but zero.
    always_zero: Registers,
}

impl Values {
    /// At the entry of `body`.
    pub(super) fn new(body: &Body<'_, '_>) -> Self {
        Self {
            held: [Value::Unknown; Reg::COUNT],
            version: [0; Reg::COUNT],
            stepped: [0; Reg::COUNT],
            writes: 0,
            stack: body.convention.stack,
            frame: keeps_frame(body).then_some(body.convention.frame),
            constant: std::array::from_fn(|i| body.single.constant(numbered(i))),
            always_zero: always_zero(body),
        }
    }

    /// Forgets everything: the code here can be reached on another way.
    pub(super) fn forget(&mut self) {
        self.held = [Value::Unknown; Reg::COUNT];
        self.writes += 1;
        self.version = [self.writes; Reg::COUNT];
        self.stepped = [0; Reg::COUNT];
    }

    /// Keeps what a loop does not change: `block` is entered from above and from its own end only.
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

    /// What `register` holds.
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

    /// Where `memory` is, and how far into that, in bytes.
    pub(super) fn spot(&self, memory: &Memory) -> (Spot, i64) {
        let versioned = |r: Reg| (r, self.version[r.index()]);
        let place = match (memory.base, memory.index) {
            (Some(base), _) if self.of(base) == Value::Frame => Place::Frame,
            (_, Some(_)) => Place::Element,
            (Some(_), None) => Place::Pointer,
            (None, None) => Place::Static,
        };
        let stepped = memory.base.map_or(0, |r| self.stepped[r.index()]);
        let spot =
            Spot { base: memory.base.map(versioned), index: memory.index.map(versioned), place };
        (spot, memory.offset.wrapping_add(stepped))
    }

    /// Moves on past instruction number `at`.
    pub(super) fn pass(&mut self, body: &Body<'_, '_>, at: usize, instruction: &Instruction) {
        let convention = &body.convention;
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

    /// What is left of a register's meaning when it steps.
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
fn keeps_frame(body: &Body<'_, '_>) -> bool {
    let convention = &body.convention;
    body.instructions.iter().take(8).any(|i| {
        let from_stack = i.data[1] == Some(convention.stack)
            || i.memory.is_some_and(|m| m.base == Some(convention.stack));
        matches!(i.kind, Kind::Move | Kind::Address | Kind::Compute)
            && i.writes.has(convention.frame)
            && from_stack
    })
}

/// A loop's zero is set before it, which no straight line shows. A vector register that is only
/// ever set to zero is zero wherever it is stored; results of calls are excepted.
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
