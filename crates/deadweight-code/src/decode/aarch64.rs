//! aarch64 machine code into [`Instruction`]s, through yaxpeax-arm.
//!
//! The only place that knows Arm: its registers, mnemonics and calling conventions. Not for scalable vectors (SVE), which
//! stay unknown.

use crate::abi::{Abi, Convention};
use crate::instruction::{Division, Instruction, Kind, Memory, Reg, Registers};
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Opcode, Operand, SIMDSizeCode, SizeCode};

type Native = yaxpeax_arm::armv8::a64::Instruction;

const SP: Reg = Reg::general(31);
const FP: Reg = Reg::general(29);
const LR: Reg = Reg::general(30);

/// AAPCS64, section 6.1.1, and Go's internal ABI, `abi-internal.md`, section "arm64 architecture":
/// x0 to x7, in Go x0 to x15.
const ARGUMENTS: [Reg; 16] = [
    Reg::general(0),
    Reg::general(1),
    Reg::general(2),
    Reg::general(3),
    Reg::general(4),
    Reg::general(5),
    Reg::general(6),
    Reg::general(7),
    Reg::general(8),
    Reg::general(9),
    Reg::general(10),
    Reg::general(11),
    Reg::general(12),
    Reg::general(13),
    Reg::general(14),
    Reg::general(15),
];

/// How code of this convention calls and what its registers are reserved for.
pub(super) fn convention(abi: Abi) -> Convention {
    let go = abi == Abi::Go;
    Convention {
        stack: SP,
        frame: FP,
        link: Some(LR),
        block: None,
        result: Reg::general(0),
        arguments: if go { &ARGUMENTS } else { &ARGUMENTS[..8] },
        saved: if go { Registers::of(&[FP]) } else { (19..=29).map(Reg::general).collect() },
        zero: None,
        goroutine: go.then_some(Reg::general(28)),
    }
}

/// The instructions of `code` at address `addr`: one for every four bytes.
pub(super) fn decode(code: &[u8], addr: u64) -> Vec<Instruction> {
    let words = (0u64..).zip(code.chunks_exact(4));
    words
        .map(|(n, word)| {
            let at = addr.wrapping_add(n * 4);
            native(word).map_or_else(|| Instruction::unknown(at, 4), |native| lower(&native, at))
        })
        .collect()
}

/// The instruction at the start of `code` as text, its target as an address; none if there is
/// none.
pub(super) fn text(code: &[u8], addr: u64) -> Option<String> {
    let native = native(code.get(..4)?)?;
    let relative = native.operands.iter().find_map(|operand| match operand {
        Operand::PCOffset(offset) => Some((operand.to_string(), addr.wrapping_add_signed(*offset))),
        _ => None,
    });
    let text = native.to_string();
    Some(match relative {
        Some((operand, target)) => text.replace(&operand, &format!("{target:#x}")),
        None => text,
    })
}

fn native(word: &[u8]) -> Option<Native> {
    InstDecoder::default().decode(&mut U8Reader::new(word)).ok()
}

fn lower(native: &Native, addr: u64) -> Instruction {
    let mut out = Instruction::unknown(addr, 4);
    let operands = &native.operands;
    out.memory = operands.iter().find_map(|o| memory(o, addr));
    let (stores, loads) = (stores(native.opcode), loads(native.opcode));
    for (n, operand) in operands.iter().enumerate() {
        let Some(register) = value(operand) else { continue };
        let pair = n == 1 && is_pair(native.opcode);
        if !stores && (n == 0 || pair && loads) && !reads_first(native.opcode) {
            out.writes.insert(register);
        } else {
            out.reads.insert(register);
        }
    }
    if let Some(memory) = &mut out.memory {
        memory.base.into_iter().chain(memory.index).for_each(|r| out.reads.insert(r));
        (memory.read, memory.written) = (loads, stores);
        memory.size = size(native);
    }
    for operand in operands {
        let (base, step) = match operand {
            Operand::RegPreIndex(base, step, true) | Operand::RegPostIndex(base, step) => {
                (*base, i64::from(*step))
            }
            _ => continue,
        };
        out.step = step;
        out.writes.insert(general(base));
    }
    out.kind = flow(native, addr).unwrap_or_else(|| data(native, &mut out, stores, loads));
    out
}

