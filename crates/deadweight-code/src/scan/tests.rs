//! Small machine code with one cost each, and the same without it.

use super::*;
use crate::Abi;
use crate::tests::hex;
use deadweight_trace::syscall::Arch;
use proptest::prelude::*;

/// The code at 100h, which most of these functions call.
const CALLED: FileAddr = FileAddr(0x100);

/// The same facts for the screen.
struct At100 {
    called: Option<Called>,
    is_small: bool,
}

impl Targets for At100 {
    fn called(&self, addr: u64) -> Option<Called> {
        self.called.filter(|_| addr == CALLED.0)
    }

    fn may_be_small(&self, addr: u64) -> bool {
        addr == CALLED.0 && self.is_small
    }

    fn moved_part(&self, _: u64) -> Option<Called> {
        None
    }
}

fn platform(bytes: &[u8]) -> Code<'_> {
    Code { arch: Arch::X86_64, abi: Abi::Platform, addr: FileAddr(0), bytes }
}

/// The matches in code at address 0. `name`: of the code at 100h, which is small if it has none.
pub(super) fn found(code: &str, name: &str, abi: Abi) -> Vec<(Pattern, u64, u32, u32)> {
    let bytes = hex(code);
    let code = Code { arch: Arch::X86_64, abi, addr: FileAddr(0), bytes: &bytes };
    let names = |addr| (addr == CALLED && !name.is_empty()).then_some(name);
    let small = |addr| (addr == CALLED && name.is_empty()).then_some(5);
    let written = |addr| if addr == CALLED { 256 } else { 0 };
    let callees = Callees { names: &names, small: &small, written: &written };
    let targets = At100 { called: called(name), is_small: name.is_empty() };
    let found = scan(&code, &targets, &callees, &mut Passed::default());
    found.into_iter().map(|m| (m.pattern, m.at.0, m.depth, m.amount)).collect()
}

pub(super) fn native(code: &str, name: &str) -> Vec<(Pattern, u64, u32, u32)> {
    found(code, name, Abi::Platform)
}

#[test]
fn a_copy_counts_from_its_least_size() {
    // mov edx, 256; call; ret
    let copy = "ba00010000e8f6000000c3";
    assert_eq!(native(copy, "memcpy"), [(Pattern::Copy, 5, 0, 256)]);
    assert_eq!(native(&copy.replace("0001", "4000"), "memcpy"), []);
    assert_eq!(native(copy, "consume"), []);
    // mov edx, [rdi]; nop: the size is a variable
    assert_eq!(native("8b170f1f00e8f6000000c3", "memcpy"), []);
    // Go's copies of a fixed size: the routine knows how much.
    let fixed = found("e8fb000000c3", "runtime.duffcopy", Abi::Go);
    assert_eq!(fixed, [(Pattern::Copy, 0, 0, 256)]);
}

#[test]
fn a_run_of_stores_is_one_copy() {
    // movups xmm0, [rsi+n]; movups [rdi+n], xmm0 for each 16 bytes; ret
    let run = |pieces: u8| {
        let piece = |n: u8| format!("0f1046{0:02x}0f1147{0:02x}", n * 16);
        format!("{}c3", (0..pieces).map(piece).collect::<String>())
    };
    assert_eq!(native(&run(8), ""), [(Pattern::Copy, 0, 0, 128)]);
    assert_eq!(native(&run(7), ""), []);
}

#[test]
fn clearing_counts_from_its_least_size() {
    // xor eax, eax; mov ecx, 200h; rep stosq; ret
    let clear = "31c0b900020000f348abc3";
    assert_eq!(native(clear, ""), [(Pattern::Zeroing, 7, 0, 4096)]);
    assert_eq!(native(&clear.replace("0002", "4000"), ""), []);
    // mov eax, 1: it fills
    assert_eq!(native("b801000000b900020000f348abc3", ""), []);
}

