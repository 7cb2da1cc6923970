//! Small loops over floating-point numbers that could compute several at once, and such that could not.

use super::super::Pattern;
use super::super::tests::{found, native};
use super::Floats;
use crate::Abi;

/// The only loop found in this code: where, how many operations, of doubles, a sum.
fn loop_in(code: &str, abi: Abi) -> Option<(u64, u32, bool, bool)> {
    match found(code, "other", abi)[..] {
        [] => None,
        [(Pattern::ScalarFloats(Floats { double, reduces }), at, 1, amount)] => {
            Some((at, amount, double, reduces))
        }
        ref other => panic!("{other:?}"),
    }
}

fn one(code: &str) -> Option<(u64, u32, bool, bool)> {
    loop_in(code, Abi::Platform)
}

#[test]
fn a_loop_over_elements_is_found() {
    // 0: xor eax, eax; 2: movss xmm1, [rsi+rax*4]; 7: mulss xmm1, xmm0; addss xmm1, [rdi+rax*4]; movss [rdi+rax*4], xmm1
    // inc rax; cmp rax, rdx; jne 2; ret
    let elements = "31c0f30f100c86f30f59c8f30f580c87f30f110c8748ffc04839d075e5c3";
    assert_eq!(one(elements), Some((7, 2, false, false)));
    // 0: movzx eax, byte ptr [rsi+rcx]; pxor xmm1, xmm1; 8: cvtsi2ss xmm1, eax; mulss xmm1, xmm0; movss [rdi+rcx*4], xmm1
    // inc rcx; cmp rcx, rdx; jne 0; ret
    let bytes = "0fb6040e660fefc9f30f2ac8f30f59c8f30f110c8f48ffc14839d175e3c3";
    assert_eq!(one(bytes), Some((8, 2, false, false)));
    // AVX2 knows no integers of 64 bits here: cvtsi2sd xmm1, qword ptr [rsi+rcx*8]
    assert_eq!(one("660fefc9f2480f2a0ccef20f110ccf48ffc14839d175e9c3"), None);
}

#[test]
fn a_sum_is_found_and_called_so() {
    // 0: addsd xmm0, [rdi]; add rdi, 8; cmp rdi, rsi; jne 0; ret
    assert_eq!(one("f20f58074883c7084839f775f3c3"), Some((0, 1, true, true)));
    // 0: vmovsd xmm1, [rsi+rcx*8]; 5: vfmadd231sd xmm0, xmm1, [rdi+rcx*8]; inc rcx; cmp rcx, rdx; jne 0; ret
    assert_eq!(one("c5fb100ccec4e2f1b904cf48ffc14839d175edc3"), Some((5, 2, true, true)));
    // The sum is kept in memory. 0: movsd xmm0, [rsi]; 4: addsd xmm0, [rdi]; movsd [rsi], xmm0; add rdi, 8; cmp rdi, rdx; ...
    assert_eq!(one("f20f1006f20f5807f20f11064883c7084839d775ebc3"), Some((4, 1, true, true)));
    // As Go compiles it. 0: jmp e; 2: mulss xmm1, [rdi+rcx*4]; addss xmm0, xmm1; inc rcx; e: cmp rcx, rbx; jge 1f
    // movss xmm1, [rax+rcx*4]; cmp rcx, rsi; jb 2; ud2; 1f: ret
    let go = "eb0cf30f590c8ff30f58c148ffc14839d97d0cf30f100c884839f172e50f0bc3";
    assert_eq!(loop_in(go, Abi::Go), Some((2, 2, false, true)));
}