fn general(n: u16) -> Reg {
    Reg::general(u8::try_from(n & 31).unwrap_or(31))
}

fn vector(n: u16) -> Reg {
    Reg::vector(u8::try_from(n & 31).unwrap_or(31))
}

/// See [`super::division`].
pub(super) fn division(code: &[u8]) -> Option<Division> {
    use Opcode as O;
    let native = code.first_chunk::<4>().and_then(|word| native(word))?;
    let by = value(&native.operands[2]);
    Some(match native.opcode {
        O::UDIV | O::SDIV => Division::Integer(by),
        O::FDIV => Division::Float(by),
        O::FSQRT => Division::Root,
        _ => return None,
    })
}

/// The register of an operand; none for the zero register.
fn value(operand: &Operand) -> Option<Reg> {
    match *operand {
        Operand::Register(_, 31) | Operand::RegShift(_, _, _, 31) => None,
        Operand::Register(_, n) | Operand::RegShift(_, _, _, n) | Operand::RegisterOrSP(_, n) => {
            Some(general(n))
        }
        Operand::RegisterPair(_, n) => Some(general(n)),
        Operand::SIMDRegister(_, n)
        | Operand::SIMDRegisterElements(_, n, _)
        | Operand::SIMDRegisterElementsLane(_, n, _, _)
        | Operand::SIMDRegisterGroup(_, n, _, _) => Some(vector(n)),
        _ => None,
    }
}

fn memory(operand: &Operand, addr: u64) -> Option<Memory> {
    let (base, index, offset) = match *operand {
        Operand::RegPreIndex(base, offset, _) => (Some(general(base)), None, i64::from(offset)),
        Operand::RegPostIndex(base, _) | Operand::RegPostIndexReg(base, _) => {
            (Some(general(base)), None, 0)
        }
        Operand::RegRegOffset(base, index, ..) => (Some(general(base)), Some(general(index)), 0),
        Operand::PCOffset(offset) => (None, None, addr.cast_signed().wrapping_add(offset)),
        _ => return None,
    };
    let scale = match *operand {
        Operand::RegRegOffset(.., shift) => 1_u8.checked_shl(shift.into()).unwrap_or(1),
        _ => 1,
    };
    let (size, thread_local) = (0, false);
    Some(Memory { base, index, scale, offset, size, thread_local, read: false, written: false })
}

fn is_pair(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::LDP | Opcode::LDNP | Opcode::LDPSW | Opcode::STP | Opcode::STNP)
}

fn loads(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::LDR
            | O::LDRB
            | O::LDRH
            | O::LDRSB
            | O::LDRSH
            | O::LDRSW
            | O::LDUR
            | O::LDURB
            | O::LDURH
            | O::LDURSB
            | O::LDURSH
            | O::LDURSW
            | O::LDTR
            | O::LDTRB
            | O::LDTRH
            | O::LDP
            | O::LDNP
            | O::LDPSW
            | O::LDAR
            | O::LDARB
            | O::LDARH
            | O::LDAPR
            | O::LDAPRB
            | O::LDAPRH
            | O::LDAPUR
    )
}

fn stores(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::STR
            | O::STRB
            | O::STRH
            | O::STUR
            | O::STURB
            | O::STURH
            | O::STTR
            | O::STTRB
            | O::STTRH
            | O::STP
            | O::STNP
            | O::STLR
            | O::STLRB
            | O::STLRH
            | O::STLUR
    )
}

