//! x86-64 machine code into [`Instruction`]s, through iced-x86.
//!
//! The only place that knows x86: its registers, mnemonics and calling conventions. Not for roles; see [`crate::roles`].

pub(crate) mod floats;
pub(crate) mod moved;
pub(crate) mod quick;
pub(crate) mod rewrite;

use crate::abi::{Abi, Convention};
use crate::instruction::{Division, Instruction, Kind, Memory, Reg, Registers};
use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FastFormatter, FlowControl, InstructionInfoFactory,
    InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register,
};

const RAX: Reg = Reg::general(0);
const RCX: Reg = Reg::general(1);
const RDX: Reg = Reg::general(2);
const RBX: Reg = Reg::general(3);
const RSP: Reg = Reg::general(4);
const RBP: Reg = Reg::general(5);
const RSI: Reg = Reg::general(6);
const RDI: Reg = Reg::general(7);
const R8: Reg = Reg::general(8);
const R9: Reg = Reg::general(9);
const R10: Reg = Reg::general(10);
const R11: Reg = Reg::general(11);
const R14: Reg = Reg::general(14);

/// System V AMD64 ABI, section 3.2.3.
const SYSTEM_V: [Reg; 6] = [RDI, RSI, RDX, RCX, R8, R9];
/// Go's internal ABI, `src/cmd/compile/abi-internal.md`, section "amd64 architecture".
const GO: [Reg; 9] = [RAX, RBX, RCX, RDI, RSI, R8, R9, R10, R11];

/// How code of this convention calls and what its registers are reserved for.
pub(crate) fn convention(abi: Abi) -> Convention {
    let go = abi == Abi::Go;
    Convention {
        stack: RSP,
        frame: RBP,
        link: None,
        block: Some([RDI, RSI, RCX]),
        result: RAX,
        arguments: if go { &GO } else { &SYSTEM_V },
        // System V AMD64 ABI, figure 3.4; Go saves none but the frame pointer.
        saved: if go {
            Registers::of(&[RBP])
        } else {
            Registers::of(&[RBX, RBP, Reg::general(12), Reg::general(13), R14, Reg::general(15)])
        },
        zero: go.then_some(Reg::vector(15)),
        goroutine: go.then_some(R14),
    }
}

/// The instructions of `code` at address `addr`. Never more than there are bytes.
pub(super) fn decode(code: &[u8], addr: u64) -> Vec<Instruction> {
    // Compiled code has somewhat over four bytes per instruction.
    let mut out = Vec::with_capacity(code.len() / 4 + 1);
    out.extend(one_by_one(code, addr));
    out
}

/// The same, each when it is asked for.
pub(super) fn one_by_one(code: &[u8], addr: u64) -> impl Iterator<Item = Instruction> {
    let mut decoder = Decoder::with_ip(64, code, addr, DecoderOptions::NONE);
    let mut facts = InstructionInfoFactory::new();
    let mut native = iced_x86::Instruction::default();
    std::iter::from_fn(move || {
        decoder.can_decode().then(|| {
            decoder.decode_out(&mut native);
            lower(&native, &mut facts)
        })
    })
}

/// See [`super::division`].
pub(super) fn division(code: &[u8]) -> Option<Division> {
    use Mnemonic as M;
    // Their opcodes, which few other instructions share: most need no second decoding.
    if !code.iter().any(|byte| matches!(byte, 0xf6 | 0xf7 | 0x5e | 0x51)) {
        return None;
    }
    let native = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode();
    Some(match native.mnemonic() {
        M::Div | M::Idiv => Division::Integer(operand(&native, 0)),
        M::Divss | M::Divsd | M::Divps | M::Divpd => Division::Float(operand(&native, 1)),
        M::Vdivss | M::Vdivsd | M::Vdivps | M::Vdivpd => Division::Float(operand(&native, 2)),
        M::Sqrtss | M::Sqrtsd | M::Sqrtps | M::Sqrtpd => Division::Root,
        M::Vsqrtss | M::Vsqrtsd | M::Vsqrtps | M::Vsqrtpd => Division::Root,
        _ => return None,
    })
}

/// See [`super::compared`].
pub(super) fn compared(code: &[u8]) -> Option<(Reg, i64)> {
    let native = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode();
    let constant =
        native.op_count() == 2 && !matches!(native.op1_kind(), OpKind::Register | OpKind::Memory);
    let compares = native.mnemonic() == Mnemonic::Cmp && constant;
    Some((operand(&native, 0).filter(|_| compares)?, native.immediate(1).cast_signed()))
}

/// The instruction at the start of `code` as text; none if there is none.
pub(super) fn text(code: &[u8], addr: u64) -> Option<String> {
    let mut decoder = Decoder::with_ip(64, code, addr, DecoderOptions::NONE);
    let native = decoder.can_decode().then(|| decoder.decode())?;
    let mut out = String::new();
    let mut formatter = FastFormatter::new();
    formatter.options_mut().set_space_after_operand_separator(true);
    formatter.options_mut().set_rip_relative_addresses(false);
    formatter.format(&native, &mut out);
    (!native.is_invalid()).then_some(out)
}

