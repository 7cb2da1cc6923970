//! Properties for any bytes, and for samples in known code. Not for single rules; see the files beside this one.

use super::{ARM, C, Fixture, GO};
use crate::{Abi, Code, Function, Role};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;
use expect_test::expect;
use proptest::prelude::*;

// A loop over an array, `0:` to `c:`, made by hand:
//  0: xor eax, eax
//  2: add rax, [rdi]       <- from d
//  5: add rdi, 8
//  9: cmp rdi, rsi
//  c: jne 2
//  e: ret
const LOOP: Fixture = Fixture { addr: 0x1000, code: "31c04803074883c7084839f775f4c3", ..C };

fn charged(ip: u64) -> u64 {
    LOOP.read().charge(FileAddr(0x1000 + ip)).0 - 0x1000
}

#[test]
fn a_sample_is_charged_to_the_instruction_before_in_a_straight_line() {
    assert_eq!([charged(5), charged(9), charged(0xc), charged(0xe)], [2, 5, 9, 0xc]);
}

#[test]
fn a_sample_at_a_branchs_target_or_the_entry_stays() {
    assert_eq!([charged(0), charged(2)], [0, 2]);
}

#[test]
fn a_sample_at_a_branchs_target_behind_an_atomic_operation_waited_for_that() {
    // test eax, eax; je 8; lock inc qword ptr [rdi]; 8: ret
    let fixture = Fixture { addr: 0, code: "85c07404f048ff07c3", ..C };
    assert_eq!(fixture.read().charge(FileAddr(8)).0, 4);
    // nop in place of the lock.
    let plain = Fixture { addr: 0, code: "85c074049048ff07c3", ..C };
    assert_eq!(plain.read().charge(FileAddr(8)).0, 8);
    // lock inc qword ptr [rdi]; 4: dec eax; jne 4; ret: it may have run once, before the loop.
    let once = Fixture { addr: 0, code: "f048ff07ffc875fcc3", ..C };
    assert_eq!(once.read().charge(FileAddr(4)).0, 4);
}

#[test]
fn a_sample_at_a_block_instruction_stays_as_an_interrupt_divides_it() {
    // mov ecx, 100h; mov rdi, rsp; rep movsq; ret
    let fixture = Fixture { addr: 0, code: "b9000100004889e7f348a5c3", ..C };
    assert_eq!([5, 8, 11].map(|ip| fixture.read().charge(FileAddr(ip)).0), [0, 8, 8]);
}

#[test]
fn a_sample_inside_an_instruction_is_charged_to_it_and_one_outside_to_none() {
    assert_eq!(charged(6), 2);
    assert_eq!(LOOP.read().role_of_sample(FileAddr(0x100f)), None);
    assert_eq!(LOOP.read().role_of_sample(FileAddr(0xfff)), None);
    assert_eq!(LOOP.read().charge(FileAddr(5)), FileAddr(5));
}

#[test]
fn the_listing_is_the_hottest_run_with_its_neighbours() {
    let bytes = LOOP.bytes();
    let samples = [(FileAddr(0x1005), 40), (FileAddr(0x1009), 2), (FileAddr(9), 7)];
    let lines = LOOP.read().listing(&LOOP.of(&bytes), &|_| None, &samples);
    let text: String =
        lines.iter().map(|l| format!("{:x} {:3} {}\n", l.addr.0, l.hits, l.text)).collect();
    expect![[r#"
        1000   0 xor eax, eax
        1002  40 add rax, [rdi]
        1005   2 add rdi, 8h
        1009   0 cmp rdi, rsi
    "#]]
    .assert_eq(&text);
}

#[test]
fn no_samples_no_listing() {
    let bytes = LOOP.bytes();
    assert!(LOOP.read().listing(&LOOP.of(&bytes), &|_| None, &[]).is_empty());
    let empty = Function::read(&LOOP.of(&[]), &|_| None);
    assert!(empty.listing(&LOOP.of(&[]), &|_| None, &[(FileAddr(0x1000), 1)]).is_empty());
}

/// Names that make every rule run.
fn any_name(addr: FileAddr) -> Option<&'static str> {
    let names = ["memcpy", "runtime.panicIndex", "memset", "runtime.morestack", "main.work"];
    usize::try_from(addr.0 % 7).ok().and_then(|i| names.get(i)).copied()
}

fn holds(fixture: &Fixture, addr: u64, bytes: &[u8]) -> Result<(), TestCaseError> {
    let code = Code { addr: FileAddr(addr), ..fixture.of(bytes) };
    let function = Function::read(&code, &any_name);
    prop_assert_eq!(function.instructions().len(), function.roles().len());
    prop_assert!(function.instructions().len() <= bytes.len());
    let samples: Vec<_> =
        (0..bytes.len() as u64).map(|i| (FileAddr(addr.wrapping_add(i)), 1)).collect();
    for (ip, _) in &samples {
        prop_assert!(function.charge(*ip) <= *ip);
    }
    prop_assert!(function.listing(&code, &any_name, &samples).len() <= 14);
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400), addr: u64) {
        let addr = addr.min(u64::MAX - 4096);
        for fixture in [C, GO, ARM] {
            holds(&fixture, addr, &bytes)?;
        }
        holds(&Fixture { abi: Abi::Go, ..ARM }, addr, &bytes)?;
    }

    /// Moves between memory and registers, which random bytes seldom are.
    #[test]
    fn any_moves_are_read(moves in proptest::collection::vec((0..8usize, any::<u8>()), 0..99)) {
        let stems: [&[u8]; 8] = [
            &[0x48, 0x8b], &[0x48, 0x89], &[0x0f, 0x10], &[0x0f, 0x11], &[0x0f, 0x57],
            &[0x48, 0x83], &[0x75], &[0xf3, 0x48],
        ];
        let mut bytes = Vec::new();
        for (stem, rest) in moves {
            bytes.extend_from_slice(stems[stem]);
            bytes.push(rest);
        }
        holds(&C, 0x4000, &bytes)?;
        holds(&GO, 0x4000, &bytes)?;
    }
}

/// A run of ten thousand stores takes no longer per store than a short one, and is one run.
#[test]
fn a_long_run_is_one() {
    let store = [0x48, 0xc7, 0x07, 0, 0, 0, 0, 0x48, 0x83, 0xc7, 0x08];
    let bytes = store.repeat(10_000);
    let code = Code { arch: Arch::X86_64, abi: Abi::Platform, addr: FileAddr(0), bytes: &bytes };
    let function = Function::read(&code, &|_| None);
    let zeroing = |role: &&Role| matches!(role, Role::Zeroing(run) if run.bytes == 80_000);
    assert_eq!(function.roles().iter().filter(zeroing).count(), 10_000);
}