/// Opcodes whose first operand is only read.
fn reads_first(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::CBZ
            | O::CBNZ
            | O::TBZ
            | O::TBNZ
            | O::BR
            | O::BLR
            | O::RET
            | O::CCMP
            | O::CCMN
            | O::FCMP
            | O::FCMPE
            | O::FCCMP
            | O::FCCMPE
            | O::PRFM
            | O::PRFUM
            | O::MSR
            | O::SYS(_)
            | O::ST1
            | O::ST2
            | O::ST3
            | O::ST4
    )
}

/// Bytes that a load or store moves in all.
fn size(native: &Native) -> u32 {
    use Opcode as O;
    let one = match native.opcode {
        O::LDRB
        | O::LDRSB
        | O::LDURB
        | O::LDURSB
        | O::STRB
        | O::STURB
        | O::LDARB
        | O::STLRB
        | O::LDTRB
        | O::STTRB
        | O::LDAPRB => 1,
        O::LDRH
        | O::LDRSH
        | O::LDURH
        | O::LDURSH
        | O::STRH
        | O::STURH
        | O::LDARH
        | O::STLRH
        | O::LDTRH
        | O::STTRH
        | O::LDAPRH => 2,
        O::LDRSW | O::LDURSW | O::LDPSW => 4,
        _ => match native.operands[0] {
            Operand::Register(SizeCode::X, _) => 8,
            Operand::Register(SizeCode::W, _) => 4,
            Operand::SIMDRegister(SIMDSizeCode::B, _) => 1,
            Operand::SIMDRegister(SIMDSizeCode::H, _) => 2,
            Operand::SIMDRegister(SIMDSizeCode::S, _) => 4,
            Operand::SIMDRegister(SIMDSizeCode::D, _) => 8,
            Operand::SIMDRegister(SIMDSizeCode::Q, _) => 16,
            _ => 0,
        },
    };
    if is_pair(native.opcode) { 2 * one } else { one }
}

/// Instructions that change the control flow, and others that are recognised by their mnemonic alone.
fn flow(native: &Native, addr: u64) -> Option<Kind> {
    use Opcode as O;
    let target = native.operands.iter().find_map(|operand| match operand {
        Operand::PCOffset(offset) => Some(addr.wrapping_add_signed(*offset)),
        _ => None,
    });
    Some(match native.opcode {
        O::B => Kind::Jump(target),
        O::BR | O::BRAA | O::BRAAZ | O::BRAB | O::BRABZ => Kind::Jump(None),
        O::Bcc(_) | O::BCcc(_) | O::CBZ | O::CBNZ | O::TBZ | O::TBNZ => Kind::Branch(target?),
        O::BL => Kind::Call(target),
        O::BLR | O::BLRAA | O::BLRAAZ | O::BLRAB | O::BLRABZ => Kind::Call(None),
        O::RET | O::RETAA | O::RETAB => Kind::Return,
        O::SVC => Kind::System,
        O::HINT | O::PACIASP | O::AUTIASP | O::PACIBSP | O::AUTIBSP | O::PRFM | O::PRFUM => {
            Kind::Nop
        }
        O::BRK | O::HLT | O::UDF => Kind::Trap,
        O::CCMP | O::CCMN | O::FCMP | O::FCMPE | O::FCCMP | O::FCCMPE => Kind::Compare,
        opcode if atomic(opcode) => Kind::Atomic,
        _ => return None,
    })
}