#[test]
fn an_atomic_operation_counts_in_a_loop() {
    // lock inc dword ptr [rdi]; dec ecx; jne 0; ret
    assert_eq!(native("f0ff07ffc975f9c3", ""), [(Pattern::Atomic, 0, 1, 1)]);
    // xchg [rdi], eax; nop; dec ecx; jne 0; ret
    assert_eq!(native("870790ffc975f9c3", ""), [(Pattern::Atomic, 0, 1, 1)]);
    assert_eq!(native("f0ff07ffc9c3", ""), []);
    // inc dword ptr [rdi]
    assert_eq!(native("90ff07ffc975f9c3", ""), []);
}

#[test]
fn a_division_by_a_variable_counts_in_a_loop() {
    // xor edx, edx; div ecx; dec esi; jne 0; ret
    let division = "31d2f7f1ffce75f8c3";
    assert_eq!(native(division, ""), [(Pattern::Division, 2, 1, 1)]);
    // idiv dword ptr [rdi]
    assert_eq!(native(&division.replace("f7f1", "f73f"), ""), [(Pattern::Division, 2, 1, 1)]);
    // mul ecx
    assert_eq!(native(&division.replace("f7f1", "f7e1"), ""), []);
    // mov ecx, 10 before it
    assert_eq!(native(&format!("b90a000000{division}"), ""), []);
}

#[test]
fn a_bounds_check_counts_in_a_loop_unless_it_waits_for_a_load() {
    // 0: xor eax, eax; 2: cmp rax, r8; 5: jae f; 7: inc rax; a: dec esi; c: jne 2; e: ret; f: call 100h
    let check = "31c04c39c0730848ffc0ffce75f4c3e8ec000000";
    let panic = "core::panicking::panic_bounds_check";
    assert_eq!(native(check, panic), [(Pattern::BoundsCheck, 5, 1, 1)]);
    assert_eq!(native(check, "other"), []);
    // 1: mov eax, [rdi+rsi*4]; 4: cmp rax, r8 ...: the index was just loaded
    let waits = "908b04b74c39c0730848ffc0ffce75f1c3e8ea000000";
    assert_eq!(native(waits, panic), []);
}

#[test]
fn calls_count_in_a_loop_if_the_function_is_small_or_allocates() {
    // call 100h; dec ebx; jne 0; ret
    let call = "e8fb000000ffcb75f7c3";
    assert_eq!(native(call, ""), [(Pattern::SmallCall, 0, 1, 5)]);
    assert_eq!(native(call, "memcmp"), []);
    let new = found("90e8fa000000ffcb75f7c3", "runtime.newobject", Abi::Go);
    assert_eq!(new, [(Pattern::GoAllocation, 1, 1, 1)]);
    assert_eq!(native("e8fb000000ffcbc3", ""), []);
}

#[test]
fn of_unoptimised_code_only_that_is_said() {
    // push rbp; mov rbp, rsp; mov [rbp-4], edi; mov [rbp-8], esi; six times: mov eax, [rbp-4]; add [rbp-8], eax
    let start = "554889e5897dfc8975f8";
    let code = format!("{start}{}f0ff0775fbc9c3", "8b45fc0145f8".repeat(6));
    let [(Pattern::Unoptimised, 0, 0, 20)] = native(&code, "")[..] else {
        panic!("{:?}", native(&code, ""))
    };
    // The same without spilled arguments.
    let code = code.replace("897dfc8975f8", "");
    assert_eq!(native(&code, ""), [(Pattern::Atomic, 40, 1, 1)]);
}

#[test]
fn facts_about_called_code() {
    let of = |code: &str, ask: &dyn Fn(&Code<'_>) -> Option<u32>| {
        let bytes = hex(code);
        let (arch, abi) = (Arch::X86_64, Abi::Platform);
        ask(&Code { arch, abi, addr: FileAddr(0), bytes: &bytes })
    };
    let size = |code: &str| of(code, &|code| small(code, &|_| None));
    // lea eax, [rdi+1]; ret
    assert_eq!(size("8d4701c3"), Some(2));
    // A loop is not small, nor is a call behind a branch.
    assert_eq!(size("90ffc975fcc3"), None);
    assert_eq!(size("ffc97405e8f6000000c3"), None);
    let bytes = |code: &str| of(code, &|code| Some(written(code)));
    let piece = "0f10064883c6100f11074883c710";
    assert_eq!(bytes(&format!("{piece}{piece}c3")), Some(32));
    assert_eq!(bytes(&format!("{piece}c3{piece}")), Some(16));
}

