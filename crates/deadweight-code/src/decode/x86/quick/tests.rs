//! The quick decoder beside the complete one, on real code and on random bytes.

use super::{Sort, Way, step};
use crate::instruction::Kind;
use crate::tests::hex;
use iced_x86::{Decoder, DecoderOptions};
use proptest::prelude::*;

/// What the complete decoder says of the same instruction, as far as its way on matters.
fn goes_on_alike(sort: Sort, kind: Kind) -> bool {
    match kind {
        Kind::Branch(to) => sort == Sort::To { target: to, falls: true },
        Kind::Jump(Some(to)) => sort == Sort::To { target: to, falls: false },
        Kind::Call(Some(to)) if to != 0 => sort == Sort::Call(to),
        Kind::Jump(None) => {
            matches!(sort, Sort::Through(_, Way::Jumps) | Sort::Leaves(Way::Jumps))
        }
        Kind::Call(None) => {
            matches!(sort, Sort::Through(_, Way::Calls) | Sort::Leaves(Way::Calls))
        }
        Kind::Return | Kind::Trap => matches!(sort, Sort::Leaves(Way::Ends) | Sort::Stops),
        Kind::Atomic => sort == Sort::Slow,
        Kind::CopyBlock | Kind::FillBlock => sort == Sort::Block,
        _ => !matches!(
            sort,
            Sort::To { .. }
                | Sort::Call(_)
                | Sort::Through(_, Way::Calls | Way::Jumps)
                | Sort::Leaves(_)
                | Sort::Stops
        ),
    }
}

/// Compares both decoders on all instructions from the start of `code` on: how many are the same, and how many only the
/// complete one knows.
fn compared(code: &[u8]) -> (u32, u32) {
    let mut decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
    let mut facts = iced_x86::InstructionInfoFactory::new();
    let (mut same, mut unknown) = (0_u32, 0_u32);
    while decoder.can_decode() {
        let at = decoder.position();
        let native = decoder.decode();
        let rest = &code[at..];
        match step(rest, native.ip()) {
            _ if native.is_invalid() => {}
            None => unknown += 1,
            Some((len, sort)) => {
                let bytes = &rest[..16.min(rest.len())];
                assert_eq!(len, native.len(), "{bytes:x?}");
                let kind = crate::decode::x86::lower(&native, &mut facts).kind;
                assert!(goes_on_alike(sort, kind), "{sort:?} {kind:?} {bytes:x?}");
                same += 1;
            }
        }
    }
    (same, unknown)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real code; the decoder itself reads nothing")]
fn lengths_and_ways_are_those_of_the_complete_decoder() {
    let own = std::env::current_exe().ok().and_then(|path| std::fs::read(path).ok());
    let own = own.expect("the test's own file");
    // Its code, whatever else: bytes that are no code have lengths too.
    let part = &own[own.len() / 8..][..own.len().min(8 << 20) / 2];
    let (same, unknown) = compared(part);
    assert!(same > 100_000 && unknown < same / 100, "{same} {unknown}");
}

proptest! {
    #[test]
    fn random_bytes_have_the_same_lengths(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        compared(&bytes);
    }
}

#[test]
fn an_instruction_that_is_cut_off_is_none() {
    for whole in
        ["ba00010000", "e8fb000000", "48c7c200010000", "f6c101", "c20800", "6a01", "0f85fbffffff"]
    {
        let bytes = hex(whole);
        assert!((0..bytes.len()).all(|len| step(&bytes[..len], 0).is_none()), "{whole}");
    }
}

#[test]
fn sorts_are_recognised() {
    for (code, sort) in [
        ("ba00010000", Sort::Constant(256)),
        ("48c7c200010000", Sort::Constant(256)),
        ("e8fb000000", Sort::Call(0x100)),
        ("ff15fa000000", Sort::Through(0x100, Way::Calls)),
        ("ff25fa000000", Sort::Through(0x100, Way::Jumps)),
        ("488b05f9000000", Sort::Through(0x100, Way::Loads)),
        ("ffd3", Sort::Leaves(Way::Calls)),
        ("ffe3", Sort::Leaves(Way::Jumps)),
        ("c3", Sort::Leaves(Way::Ends)),
        ("0fb9c0", Sort::Stops),
        ("75fe", Sort::To { target: 0, falls: true }),
        ("ebfe", Sort::To { target: 0, falls: false }),
        ("f0ff07", Sort::Slow),
        ("8707", Sort::Slow),
        ("48f7f9", Sort::Slow),
        ("f348ab", Sort::Block),
        ("897dfc", Sort::Spill),
        ("0f1107", Sort::Store(16)),
        ("c5fe7f07", Sort::Store(32)),
        ("62f1fd487f07", Sort::Store(64)),
        ("0f1006", Sort::Load(16)),
        ("4889da", Sort::Third),
        ("488bd3", Sort::Third),
        ("4989da", Sort::Other),
        ("ffc9", Sort::Step),
        ("4883e901", Sort::Step),
        ("01c8", Sort::Other),
    ] {
        let bytes = hex(code);
        assert_eq!(step(&bytes, 0), Some((bytes.len(), sort)), "{code}");
    }
}
