//! Bytes that replace x86-64 instructions, so that their effect is removed and nothing moves.
//!
//! Every replacement has the length of the original. Not for deciding which instructions to remove; see
//! [`crate::removal`].

use super::RDI;
use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register, RflagsBits,
};

/// No-operation instructions by length (Intel's manual, NOP, "recommended multi-byte
/// sequences").
const NOPS: [&[u8]; 9] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];
/// `mov rax, rdi`: a routine that fills memory returns its destination.
const RESULT_IS_TARGET: [u8; 3] = [0x48, 0x89, 0xf8];
/// `xor ecx, ecx`.
const COUNT_IS_ZERO: [u8; 2] = [0x31, 0xc9];
const RETURN: u8 = 0xc3;
const LOCK: u8 = 0xf0;
/// The prefix for the segment DS, which has no effect in 64-bit code.
const SEGMENT_DS: u8 = 0x3e;
/// How many instructions are searched for one that reads flags.
const LOOK_AHEAD: usize = 24;
/// The flags that conditions depend on.
const FLAGS: u32 = RflagsBits::CF | RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF;

/// The fewest no-operation instructions that fill `len` bytes.
pub(crate) fn nops(len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len);
    while out.len() < len {
        out.extend_from_slice(NOPS[(len - out.len()).min(NOPS.len()) - 1]);
    }
    out
}

/// Replaces a call of `len` bytes to a routine that fills memory at RDI and returns RDI; `last`: a tail call.
pub(crate) fn skipped_fill(len: usize, last: bool) -> Option<Vec<u8>> {
    let mut out = RESULT_IS_TARGET.to_vec();
    if last {
        out.push(RETURN);
    }
    let rest = len.checked_sub(out.len())?;
    out.extend(nops(rest));
    Some(out)
}

/// The instruction at the start of `code` without its lock prefix. None if it has none.
pub(crate) fn unlocked(code: &[u8]) -> Option<Vec<u8>> {
    let before = first(code).filter(Instruction::has_lock_prefix)?;
    if before.segment_prefix() != Register::None {
        return None;
    }
    let mut bytes = code.get(..before.len())?.to_vec();
    let at = bytes.iter().position(|byte| *byte == LOCK)?;
    bytes[at] = SEGMENT_DS;
    let mut after = first(&bytes)?;
    // If more than the prefixes differs, the byte was not a prefix.
    let same = after.code() == before.code() && after.len() == before.len();
    after.set_segment_prefix(Register::None);
    (same && !after.has_lock_prefix() && after.op_count() == before.op_count()).then_some(bytes)
}

/// The conditional branch at the start of `code` as one that is always taken.
pub(crate) fn always_taken(code: &[u8]) -> Option<Vec<u8>> {
    let branch = first(code).filter(|b| b.flow_control() == FlowControl::ConditionalBranch)?;
    match *code.get(..branch.len())? {
        [0x70..=0x7f, to] => Some(vec![0xeb, to]),
        // The jump's distance is relative to the same end.
        [0x0f, 0x80..=0x8f, a, b, c, d] => Some(vec![0x90, 0xe9, a, b, c, d]),
        _ => None,
    }
}

/// Whether the basic block at `code` may read flags that were set before it.
pub(crate) fn reads_flags(code: &[u8]) -> bool {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut set = 0;
    for _ in 0..LOOK_AHEAD {
        if !decoder.can_decode() {
            return true;
        }
        let next = decoder.decode();
        if next.is_invalid() || next.rflags_read() & FLAGS & !set != 0 {
            return true;
        }
        set |= next.rflags_modified();
        match next.flow_control() {
            _ if set & FLAGS == FLAGS => return false,
            FlowControl::Next => {}
            // No caller or callee reads them (System V AMD64 ABI, section 3.2.1).
            FlowControl::Return | FlowControl::Call | FlowControl::IndirectCall => return false,
            _ => return true,
        }
    }
    true
}

/// Replaces a `rep stos` of `len` bytes: RCX is zero afterwards as well. RDI keeps its value, see [`uses_end`].
pub(crate) fn skipped_block_fill(len: usize) -> Option<Vec<u8>> {
    let mut out = COUNT_IS_ZERO.to_vec();
    out.extend(nops(len.checked_sub(out.len())?));
    Some(out)
}

/// Whether the basic block at `code`, after a `rep stos`, may use the end address in RDI, or flags that were set before it.
pub(crate) fn uses_end(code: &[u8]) -> bool {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut facts = iced_x86::InstructionInfoFactory::new();
    for _ in 0..LOOK_AHEAD {
        if !decoder.can_decode() {
            return true;
        }
        let next = decoder.decode();
        let fact = super::lower(&next, &mut facts);
        if next.is_invalid() || fact.reads.has(RDI) {
            return true;
        }
        match next.flow_control() {
            FlowControl::Next if fact.writes.has(RDI) && is_whole(&next) => break,
            FlowControl::Next => {}
            FlowControl::Return => break,
            _ => return true,
        }
    }
    reads_flags(code)
}