fn register(native: Register) -> Option<Reg> {
    let full = native.full_register();
    let number = u8::try_from(full.number()).ok()?;
    if full.is_gpr64() {
        Some(Reg::general(number))
    } else if full.is_vector_register() && number < 32 {
        Some(Reg::vector(number))
    } else {
        None
    }
}

fn lower(native: &iced_x86::Instruction, facts: &mut InstructionInfoFactory) -> Instruction {
    let len = u8::try_from(native.len()).unwrap_or(u8::MAX);
    let mut out = Instruction::unknown(native.ip(), len);
    if native.is_invalid() {
        return out;
    }
    let fact = facts.info_options(native, InstructionInfoOptions::NONE);
    for used in fact.used_registers() {
        if let Some(register) = register(used.register()) {
            let (read, written) = access(used.access());
            if read {
                out.reads.insert(register);
            }
            if written {
                out.writes.insert(register);
            }
        }
    }
    out.memory = memory(native);
    if let (Some(memory), Some(used)) = (&mut out.memory, fact.used_memory().first()) {
        (memory.read, memory.written) = access(used.access());
    }
    out.kind = flow(native).or_else(|| special(native)).unwrap_or_else(|| data(native, &mut out));
    out.on_equal = match native.condition_code() {
        ConditionCode::e if matches!(out.kind, Kind::Branch(_)) => Some(true),
        ConditionCode::ne if matches!(out.kind, Kind::Branch(_)) => Some(false),
        _ => None,
    };
    out
}

fn access(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
    }
}

fn memory(native: &iced_x86::Instruction) -> Option<Memory> {
    if native.op0_kind() == OpKind::MemoryESRDI {
        // Block instructions: rules need the memory that they write.
        return Some(Memory {
            base: Some(RDI),
            index: None,
            scale: 1,
            offset: 0,
            size: u32::try_from(native.memory_size().size()).unwrap_or(0),
            thread_local: false,
            read: false,
            written: true,
        });
    }
    let named = (0..native.op_count()).any(|i| native.op_kind(i) == OpKind::Memory);
    named.then(|| {
        let relative = native.is_ip_rel_memory_operand();
        Memory {
            base: if relative { None } else { register(native.memory_base()) },
            index: register(native.memory_index()),
            scale: u8::try_from(native.memory_index_scale()).unwrap_or(1),
            offset: native.memory_displacement64().cast_signed(),
            size: u32::try_from(native.memory_size().size()).unwrap_or(0),
            thread_local: matches!(native.segment_prefix(), Register::FS | Register::GS),
            read: false,
            written: false,
        }
    })
}

/// Instructions that change the control flow.
fn flow(native: &iced_x86::Instruction) -> Option<Kind> {
    let near = native.near_branch_target();
    Some(match native.flow_control() {
        FlowControl::Next | FlowControl::XbeginXabortXend => return None,
        FlowControl::UnconditionalBranch => Kind::Jump(Some(near)),
        FlowControl::IndirectBranch => Kind::Jump(None),
        FlowControl::ConditionalBranch => Kind::Branch(near),
        FlowControl::Return => Kind::Return,
        FlowControl::Call if native.mnemonic() == Mnemonic::Syscall => Kind::System,
        FlowControl::Call => Kind::Call(Some(near)),
        FlowControl::IndirectCall => Kind::Call(None),
        FlowControl::Interrupt if native.mnemonic() == Mnemonic::Int => Kind::System,
        FlowControl::Interrupt | FlowControl::Exception => Kind::Trap,
    })
}

/// Instructions that are recognised by their mnemonic alone, or by a prefix.
fn special(native: &iced_x86::Instruction) -> Option<Kind> {
    use Mnemonic as M;
    let repeated = native.has_rep_prefix() || native.has_repne_prefix();
    Some(match native.mnemonic() {
        M::Nop | M::Endbr64 | M::Endbr32 | M::Fnop | M::Pause => Kind::Nop,
        M::Syscall | M::Sysenter => Kind::System,
        M::Push | M::Pushfq | M::Enter => Kind::Push,
        M::Pop | M::Popfq | M::Leave => Kind::Pop,
        M::Movsb | M::Movsw | M::Movsq if repeated => Kind::CopyBlock,
        M::Movsd if repeated && native.is_string_instruction() => Kind::CopyBlock,
        M::Stosb | M::Stosw | M::Stosd | M::Stosq if repeated => Kind::FillBlock,
        M::Xchg if (0..2).any(|i| native.op_kind(i) == OpKind::Memory) => Kind::Atomic,
        _ if native.has_lock_prefix() => Kind::Atomic,
        M::Cmp | M::Test | M::Bt | M::Ptest | M::Vptest | M::Comiss | M::Comisd => Kind::Compare,
        M::Ucomiss | M::Ucomisd | M::Vcomiss | M::Vcomisd | M::Vucomiss | M::Vucomisd => {
            Kind::Compare
        }
        _ => return None,
    })
}