#[test]
fn the_rest_of_a_vectorised_loop_is_refused() {
    // 0: movups xmm1, [rdi]; mulps xmm1, xmm0; movups [rdi], xmm1; add rdi, 16; cmp rdi, rsi; jne 0
    // 12: movss xmm1, [rdi]; mulss xmm1, xmm0; movss [rdi], xmm1; add rdi, 4; cmp rdi, rdx; jne 12; ret
    let packed = "0f100f0f59c80f110f4883c7104839f775ee";
    let rest = "f30f100ff30f59c8f30f110f4883c7044839d775ebc3";
    assert_eq!(one(&format!("{packed}{rest}")), None);
    assert_eq!(one(rest), Some((4, 1, false, false)));
    // addps: the other loop computes something else.
    let other = format!("{}{rest}", packed.replace("0f59c8", "0f58c8"));
    assert_eq!(one(&other), Some((0x16, 1, false, false)));
}

#[test]
fn memory_that_is_not_side_by_side_is_refused() {
    // A gather. 0: movsxd rax, [rsi+rcx*4]; addsd xmm0, [rdi+rax*8]; inc rcx; cmp rcx, rdx; jne 0; ret
    assert_eq!(one("4863048ef20f5804c748ffc14839d175efc3"), None);
    // A column. 0: addsd xmm0, [rdi]; add rdi, 24; cmp rdi, rsi; jne 0; ret
    assert_eq!(one("f20f58074883c7184839f775f3c3"), None);
    // A list. 0: addsd xmm0, [rdi+8]; mov rdi, [rdi]; test rdi, rdi; jne 0; ret
    assert_eq!(one("f20f584708488b3f4885ff75f3c3"), None);
}

#[test]
fn turns_that_need_the_turn_before_are_refused() {
    // 0: movsd xmm0, [rdi-8]; addsd xmm0, [rdi]; movsd [rdi], xmm0; add rdi, 8; cmp rdi, rsi; jne 0; ret
    assert_eq!(one("f20f1047f8f20f5807f20f11074883c7084839f775eac3"), None);
    // 0: mulsd xmm0, xmm1; addsd xmm0, [rdi]; add rdi, 8; cmp rdi, rsi; jne 0; ret
    assert_eq!(one("f20f59c1f20f58074883c7084839f775efc3"), None);
}

#[test]
fn turns_of_different_ways_are_refused() {
    // A search. 0: movss xmm1, [rdi]; mulss xmm1, xmm0; ucomiss xmm1, xmm2; ja 16; add rdi, 4; cmp rdi, rdx; jne 0; 16: ret
    assert_eq!(one("f30f100ff30f59c80f2eca77094883c7044839d775eac3"), None);
    // 0: movsd xmm1, [rdi]; test cl, 1; je d; mulsd xmm1, xmm0; d: movsd [rdi], xmm1; add rdi, 8; inc ecx; cmp rdi, rsi; jne 0; ret
    assert_eq!(one("f20f100ff6c1017404f20f59c8f20f110f4883c708ffc14839f775e4c3"), None);
    // A way outside. 0: movsd xmm1, [rdi]; cmp rdi, rcx; ja 1b; 9: mulsd xmm1, xmm0; movsd [rdi], xmm1; add rdi, 8
    // cmp rdi, rsi; jne 0; ret; 1b: xorps xmm1, xmm1; jmp 9
    let away = "f20f100f4839cf7712f20f59c8f20f110f4883c7084839f775e6c30f57c9ebe9";
    assert_eq!(one(away), None);
    // 0: movsd xmm0, [rbx]; mulsd xmm0, xmm0; call; movsd [rbx], xmm0; add rbx, 8; cmp rbx, rbp; jne 0; ret
    let calls = "f20f1003f20f59c0e8f3000000f20f11034883c3084839eb75e6c3";
    assert_eq!(native(calls, "other"), []);
}

#[test]
fn a_few_turns_are_refused() {
    // 0: xor eax, eax; 2: movsd xmm0, [rdi+rax*8]; mulsd xmm0, xmm1; movsd [rdi+rax*8], xmm0; inc rax; cmp rax, 6; jne 2; ret
    let few = "31c0f20f1004c7f20f59c1f20f1104c748ffc04883f80675e9c3";
    assert_eq!(one(few), None);
    assert_eq!(one(&few.replace("83f806", "83f840")), Some((7, 1, true, false)));
}
