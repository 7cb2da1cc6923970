//! Whether two pieces of x86-64 code are the same code at two places.

use iced_x86::{ConstantOffsets, Decoder, DecoderOptions, Instruction};

/// Code, and the address of its first byte.
type Placed<'a> = (&'a [u8], u64);

/// Whether each instruction of `a` is that of `b`, but for distances: `same` is true if an address in one means what
/// another means in the other. Bytes that are no instruction must be equal.
pub(crate) fn is_same(a: Placed<'_>, b: Placed<'_>, same: &dyn Fn(u64, u64) -> bool) -> bool {
    let decoder = |(bytes, addr)| Decoder::with_ip(64, bytes, addr, DecoderOptions::NONE);
    let (mut of_a, mut of_b) = (decoder(a), decoder(b));
    while of_a.can_decode() && of_b.can_decode() {
        let from = of_a.position();
        let (one, other) = (of_a.decode(), of_b.decode());
        let constants = of_a.get_constant_offsets(&one);
        if of_a.position() != of_b.position() {
            return false;
        }
        let bytes = [a.0, b.0].map(|code| code.get(from..of_a.position()).unwrap_or_default());
        if !is_relative(&one) {
            if bytes[0] != bytes[1] {
                return false;
            }
            continue;
        }
        let kept = bytes.map(|bytes| without_distance(bytes.to_vec(), &one, &constants));
        let mut pairs = targets(&one).zip(targets(&other));
        if kept[0] != kept[1] || !pairs.all(|(a, b)| same(a, b)) {
            return false;
        }
    }
    a.0.len() == b.0.len()
}

/// Whether an operand is a distance from the instruction.
fn is_relative(instruction: &Instruction) -> bool {
    instruction.is_ip_rel_memory_operand() || instruction.near_branch_target() != 0
}

/// The addresses that it refers to by distance.
fn targets(instruction: &Instruction) -> impl Iterator<Item = u64> {
    let memory =
        instruction.is_ip_rel_memory_operand().then(|| instruction.ip_rel_memory_address());
    let branch = Some(instruction.near_branch_target()).filter(|target| *target != 0);
    memory.into_iter().chain(branch)
}

/// Its bytes, with zeros in place of distances.
fn without_distance(
    mut bytes: Vec<u8>,
    instruction: &Instruction,
    constants: &ConstantOffsets,
) -> Vec<u8> {
    let mut clear = |at: usize, size: usize| {
        bytes.iter_mut().skip(at).take(size).for_each(|byte| *byte = 0);
    };
    if instruction.is_ip_rel_memory_operand() {
        clear(constants.displacement_offset(), constants.displacement_size());
    }
    if instruction.near_branch_target() != 0 {
        clear(constants.immediate_offset(), constants.immediate_size());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `call +0x100; lea rax, [rip + 0x200]; add eax, 7; ret`.
    fn code(call: i32, load: i32, added: u8) -> Vec<u8> {
        let mut code = vec![0xe8];
        code.extend(call.to_le_bytes());
        code.extend([0x48, 0x8d, 0x05]);
        code.extend(load.to_le_bytes());
        code.extend([0x83, 0xc0, added, 0xc3]);
        code
    }

    #[test]
    fn code_that_reaches_the_same_from_elsewhere_is_the_same() {
        let here = code(0x100, 0x200, 7);
        let shifted = |a: u64, b: u64| a == b + 0x10;
        let same = |other: &[u8]| is_same((&here, 0x1010), (other, 0x1000), &shifted);
        assert!(same(&here), "all of it moved");
        assert!(!same(&code(0x110, 0x200, 7)), "another function is called");
        assert!(!same(&code(0x100, 0x208, 7)), "another variable is read");
        assert!(!same(&code(0x100, 0x200, 8)), "another number is added");
        assert!(!same(&here[..here.len() - 1]), "shorter");
        let fixed = |a: u64, b: u64| a == b;
        assert!(is_same((&here, 0x1010), (&code(0x110, 0x210, 7), 0x1000), &fixed));
        assert!(!is_same((&here, 0x1010), (&here, 0x1000), &fixed));
    }
}
