//! One machine instruction in common terms: what it does with registers and memory.
//!
//! The same for every architecture, so that the rules for roles are written once. Not a disassembly: what no rule needs
//! (flags, widths of registers) is left out.

/// A general (0 to 31) or vector (32 to 63) register, by its number in the encoding.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reg(u8);

impl Reg {
    /// General register `n`; numbers above 31 wrap.
    #[must_use]
    pub const fn general(n: u8) -> Self {
        Self(n & 31)
    }

    /// Vector register `n`; numbers above 31 wrap.
    #[must_use]
    pub const fn vector(n: u8) -> Self {
        Self(32 | (n & 31))
    }

    /// Whether it is a vector register.
    #[must_use]
    pub fn is_vector(self) -> bool {
        self.0 >= 32
    }

    /// As an index into a table of [`Reg::COUNT`] entries.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// How many registers there are.
    pub const COUNT: usize = 64;
}

/// A set of registers.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers(u64);

impl Registers {
    /// The set of these.
    #[must_use]
    pub const fn of(registers: &[Reg]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < registers.len() {
            bits |= 1 << registers[i].0;
            i += 1;
        }
        Self(bits)
    }

    /// Adds one.
    pub fn insert(&mut self, register: Reg) {
        self.0 |= 1 << register.0;
    }

    /// Whether `register` is one of them.
    #[must_use]
    pub fn has(self, register: Reg) -> bool {
        self.0 >> register.0 & 1 == 1
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that are in either.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether both have one in common.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Those that are in `self` and not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The registers, in order.
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        let mut bits = self.0;
        std::iter::from_fn(move || {
            let n = bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            u8::try_from(n).ok().filter(|n| *n < 64).map(Reg)
        })
    }
}

impl FromIterator<Reg> for Registers {
    fn from_iter<I: IntoIterator<Item = Reg>>(registers: I) -> Self {
        let mut out = Self::default();
        registers.into_iter().for_each(|r| out.insert(r));
        out
    }
}

/// What an instruction does, as far as rules need it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Memory into the registers in `data`, unchanged or zero-extended.
    Load,
    /// The registers in `data` to memory.
    Store,
    /// Zero to memory, from an immediate or the zero register.
    StoreZero,
    /// Another constant to memory.
    StoreConstant,
    /// `data[0]` takes the value of `data[1]`.
    Move,
    /// `data[0]` takes this value.
    Constant(i64),
    /// `data[0]` advances by this number.
    Advance(i64),
    /// `data[0]` takes an address; no memory is touched.
    Address,
    /// Only flags are set (`cmp`, `test`).
    Compare,
    /// Any other computation, with or without memory. With both `data`: `data[1]` is added to `data[0]`.
    Compute,
    /// Continues elsewhere, always. No target: through a register or memory.
    Jump(Option<u64>),
    /// Continues elsewhere on a condition.
    Branch(u64),
    /// Calls. No target: through a register or memory, see [`Instruction::callee`].
    Call(Option<u64>),
    /// Returns to the caller.
    Return,
    /// Puts a register or constant onto the stack.
    Push,
    /// Takes a register from the stack, or drops the frame.
    Pop,
    /// Copies a block by itself (`rep movs`).
    CopyBlock,
    /// Fills a block by itself (`rep stos`).
    FillBlock,
    /// Atomic read-modify-write.
    Atomic,
    /// Enters the kernel.
    System,
    /// No operation; padding.
    Nop,
    /// Ends in a signal: `ud2`, `brk`.
    Trap,
    /// Not an instruction that the decoder knows.
    Unknown,
}

/// A computation that takes many times as long as others.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// Of integers, by this register, or by the memory operand (none).
    Integer(Option<Reg>),
    /// Of floating-point numbers, likewise.
    Float(Option<Reg>),
    /// A square root.
    Root,
}

/// What is done with floating-point numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A sum or a difference.
    Add,
    Multiply,
    /// Both in one.
    MultiplyAdd,
    Divide,
    Root,
    /// The smaller or the larger one.
    Least,
    /// To or from another type, and rounding.
    Convert,
    /// Bits are combined: signs, and choices.
    Bits,
}