proptest! {
    /// Bytes with many jumps, so that there are loops.
    #[test]
    fn any_bytes_are_scanned(bytes in proptest::collection::vec(
        prop_oneof![any::<u8>(), Just(0x75), Just(0xeb), Just(0xf0), Just(0xff), Just(0xe8)], 0..400
    )) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        for name in ["", "memcpy", "core::panicking::panic_bounds_check"] {
            for abi in [Abi::Platform, Abi::Go] {
                prop_assert!(found(&hex, name, abi).len() <= bytes.len());
            }
        }
        let code = Code { arch: Arch::X86_64, abi: Abi::Go, addr: FileAddr(u64::MAX - 9), bytes: &bytes };
        let targets = At100 { called: None, is_small: true };
        // At the end of the address space too.
        let _ = Interest::of(&code, &targets, &mut Passed::default());
    }
}

/// Facts by address, so that all rules have something to find.
struct ByAddress;

impl ByAddress {
    const NAMES: [&str; 6] = [
        "memcpy",
        "core::panicking::panic_bounds_check",
        "memset",
        "core::panicking::panic",
        "core::panicking::panic_bounds_check",
        "__throw_out_of_range",
    ];

    fn name(addr: u64) -> Option<&'static str> {
        Self::NAMES.get(usize::try_from(addr / 16 % 12).unwrap()).copied()
    }
}

impl Targets for ByAddress {
    fn called(&self, addr: u64) -> Option<Called> {
        Self::name(addr).and_then(called)
    }

    fn may_be_small(&self, addr: u64) -> bool {
        addr.is_multiple_of(3)
    }

    fn moved_part(&self, addr: u64) -> Option<Called> {
        self.called(addr)
    }
}

/// The code of an ELF file: its first segment that may be executed.
fn executable(file: &[u8]) -> &[u8] {
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let size = |at: usize| usize::try_from(number(at)).unwrap();
    let headers = file[size(32)..].chunks_exact(56);
    let code = (0..).zip(headers).find(|(_, header)| header[0] == 1 && header[4] & 1 == 1);
    let at = size(32) + code.expect("it has code").0 * 56;
    &file[size(at + 8)..][..size(at + 32)]
}

/// Real code, cut into pieces as if these were functions: parts show what the whole shows.
#[test]
#[expect(clippy::disallowed_methods, reason = "real code; the rules read no file")]
fn parts_show_what_the_whole_function_shows() {
    let own = std::env::current_exe().ok().and_then(|path| std::fs::read(path).ok());
    let own = own.expect("the test's own file");
    let names = |addr: FileAddr| ByAddress::name(addr.0);
    let small = |addr: FileAddr| addr.0.is_multiple_of(3).then_some(7);
    let callees = Callees { names: &names, small: &small, written: &|_| 0 };
    let (mut passed, mut found, mut of_parts) = (Passed::default(), 0, 0);
    let (mut rest, mut at) = (executable(&own), 0x10_0000);
    while rest.len() > 4_000 {
        let whole = Code { bytes: &rest[..4_000], addr: FileAddr(at), ..platform(&[]) };
        let instructions = crate::decode::instructions(&whole);
        // The last one may be cut off.
        let end = instructions[instructions.len() - 1].addr;
        let (bytes, later) = rest.split_at(usize::try_from(end - at).unwrap());
        let code = Code { bytes, ..whole };
        (rest, at) = (later, end);
        let Some(interest) = Interest::of(&code, &ByAddress, &mut passed) else { continue };
        let known = instructions.iter().all(|i| i.kind != Kind::Unknown || i.addr == end);
        if !passed.is_complete || !known {
            continue;
        }
        let whole = complete(&code, interest, &callees);
        found += whole.len();
        if let Some(parts) = quickly(&Quick::new(&code, &passed, &callees), interest) {
            assert_eq!(parts, whole, "{interest:?} {bytes:02x?}");
            of_parts += whole.len();
        }
    }
    assert!(found > 200 && of_parts > 50, "{found} {of_parts}");
}