/// Exclusive loads and stores, and the single instructions of version 8.1 (LSE).
fn atomic(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::LDXR
            | O::LDXRB
            | O::LDXRH
            | O::LDXP
            | O::LDAXR
            | O::LDAXRB
            | O::LDAXRH
            | O::LDAXP
            | O::STXR
            | O::STXRB
            | O::STXRH
            | O::STXP
            | O::STLXR
            | O::STLXRB
            | O::STLXRH
            | O::STLXP
    ) || matches!(
        opcode,
        O::SWP(_)
            | O::SWPB(_)
            | O::SWPH(_)
            | O::CAS(_)
            | O::CASB(_)
            | O::CASH(_)
            | O::CASP(_)
            | O::LDADD(_)
            | O::LDADDB(_)
            | O::LDADDH(_)
            | O::LDCLR(_)
            | O::LDCLRB(_)
            | O::LDCLRH(_)
            | O::LDEOR(_)
            | O::LDEORB(_)
            | O::LDEORH(_)
            | O::LDSET(_)
            | O::LDSETB(_)
            | O::LDSETH(_)
            | O::LDSMAX(_)
            | O::LDSMIN(_)
            | O::LDUMAX(_)
            | O::LDUMIN(_)
    )
}

/// Moves, constants, address arithmetic; all others compute.
fn data(native: &Native, out: &mut Instruction, stores: bool, loads: bool) -> Kind {
    use Opcode as O;
    let [first, second, third, _] = &native.operands;
    let second_value = value(second).filter(|_| is_pair(native.opcode));
    match native.opcode {
        _ if loads => {
            out.data = [value(first), second_value];
            Kind::Load
        }
        _ if stores => {
            out.data = [value(first), second_value];
            let zero = |o: &Operand| matches!(o, Operand::Register(_, 31));
            match zero(first) && (!is_pair(native.opcode) || zero(second)) {
                true => Kind::StoreZero,
                false => Kind::Store,
            }
        }
        // `cmp`, `cmn` and `tst` drop their result.
        O::SUBS | O::ADDS | O::ANDS if matches!(first, Operand::Register(_, 31)) => Kind::Compare,
        O::ORR if matches!(second, Operand::Register(_, 31)) && value(third).is_some() => {
            out.data = [value(first), value(third)];
            Kind::Move
        }
        O::MOVZ => {
            out.data[0] = value(first);
            immediate(second).map_or(Kind::Compute, Kind::Constant)
        }
        O::MOVI if immediate(second) == Some(0) => {
            out.data[0] = value(first);
            Kind::Constant(0)
        }
        O::EOR if same_vector(second, third) => {
            out.data[0] = value(first);
            out.reads = Registers::default();
            Kind::Constant(0)
        }
        O::ADD | O::SUB => sum(native, out),
        O::ADR | O::ADRP => {
            out.data[0] = value(first);
            Kind::Address
        }
        _ => Kind::Compute,
    }
}

/// `add` and `sub`: advances, addresses of locals, moves to and from the stack pointer.
fn sum(native: &Native, out: &mut Instruction) -> Kind {
    let [first, second, third, _] = &native.operands;
    out.data[0] = value(first);
    let (Some(amount), Some(from)) = (immediate(third), value(second)) else {
        if native.opcode == Opcode::ADD && value(second) == value(first) {
            out.data[1] = value(third);
        }
        return Kind::Compute;
    };
    let amount = if native.opcode == Opcode::SUB { amount.wrapping_neg() } else { amount };
    if value(first) == Some(from) {
        return Kind::Advance(amount);
    }
    if amount == 0 {
        out.data[1] = Some(from);
        return Kind::Move;
    }
    out.memory = Some(Memory {
        base: Some(from),
        index: None,
        scale: 1,
        offset: amount,
        size: 0,
        thread_local: false,
        read: false,
        written: false,
    });
    Kind::Address
}

fn immediate(operand: &Operand) -> Option<i64> {
    match *operand {
        Operand::Immediate(n) => Some(i64::from(n)),
        Operand::Imm64(n) => Some(n.cast_signed()),
        Operand::Imm16(n) => Some(i64::from(n)),
        Operand::ImmShift(n, shift) => i64::from(n).checked_shl(u32::from(shift)),
        _ => None,
    }
}

fn same_vector(a: &Operand, b: &Operand) -> bool {
    value(a).is_some_and(Reg::is_vector) && value(a) == value(b)
}