/// An instruction that computes with floating-point numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Float {
    pub(crate) operation: Operation,
    /// Whether it computes several numbers at once.
    pub(crate) packed: bool,
    /// Whether these have 64 bits.
    pub(crate) double: bool,
    /// Whether it converts an integer of 64 bits.
    pub(crate) wide: bool,
    /// The vector registers whose numbers it uses.
    pub(crate) sources: Registers,
    /// The one that is added to a product.
    pub(crate) addend: Option<Reg>,
}

/// A memory operand.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Register that is added; none where the address is fixed ([`Memory::offset`] has it).
    pub base: Option<Reg>,
    /// Register that is added, scaled.
    pub index: Option<Reg>,
    /// What the index is multiplied with: a power of two.
    pub scale: u8,
    /// Constant part, or the whole address if there are no registers.
    pub offset: i64,
    /// Bytes read or written in all; 0 where that depends on a register.
    pub size: u32,
    /// Whether it is relative to a segment: storage of the thread.
    pub thread_local: bool,
    /// Whether it is written (a read-modify-write is both).
    pub written: bool,
    /// Whether it is read.
    pub read: bool,
}

/// One decoded instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its address.
    pub addr: u64,
    /// Its length in bytes.
    pub len: u8,
    /// What it does.
    pub kind: Kind,
    /// Its memory operand (for [`Kind::Address`]: not accessed).
    pub memory: Option<Memory>,
    /// Registers whose value moves, in order; see [`Kind`].
    pub data: [Option<Reg>; 2],
    /// Registers read, those of the address included.
    pub reads: Registers,
    /// Registers written.
    pub writes: Registers,
    /// How far the base register advances: after the access (Arm's post-index), or before it, when the offset already
    /// includes it.
    pub step: i64,
    /// Of a branch on equality: whether it goes to its target if what was compared is equal.
    pub on_equal: Option<bool>,
}

impl Instruction {
    /// An instruction that nothing is known about.
    #[must_use]
    pub fn unknown(addr: u64, len: u8) -> Self {
        Self {
            addr,
            len,
            kind: Kind::Unknown,
            memory: None,
            data: [None; 2],
            reads: Registers::default(),
            writes: Registers::default(),
            step: 0,
            on_equal: None,
        }
    }

    /// The address after it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.addr.wrapping_add(u64::from(self.len))
    }

    /// The fixed target of a jump or branch. Not for calls.
    #[must_use]
    pub fn target(&self) -> Option<u64> {
        match self.kind {
            Kind::Jump(target) => target,
            Kind::Branch(target) => Some(target),
            _ => None,
        }
    }

    /// The code that is called, or the fixed place that holds its address (an entry of the GOT).
    #[must_use]
    pub fn callee(&self) -> Option<u64> {
        match self.kind {
            Kind::Call(Some(target)) | Kind::Jump(Some(target)) => Some(target),
            Kind::Call(None) | Kind::Jump(None) => self.memory.and_then(|m| m.fixed()),
            _ => None,
        }
    }

    /// Whether the next instruction is run after it, calls included.
    #[must_use]
    pub fn falls_through(&self) -> bool {
        !matches!(self.kind, Kind::Jump(_) | Kind::Return | Kind::Trap)
    }

    /// Whether it ends a basic block.
    #[must_use]
    pub fn ends_block(&self) -> bool {
        !self.falls_through() || matches!(self.kind, Kind::Branch(_))
    }

    /// Bytes that move with each register in `data`.
    #[must_use]
    pub fn width(&self) -> u32 {
        let size = self.memory.map_or(0, |m| m.size);
        if self.data[1].is_some() { size / 2 } else { size }
    }
}

impl Memory {
    /// The address, where no register is part of it.
    #[must_use]
    pub fn fixed(&self) -> Option<u64> {
        let fixed = self.base.is_none() && self.index.is_none() && !self.thread_local;
        fixed.then(|| self.offset.cast_unsigned())
    }

    /// Whether it is at a constant offset from `register`.
    #[must_use]
    pub fn is_at(&self, register: Reg) -> bool {
        self.base == Some(register) && self.index.is_none()
    }
}
