//! A small assembler for BPF: the instructions that the programs here need.
//!
//! Does not know what the programs do. They have some hundred instructions, so they are assembled
//! here and not compiled from C: no compiler, no object file to keep in step with its source, no
//! relocation.

/// One instruction, as `struct bpf_insn`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u8,
    /// The destination register in the low half, the source register in the high half.
    registers: u8,
    offset: i16,
    value: i32,
}

/// A register: 0 holds results, 1 to 5 are arguments and lost at calls, 6 to 9 are kept, 10 is the
/// frame pointer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct R(pub(super) u8);

/// A jump target.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// A comparison, unsigned except the last.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Cond {
    Equal = 0x10,
    Greater = 0x20,
    NotEqual = 0x50,
    Less = 0xa0,
    LessSigned = 0xc0,
}

/// An arithmetic operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Add = 0x00,
    Subtract = 0x10,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Xor = 0xa0,
    Mov = 0xb0,
}

/// An atomic operation on memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum AtomicOp {
    Or = 0x40,
    And = 0x50,
}

/// Instruction classes and modes of `linux/bpf_common.h` and `linux/bpf.h`.
mod code {
    pub(super) const LOAD_IMM_64: u8 = 0x18;
    pub(super) const LOAD_32: u8 = 0x61;
    pub(super) const LOAD_64: u8 = 0x79;
    pub(super) const STORE_32: u8 = 0x63;
    pub(super) const STORE_64: u8 = 0x7b;
    pub(super) const STORE_IMM_32: u8 = 0x62;
    pub(super) const STORE_IMM_64: u8 = 0x7a;
    pub(super) const JUMP: u8 = 0x05;
    pub(super) const CALL: u8 = 0x85;
    pub(super) const EXIT: u8 = 0x95;
    pub(super) const ALU_64: u8 = 0x07;
    pub(super) const MOV32_IMM: u8 = 0xb4;
    pub(super) const MOV32_REG: u8 = 0xbc;
    /// `BPF_ATOMIC`: the value says which operation.
    pub(super) const ATOMIC_64: u8 = 0xdb;
    /// `BPF_X`: added if the right operand is a register.
    pub(super) const BY_REGISTER: u8 = 0x08;
    /// `BPF_PSEUDO_MAP_FD`.
    pub(super) const PSEUDO_MAP_FD: u8 = 1;
}

/// A program being assembled.
#[derive(Debug, Default)]
pub(super) struct Program {
    code: Vec<Instruction>,
    targets: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Program {
    fn push(&mut self, code: u8, to: R, from: R, offset: i16, value: i32) {
        let registers = to.0 | from.0 << 4;
        self.code.push(Instruction { code, registers, offset, value });
    }

    /// `to op= value`.
    pub(super) fn op_imm(&mut self, op: Op, to: R, value: i32) {
        self.push(code::ALU_64 | op as u8, to, R(0), 0, value);
    }

    /// `to op= from`.
    pub(super) fn op_reg(&mut self, op: Op, to: R, from: R) {
        self.push(code::ALU_64 | code::BY_REGISTER | op as u8, to, from, 0, 0);
    }

    /// `to = value`, the upper half 0.
    pub(super) fn mov32_imm(&mut self, to: R, value: i32) {
        self.push(code::MOV32_IMM, to, R(0), 0, value);
    }

    /// `to = from`, the upper half 0.
    pub(super) fn mov32_reg(&mut self, to: R, from: R) {
        self.push(code::MOV32_REG, to, from, 0, 0);
    }

    /// `to = *(from + offset)`.
    pub(super) fn load(&mut self, to: R, from: R, offset: i16) {
        self.push(code::LOAD_64, to, from, offset, 0);
    }

    /// The same with 32 bits.
    pub(super) fn load_32(&mut self, to: R, from: R, offset: i16) {
        self.push(code::LOAD_32, to, from, offset, 0);
    }

    /// `*(to + offset) = from`.
    pub(super) fn store(&mut self, to: R, offset: i16, from: R) {
        self.push(code::STORE_64, to, from, offset, 0);
    }

    /// The same with 32 bits.
    pub(super) fn store_32(&mut self, to: R, offset: i16, from: R) {
        self.push(code::STORE_32, to, from, offset, 0);
    }

    /// `*(to + offset) = value`.
    pub(super) fn store_imm(&mut self, to: R, offset: i16, value: i32) {
        self.push(code::STORE_IMM_64, to, R(0), offset, value);
    }

    /// The same with 32 bits.
    pub(super) fn store32_imm(&mut self, to: R, offset: i16, value: i32) {
        self.push(code::STORE_IMM_32, to, R(0), offset, value);
    }

    /// `*(to + offset) |= from`, or `&=`, atomically.
    pub(super) fn atomic(&mut self, what: AtomicOp, to: R, offset: i16, from: R) {
        self.push(code::ATOMIC_64, to, from, offset, what as i32);
    }

    /// `to = map`, by its descriptor.
    pub(super) fn load_map(&mut self, to: R, descriptor: i32) {
        self.push(code::LOAD_IMM_64, to, R(code::PSEUDO_MAP_FD), 0, descriptor);
        self.push(0, R(0), R(0), 0, 0);
    }

    /// Calls a helper function of the kernel, by number.
    pub(super) fn call(&mut self, function: i32) {
        self.push(code::CALL, R(0), R(0), 0, function);
    }

    /// Returns 0.
    pub(super) fn exit(&mut self) {
        self.op_imm(Op::Mov, R(0), 0);
        self.push(code::EXIT, R(0), R(0), 0, 0);
    }

    /// A label, bound to an instruction by [`Program::bind`].
    pub(super) fn label(&mut self) -> Label {
        self.targets.push(None);
        Label(self.targets.len() - 1)
    }

    /// Binds the label to the next instruction.
    pub(super) fn bind(&mut self, label: Label) {
        self.targets[label.0] = Some(self.code.len());
    }

    /// Jumps to the label.
    pub(super) fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(code::JUMP, R(0), R(0), 0, 0);
    }

    /// Jumps if the register compares so with the value.
    pub(super) fn jump_if(&mut self, left: R, cond: Cond, right: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(code::JUMP | cond as u8, left, R(0), 0, right);
    }

    /// Jumps if the registers compare so.
    pub(super) fn jump_if_both(&mut self, left: R, cond: Cond, right: R, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(code::JUMP | code::BY_REGISTER | cond as u8, left, right, 0, 0);
    }

    /// The instructions, with resolved jumps. None if a label is not bound, or too far.
    pub(super) fn finish(mut self) -> Option<Vec<Instruction>> {
        for (at, label) in self.jumps {
            let distance =
                i64::try_from(self.targets[label.0]?).ok()? - i64::try_from(at).ok()? - 1;
            self.code[at].offset = i16::try_from(distance).ok()?;
        }
        Some(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_counted_from_the_instruction_behind() {
        let mut program = Program::default();
        let end = program.label();
        program.jump_if(R(1), Cond::Equal, 7, end);
        program.load_map(R(2), 5);
        program.bind(end);
        program.exit();
        let code = program.finish().unwrap();
        assert_eq!(code.len(), 5);
        assert_eq!(code[0], Instruction { code: 0x15, registers: 1, offset: 2, value: 7 });
        assert_eq!(code[1], Instruction { code: 0x18, registers: 0x12, offset: 0, value: 5 });
    }

    #[test]
    fn a_jump_that_leads_nowhere_makes_no_program() {
        let mut program = Program::default();
        let nowhere = program.label();
        program.jump(nowhere);
        assert_eq!(program.finish(), None);
    }
}