/// Whether a mnemonic only moves its second operand into its first (zero-extending at most).
fn moves(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Mov
            | M::Movzx
            | M::Movd
            | M::Movq
            | M::Movups
            | M::Movaps
            | M::Movupd
            | M::Movapd
            | M::Movdqu
            | M::Movdqa
            | M::Movss
            | M::Movsd
            | M::Lddqu
            | M::Movntq
            | M::Movntps
            | M::Movntpd
            | M::Movntdq
            | M::Movnti
            | M::Vmovd
            | M::Vmovq
            | M::Vmovups
            | M::Vmovaps
            | M::Vmovupd
            | M::Vmovapd
            | M::Vmovdqu
            | M::Vmovdqa
            | M::Vmovdqu8
            | M::Vmovdqu16
            | M::Vmovdqu32
            | M::Vmovdqu64
            | M::Vmovdqa32
            | M::Vmovdqa64
            | M::Vmovss
            | M::Vmovsd
            | M::Vmovntps
            | M::Vmovntpd
            | M::Vmovntdq
    )
}

/// Moves, constants, address arithmetic; all others compute.
fn data(native: &iced_x86::Instruction, out: &mut Instruction) -> Kind {
    use Mnemonic as M;
    let first = operand(native, 0);
    let last = native.op_count().saturating_sub(1);
    match native.mnemonic() {
        mnemonic if moves(mnemonic) && last == 1 && native.op_mask() == Register::None => {
            moved(native, out)
        }
        M::Lea => {
            out.data[0] = first;
            match out.memory {
                Some(m) if m.base == first && m.index.is_none() => Kind::Advance(m.offset),
                _ => Kind::Address,
            }
        }
        M::Add | M::Sub | M::Inc | M::Dec if native.op_kind(0) == OpKind::Register => {
            out.data[0] = first;
            let advance = advance(native);
            if advance.is_none() && native.mnemonic() == M::Add {
                out.data[1] = operand(native, 1);
            }
            advance.map_or(Kind::Compute, Kind::Advance)
        }
        // Zeroing idioms: the result is zero whatever the register held.
        M::Xor
        | M::Pxor
        | M::Xorps
        | M::Xorpd
        | M::Vpxor
        | M::Vxorps
        | M::Vxorpd
        | M::Vpxord
        | M::Vpxorq
            if last >= 1 && same_register(native, last) =>
        {
            out.data[0] = first;
            out.reads = Registers::default();
            Kind::Constant(0)
        }
        _ => Kind::Compute,
    }
}

fn moved(native: &iced_x86::Instruction, out: &mut Instruction) -> Kind {
    match (native.op_kind(0), native.op_kind(1)) {
        (OpKind::Register, OpKind::Memory) => {
            out.data[0] = operand(native, 0);
            Kind::Load
        }
        (OpKind::Memory, OpKind::Register) => {
            out.data[0] = operand(native, 1);
            Kind::Store
        }
        (OpKind::Memory, _) if native.immediate(1) == 0 => Kind::StoreZero,
        (OpKind::Memory, _) => Kind::StoreConstant,
        (OpKind::Register, OpKind::Register) => {
            out.data = [operand(native, 0), operand(native, 1)];
            Kind::Move
        }
        (OpKind::Register, _) => {
            out.data[0] = operand(native, 0);
            Kind::Constant(native.immediate(1).cast_signed())
        }
        _ => Kind::Compute,
    }
}

fn operand(native: &iced_x86::Instruction, n: u32) -> Option<Reg> {
    (n < native.op_count() && native.op_kind(n) == OpKind::Register)
        .then(|| register(native.op_register(n)))
        .flatten()
}

fn same_register(native: &iced_x86::Instruction, last: u32) -> bool {
    native.op_kind(last) == OpKind::Register
        && native.op_kind(last - 1) == OpKind::Register
        && native.op_register(last) == native.op_register(last - 1)
}

/// The number that a register advances by. Sums narrower than 32 bits keep the register's upper bits.
fn advance(native: &iced_x86::Instruction) -> Option<i64> {
    if !native.op_register(0).is_gpr64() && !native.op_register(0).is_gpr32() {
        return None;
    }
    let immediate =
        native.op_count() == 2 && !matches!(native.op_kind(1), OpKind::Register | OpKind::Memory);
    match native.mnemonic() {
        Mnemonic::Inc => Some(1),
        Mnemonic::Dec => Some(-1),
        Mnemonic::Add if immediate => Some(native.immediate(1).cast_signed()),
        Mnemonic::Sub if immediate => Some(native.immediate(1).cast_signed().wrapping_neg()),
        _ => None,
    }
}
