//! What x86-64 instructions compute with floating-point numbers: SSE, AVX and FMA, one number or several.
//!
//! Not x87 and not half precision. Intel's manual, volume 1, chapters 10 to 14.

use super::{operand, register};
use crate::instruction::{Float, Operation, Registers};
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
};

/// See [`crate::decode::float`].
pub(crate) fn float(code: &[u8]) -> Option<Float> {
    let native = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode();
    if native.is_invalid() {
        return None;
    }
    let (operation, packed, double) = operation(&native)?;
    let mut float = Float {
        operation,
        packed,
        double,
        wide: false,
        sources: Registers::default(),
        addend: None,
    };
    let last = native.op_count().checked_sub(1)?;
    match operation {
        Operation::MultiplyAdd => {
            float.sources = read(&native);
            // The number in the name: the operands that are multiplied, and the one that is added.
            let name = format!("{:?}", native.mnemonic());
            let place = match name.as_bytes().iter().find(|byte| byte.is_ascii_digit()) {
                Some(b'1') => 1,
                Some(b'2') if name.contains("213") => 2,
                _ => 0,
            };
            float.addend = operand(&native, place);
        }
        // What else is read is only passed on, in the part of the register that counts for nothing.
        Operation::Root | Operation::Convert => {
            let from = if is_rounding(native.mnemonic()) { last - 1 } else { last };
            float.sources = operand(&native, from).into_iter().collect();
            let general = |n| {
                n <= last
                    && native.op_kind(n) == OpKind::Register
                    && native.op_register(n).is_gpr64()
            };
            let large = native.op_kind(from) == OpKind::Memory && native.memory_size().size() == 8;
            let integer = native.op0_register().is_gpr() || is_of_integer(native.mnemonic());
            float.wide = integer
                && (general(0) || general(from) || large && !native.op0_register().is_gpr());
        }
        _ => float.sources = read(&native),
    }
    Some(float)
}

/// The registers that an instruction reads, those of addresses left out.
fn read(native: &Instruction) -> Registers {
    let mut facts = InstructionInfoFactory::new();
    let fact = facts.info(native);
    let reads = |access| !matches!(access, OpAccess::None | OpAccess::Write | OpAccess::CondWrite);
    let used = fact.used_registers().iter().filter(|used| reads(used.access()));
    used.filter_map(|used| register(used.register()))
        .filter(|register| register.is_vector())
        .collect()
}

fn is_of_integer(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Cvtsi2ss | M::Cvtsi2sd | M::Vcvtsi2ss | M::Vcvtsi2sd | M::Vcvtusi2ss | M::Vcvtusi2sd
    )
}

fn is_rounding(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Roundss | M::Roundsd | M::Vroundss | M::Vroundsd | M::Vrndscaless | M::Vrndscalesd
    )
}

/// The operation, whether it is one of several numbers, and whether these are doubles.
fn operation(native: &Instruction) -> Option<(Operation, bool, bool)> {
    use Operation as O;
    let name = format!("{:?}", native.mnemonic());
    let name = name.strip_prefix('V').unwrap_or(&name).to_lowercase();
    let name = name.as_str();
    let end = |operation: Operation| {
        let (packed, double) = match name.get(name.len().checked_sub(2)?..)? {
            "ss" => (false, false),
            "sd" => (false, true),
            "ps" => (true, false),
            "pd" => (true, true),
            _ => return None,
        };
        Some((operation, packed, double))
    };
    let stem = name.get(..name.len().checked_sub(2)?)?;
    match stem {
        "add" | "sub" | "addsub" | "hadd" | "hsub" => end(O::Add),
        "mul" => end(O::Multiply),
        "div" | "rcp" | "rcp14" => end(O::Divide),
        "sqrt" | "rsqrt" | "rsqrt14" => end(O::Root),
        "min" | "max" => end(O::Least),
        "round" | "rndscale" => end(O::Convert),
        "and" | "or" | "xor" | "andn" | "blendv" => {
            end(O::Bits).map(|(what, _, double)| (what, false, double))
        }
        "cmp" => end(O::Bits),
        _ if stem.starts_with("fmadd") || stem.starts_with("fmsub") => end(O::MultiplyAdd),
        _ if stem.starts_with("fnmadd") || stem.starts_with("fnmsub") => end(O::MultiplyAdd),
        _ if name.starts_with("cvt") => Some(converted(name)),
        _ => None,
    }
}

/// `cvttsd2si`: from what, and to what.
fn converted(name: &str) -> (Operation, bool, bool) {
    let double = name.contains("sd") || name.contains("pd");
    let packed = !name.contains("ss") && !name.contains("sd");
    (Operation::Convert, packed, double)
}