/// Whether an instruction writes its whole register: 32 or 64 bits.
fn is_whole(instruction: &Instruction) -> bool {
    let full = instruction.op_register(0);
    instruction.op0_kind() != OpKind::Register || full.is_gpr64() || full.is_gpr32()
}

fn first(code: &[u8]) -> Option<Instruction> {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let instruction = decoder.can_decode().then(|| decoder.decode())?;
    (instruction.code() != Opcode::INVALID).then_some(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_uses_the_fewest_instructions() {
        for len in 0..40 {
            let bytes = nops(len);
            assert_eq!(bytes.len(), len);
            let mut decoder = Decoder::new(64, &bytes, DecoderOptions::NONE);
            let all: Vec<Instruction> = decoder.iter().collect();
            assert!(all.iter().all(|i| i.mnemonic() == iced_x86::Mnemonic::Nop), "{len}");
            assert_eq!(all.len(), len.div_ceil(9));
        }
    }

    #[test]
    fn a_lock_prefix_becomes_one_without_effect() {
        // lock add qword [rdi], 1; lock xadd [rbx+8], eax; lock dec qword [r14]
        assert_eq!(unlocked(&[0xf0, 0x48, 0x83, 0x07, 0x01]).unwrap()[0], 0x3e);
        assert_eq!(
            unlocked(&[0xf0, 0x0f, 0xc1, 0x43, 0x08]),
            Some(vec![0x3e, 0x0f, 0xc1, 0x43, 0x08])
        );
        assert_eq!(unlocked(&[0xf0, 0x49, 0xff, 0x0e]), Some(vec![0x3e, 0x49, 0xff, 0x0e]));
        // Only the instruction's own bytes come back.
        assert_eq!(unlocked(&[0xf0, 0x49, 0xff, 0x0e, 0x75, 0x10]).unwrap().len(), 4);
        // add without lock; xchg [rdi], eax locks by itself; fs: lock inc
        assert_eq!(unlocked(&[0x48, 0x83, 0x07, 0x01]), None);
        assert_eq!(unlocked(&[0x87, 0x07]), None);
        assert_eq!(unlocked(&[0x64, 0xf0, 0xff, 0x07]), None);
        assert_eq!(unlocked(&[]), None);
    }

    #[test]
    fn a_skipped_call_still_returns_its_target() {
        assert_eq!(skipped_fill(5, false), Some(vec![0x48, 0x89, 0xf8, 0x66, 0x90]));
        assert_eq!(skipped_fill(5, true), Some(vec![0x48, 0x89, 0xf8, 0xc3, 0x90]));
        assert_eq!(skipped_fill(2, false), None);
    }

    #[test]
    fn a_branch_around_a_panic_is_always_taken() {
        assert_eq!(always_taken(&[0x72, 0x10]), Some(vec![0xeb, 0x10]));
        assert_eq!(always_taken(&[0x0f, 0x82, 1, 2, 3, 4]), Some(vec![0x90, 0xe9, 1, 2, 3, 4]));
        assert_eq!(always_taken(&[0xeb, 0x10]), None);
        // With a prefix (a hint), which is left alone.
        assert_eq!(always_taken(&[0x2e, 0x72, 0x10]), None);
    }

    #[test]
    fn flags_that_are_set_again_are_not_read() {
        // mov eax, [rdi]; add eax, ecx; jne
        assert!(!reads_flags(&[0x8b, 0x07, 0x01, 0xc8, 0x75, 0x00]));
        // mov eax, [rdi]; setb al
        assert!(reads_flags(&[0x8b, 0x07, 0x0f, 0x92, 0xc0]));
        // inc leaves the carry, which adc takes.
        assert!(reads_flags(&[0xff, 0xc0, 0x83, 0xd1, 0x00]));
        // lea; ret - and a block whose end is unknown.
        assert!(!reads_flags(&[0x48, 0x8d, 0x04, 0x37, 0xc3]));
        assert!(reads_flags(&[0x8b, 0x07]));
    }

    #[test]
    fn uses_of_the_end_of_a_block_fill_are_found() {
        // mov edx, [rsp]; mov rdi, rsp; call
        assert!(!uses_end(&[0x8b, 0x14, 0x24, 0x48, 0x89, 0xe7, 0xe8, 0, 0, 0, 0]));
        // mov [rdi], eax
        assert!(uses_end(&[0x89, 0x07, 0xc3]));
        // call with rdi as it was left
        assert!(uses_end(&[0xe8, 0, 0, 0, 0, 0xc3]));
        // add rsp, 8; ret
        assert!(!uses_end(&[0x48, 0x83, 0xc4, 0x08, 0xc3]));
        // mov dil, 1 leaves the rest of it.
        assert!(uses_end(&[0x40, 0xb7, 0x01, 0x48, 0x01, 0xf8]));
        // mov rdi, rsp; jb: set before.
        assert!(uses_end(&[0x48, 0x89, 0xe7, 0x72, 0x10]));
        assert_eq!(skipped_block_fill(3), Some(vec![0x31, 0xc9, 0x90]));
    }
}
