//! x86-64 code of GCC 12 (`-O2` unless stated), rustc 1.95 (`-O`) and Zig 0.14 (`ReleaseSafe`). Not for Go; see `go`.

use super::{C, Fixture};
use expect_test::expect;

// struct big { long v[12]; };
// void by_value(struct big *to, const struct big *from) { *to = *from; }
const A_STRUCT_COPIED_PIECEWISE: Fixture = Fixture {
    addr: 0x1140,
    code: "f30f6f060f1107f30f6f4e100f114f10f30f6f56200f115720f30f6f5e300f115f30f30f6f66400f1167\
        40f30f6f6e500f116f50c3",
    ..C
};

#[test]
fn a_struct_copied_piecewise() {
    A_STRUCT_COPIED_PIECEWISE.check(&expect![[r#"
        0   movdqu xmm0, [rsi]                     copy 96, pointer to pointer
        4   movups [rdi], xmm0                     copy 96, pointer to pointer
        7   movdqu xmm1, [rsi+10h]                 copy 96, pointer to pointer
        c   movups [rdi+10h], xmm1                 copy 96, pointer to pointer
        10  movdqu xmm2, [rsi+20h]                 copy 96, pointer to pointer
        15  movups [rdi+20h], xmm2                 copy 96, pointer to pointer
        19  movdqu xmm3, [rsi+30h]                 copy 96, pointer to pointer
        1e  movups [rdi+30h], xmm3                 copy 96, pointer to pointer
        22  movdqu xmm4, [rsi+40h]                 copy 96, pointer to pointer
        27  movups [rdi+40h], xmm4                 copy 96, pointer to pointer
        2b  movdqu xmm5, [rsi+50h]                 copy 96, pointer to pointer
        30  movups [rdi+50h], xmm5                 copy 96, pointer to pointer
        34  ret                                    epilogue
    "#]]);
}

// The beginning of what Crystal 1.6's constructor of a struct with 1912 bytes does behind `initialize`:
// `Copied.new` of `cases/crystal-blake3`.
const A_STRUCT_COPIED_BACKWARDS: Fixture = Fixture {
    addr: 0x497a3,
    code: "488b8424100700004889842408070000488b8424180700004889842400070000488b842420070000488984\
        24f8060000488b84242807000048898424f0060000488b84243007000048898424e8060000488b84243807\
        000048898424e0060000488b84244007000048898424d8060000488b84244807000048898424d006000048\
        8b84245007000048898424c8060000488b84245807000048898424c0060000488b84246007000048898424\
        b8060000488b84246807000048898424b0060000488b84247007000048898424a8060000488b8424780700\
        0048898424a0060000488b8424800700004889842498060000488b8424880700004889842490060000488b\
        8424900700004889842488060000488b8424980700004889842480060000488b8424a00700004889842478\
        060000488b8424a80700004889842470060000488b8424b00700004889842468060000488b8424b8070000\
        4889842460060000488b8424c00700004889842458060000488b8424c80700004889842450060000488b84\
        24d00700004889842448060000488b8424d80700004889842440060000488b8424e0070000488984243806\
        0000488b8424e80700004889842430060000488b8424f00700004889842428060000488b8424f807000048\
        89842420060000488b8424000800004889842418060000488b8424080800004889842410060000488b8424\
        100800004889842408060000",
    ..C
};

#[test]
fn a_struct_copied_backwards() {
    let text = A_STRUCT_COPIED_BACKWARDS.text();
    assert!(text.lines().all(|line| line.ends_with("copy 264, frame to frame")), "{text}");
}

#[test]
fn the_reversal_of_a_short_array_is_work() {
    let short = Fixture { code: &A_STRUCT_COPIED_BACKWARDS.code[..960], ..C };
    assert_eq!(short.roles(), [""; 0]);
}

// struct small { long v[4]; };
// void kept(struct small *to, const struct small *from) { *to = *from; }
const FOUR_REGISTERS_WORTH_IS_NO_COPY_RUN: Fixture =
    Fixture { addr: 0x1180, code: "f30f6f060f1107f30f6f4e100f114f10c3", ..C };

#[test]
fn four_registers_worth_is_no_copy_run() {
    assert_eq!(FOUR_REGISTERS_WORTH_IS_NO_COPY_RUN.roles(), ["epilogue"]);
}

// void cleared(struct big *b) { memset(b, 0, sizeof *b); b->v[0] = 1; }
const A_BLOCK_ZEROED: Fixture = Fixture {
    addr: 0x11a0,
    code: "48c74708000000004889fa488d7f1048c747480000000089d04883e7f829f88d486031c0c1e903f348ab\
        48c70201000000c3",
    ..C
};

#[test]
fn a_block_zeroed() {
    A_BLOCK_ZEROED.check(&expect![[r#"
        0   mov qword ptr [rdi+8h], 0h
        8   mov rdx, rdi
        b   lea rdi, [rdi+10h]
        f   mov qword ptr [rdi+48h], 0h
        17  mov eax, edx
        19  and rdi, 0FFFFFFFFFFFFFFF8h
        1d  sub eax, edi
        1f  lea ecx, [rax+60h]
        22  xor eax, eax
        24  shr ecx, 3h
        27  rep stosq [rdi], rax                   zeroing 0, unknown to unknown
        2a  mov qword ptr [rdx], 1h
        31  ret                                    epilogue
    "#]]);
}

// void scaled(int *restrict to, const int *restrict from, long n) {
//     for (long i = 0; i < n; i++) to[i] = from[i] * 3;
// }
const A_LOOP_THAT_COMPUTES_IS_WORK: Fixture = Fixture {
    addr: 0x1200,
    code: "4885d27e1d31c0660f1f8400000000008b0c868d0c49890c874883c0014839c275eec3",
    ..C
};

#[test]
fn a_loop_that_computes_is_work() {
    assert_eq!(A_LOOP_THAT_COMPUTES_IS_WORK.roles(), ["epilogue"]);
}

// long chase(struct node *n) {
//     long s = 0;
//     for (; n; n = n->next) s += n->v;
//     return s;
// }
const FOLLOWING_POINTERS_IS_WORK: Fixture = Fixture {
    addr: 0x1250,
    code: "31c04885ff7419660f1f84000000000048034708488b3f4885ff75f4c30f1f00c3",
    ..C
};

#[test]
fn following_pointers_is_work() {
    assert_eq!(FOLLOWING_POINTERS_IS_WORK.roles(), ["epilogue"]);
}

// A round function over eight words: h[8] into registers, mixed, and back.
const A_HASH_FUNCTIONS_STATE_IN_REGISTERS_IS_WORK: Fixture = Fixture {
    addr: 0x12b0,
    code: "41574531db415641554154554889fd534c8b274889f34c8b6f084c8b77104c8b7f18488b55284d89e148\
        8b7f204c8b45304c896424f04d89f2488b453848895424d84c89f94c89ee48897c24d04c894424e04889\
        4424e848896c24f80f1f40004589dc4801d74183e4074831f84a8b2ce348c1c020458d63034183c30149\
        01c04183e4074801f54c31c24901e948c1c2184c31c94901d148c1c1204c31c84901ca48c1c0204c31d6\
        4901c248c1c6184c31d24801f74a033ce348c1c2184831f948c1c1204901c84c31c648c1c6184183fb0c\
        758c488b5c24d8488b6c24f84931cf4931f54c8b6424f0488b4c24d04d31d64831d3488b5424e04c896d\
        0848895d28488b5c24e84d31cc4831f94c31c24c8965004831c34c8975104c897d1848894d2048895530\
        48895d385b5d415c415d415e415fc3",
    ..C
};

#[test]
fn a_hash_functions_state_in_registers_is_work() {
    assert_eq!(A_HASH_FUNCTIONS_STATE_IN_REGISTERS_IS_WORK.roles(), ["prologue", "epilogue"]);
}

// long saves(long a, long b, long c, long d, long e, long f) {
//     long x = g(a, b, c, d, e, f);
//     long y = g(b, c, d, e, f, a);
//     return x * y + a + b + c + d + e + f;
// }
const SAVED_REGISTERS_AND_ARGUMENTS_ARE_CALLING: Fixture = Fixture {
    addr: 0x13f0,
    code: "41574989ff41564989f641554989d541544989cc554c89c5534c89cb4883ec18e84bfcffff4d89f94989\
        d84889e94c89e24c89ee4c89f74889442408e82ffcffff4c8b5424084883c4184c0fafd04b8d043a4c01\
        f04c01e84c01e04801e84801d85b5d415c415d415e415fc3",
    names: &[(0x1060, "g@plt")],
    ..C
};

#[test]
fn saved_registers_and_arguments_are_calling() {
    SAVED_REGISTERS_AND_ARGUMENTS_ARE_CALLING.check(&expect![[r#"
        0   push r15                               prologue
        2   mov r15, rdi                           prologue
        5   push r14                               prologue
        7   mov r14, rsi                           prologue
        a   push r13                               prologue
        c   mov r13, rdx                           prologue
        f   push r12                               prologue
        11  mov r12, rcx                           prologue
        14  push rbp                               prologue
        15  mov rbp, r8                            prologue
        18  push rbx                               prologue
        19  mov rbx, r9                            prologue
        1c  sub rsp, 18h                           prologue
        20  call g@plt                             call
        25  mov r9, r15                            arguments
        28  mov r8, rbx                            arguments
        2b  mov rcx, rbp                           arguments
        2e  mov rdx, r12                           arguments
        31  mov rsi, r13                           arguments
        34  mov rdi, r14                           arguments
        37  mov [rsp+8h], rax                      arguments
        3c  call g@plt                             call
        41  mov r10, [rsp+8h]                      arguments
        46  add rsp, 18h
        4a  imul r10, rax
        4e  lea rax, [r10+r15]
        52  add rax, r14
        55  add rax, r13
        58  add rax, r12
        5b  add rax, rbp
        5e  add rax, rbx
        61  pop rbx                                epilogue
        62  pop rbp                                epilogue
        63  pop r12                                epilogue
        65  pop r13                                epilogue
        67  pop r14                                epilogue
        69  pop r15                                epilogue
        6b  ret                                    epilogue
    "#]]);
}

// void count(long *n) { __atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST); }
const AN_ATOMIC_ADDITION: Fixture = Fixture { addr: 0x1460, code: "f048830701c3", ..C };

#[test]
fn an_atomic_addition() {
    AN_ATOMIC_ADDITION.check(&expect![[r#"
        0   lock add qword ptr [rdi], 1h           atomic
        5   ret                                    epilogue
    "#]]);
}

// long at(const std::vector<long> &v, unsigned long i) { return v.at(i); }
const A_VECTORS_AT_CHECKS_AN_INDEX_THAT_WAS_PASSED: Fixture = Fixture {
    addr: 0x12e0,
    code: "488b07488b57084829c248c1fa034839d67305488b04f0c350488d3d080d000031c0e869fdffff",
    names: &[(0x1070, "_ZSt24__throw_out_of_range_fmtPKcz@plt")],
    ..C
};

#[test]
fn a_vectors_at_checks_an_index_that_was_passed() {
    A_VECTORS_AT_CHECKS_AN_INDEX_THAT_WAS_PASSED.check(&expect![[r#"
        0   mov rax, [rdi]
        3   mov rdx, [rdi+8h]
        7   sub rdx, rax
        a   sar rdx, 3h
        e   cmp rsi, rdx                           bounds check
        11  jae 12F8h                              bounds check
        13  mov rax, [rax+rsi*8]
        17  ret                                    epilogue
        18  push rax
        19  lea rdi, [2008h]
        20  xor eax, eax                           arguments
        22  call _ZSt24__throw_out_of_range_fmtPKcz@plt call
    "#]]);
}

// fn gather(t: &[u64], ix: &[u32]) -> u64 {
//     let mut s = 0;
//     for &i in ix { s += t[i as usize]; }
//     s
// }
const RUST_CHECKS_AN_INDEX_THAT_WAS_LOADED: Fixture = Fixture {
    addr: 0x14810,
    code: "4885c9742248c1e10231c04531c96690468b040a4c39c676114a0304c74983c1044c39c975eac331c0c3\
        50488d158ee803004c89c7ff150d080400",
    names: &[(0x55058, "_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check")],
    ..C
};

#[test]
fn rust_checks_an_index_that_was_loaded() {
    RUST_CHECKS_AN_INDEX_THAT_WAS_LOADED.check(&expect![[r#"
        0   test rcx, rcx
        3   je 14837h
        5   shl rcx, 2h
        9   xor eax, eax
        b   xor r9d, r9d
        e   nop
        10  mov r8d, [rdx+r9]
        14  cmp rsi, r8                            bounds check of a loaded index
        17  jbe 1483Ah                             bounds check of a loaded index
        19  add rax, [rdi+r8*8]
        1d  add r9, 4h
        21  cmp rcx, r9
        24  jne 14820h
        26  ret                                    epilogue
        27  xor eax, eax
        29  ret                                    epilogue
        2a  push rax
        2b  lea rdx, [530D0h]
        32  mov rdi, r8                            arguments
        35  call _RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check call
    "#]]);
}

// struct M([u64; 16]);
// fn moved(v: &mut [M], a: usize, b: usize) { v[a] = v[b]; }
const RUST_MOVES_AN_ELEMENT: Fixture = Fixture {
    addr: 0x14850,
    code: "504839f1735d4839f2736848c1e10748c1e2070f10040f0f104c0f100f10540f200f105c0f300f10640f\
        400f106c0f500f10740f600f107c0f700f117c17700f117417600f116c17500f116417400f115c17300f\
        115417200f114c17100f11041758c3488d152ee803004889cfff1595070400488d0536e803004889d748\
        89c2ff1582070400",
    names: &[(0x55058, "_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check")],
    ..C
};

#[test]
fn rust_moves_an_element() {
    RUST_MOVES_AN_ELEMENT.check(&expect![[r#"
        0   push rax                               prologue
        1   cmp rcx, rsi                           bounds check
        4   jae 148B3h                             bounds check
        6   cmp rdx, rsi                           bounds check
        9   jae 148C3h                             bounds check
        b   shl rcx, 7h
        f   shl rdx, 7h
        13  movups xmm0, [rdi+rcx]                 copy 128, element to element
        17  movups xmm1, [rdi+rcx+10h]             copy 128, element to element
        1c  movups xmm2, [rdi+rcx+20h]             copy 128, element to element
        21  movups xmm3, [rdi+rcx+30h]             copy 128, element to element
        26  movups xmm4, [rdi+rcx+40h]             copy 128, element to element
        2b  movups xmm5, [rdi+rcx+50h]             copy 128, element to element
        30  movups xmm6, [rdi+rcx+60h]             copy 128, element to element
        35  movups xmm7, [rdi+rcx+70h]             copy 128, element to element
        3a  movups [rdi+rdx+70h], xmm7             copy 128, element to element
        3f  movups [rdi+rdx+60h], xmm6             copy 128, element to element
        44  movups [rdi+rdx+50h], xmm5             copy 128, element to element
        49  movups [rdi+rdx+40h], xmm4             copy 128, element to element
        4e  movups [rdi+rdx+30h], xmm3             copy 128, element to element
        53  movups [rdi+rdx+20h], xmm2             copy 128, element to element
        58  movups [rdi+rdx+10h], xmm1             copy 128, element to element
        5d  movups [rdi+rdx], xmm0                 copy 128, element to element
        61  pop rax                                epilogue
        62  ret                                    epilogue
        63  lea rdx, [530E8h]
        6a  mov rdi, rcx                           arguments
        6d  call _RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check call
        73  lea rax, [53100h]
        7a  mov rdi, rdx                           arguments
        7d  mov rdx, rax                           arguments
        80  call _RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check call
    "#]]);
}

// fn add(a: i32, b: i32) -> i32 { a.checked_add(b).unwrap() }
const RUST_OVERFLOW_IS_ANOTHER_CHECK: Fixture = Fixture {
    addr: 0x147e0,
    code: "01f7700389f8c350488d3dc9e80300ff155b080400",
    names: &[(0x55050, "_RNvNtCsgEmfK2I1SDS_4core6option13unwrap_failed")],
    ..C
};

#[test]
fn rust_overflow_is_another_check() {
    RUST_OVERFLOW_IS_ANOTHER_CHECK.check(&expect![[r#"
        0   add edi, esi
        2   jo 147E7h                              other check
        4   mov eax, edi
        6   ret                                    epilogue
        7   push rax
        8   lea rdi, [530B8h]
        f   call _RNvNtCsgEmfK2I1SDS_4core6option13unwrap_failed call
    "#]]);
}

// noinline fn byValue(b: *const Big, out: *Big) void { out.* = b.*; out.v[1] +%= 1; }
const ZIG_COPIES_A_STRUCT_BY_A_CALL_OF_KNOWN_SIZE: Fixture = Fixture {
    addr: 0x103dfb0,
    code: "554889e55350ba000200004889f34889fe4889dfe827b3000048ff43084883c4085b5dc3",
    names: &[(0x10492f0, "memcpy")],
    ..C
};

#[test]
fn zig_copies_a_struct_by_a_call_of_known_size() {
    ZIG_COPIES_A_STRUCT_BY_A_CALL_OF_KNOWN_SIZE.check(&expect![[r#"
        0   push rbp                               prologue
        1   mov rbp, rsp                           prologue
        4   push rbx                               prologue
        5   push rax                               prologue
        6   mov edx, 200h                          arguments
        b   mov rbx, rsi                           prologue
        e   mov rsi, rdi                           arguments
        11  mov rdi, rbx                           arguments
        14  call memcpy                            copy 512, unknown to unknown
        19  inc qword ptr [rbx+8h]
        1d  add rsp, 8h                            epilogue
        21  pop rbx                                epilogue
        22  pop rbp                                epilogue
        23  ret                                    epilogue
    "#]]);
}

// noinline fn gather(t: []const u64, ix: []const u32) u64 {
//     var s: u64 = 0;
//     for (ix) |i| s +%= t[i];
//     return s;
// }
// Inlined to one element of three by the compiler.
const ZIG_CHECKS_AN_INDEX: Fixture = Fixture {
    addr: 0x103dfe0,
    code: "89f889ff83f8027709488b04fdb8880001c3554889e5be03000000e8e0610000",
    names: &[(0x10441e0, "debug.FullPanic((function 'defaultPanic')).outOfBounds")],
    ..C
};

#[test]
fn zig_checks_an_index() {
    ZIG_CHECKS_AN_INDEX.check(&expect![[r#"
        0   mov eax, edi
        2   mov edi, edi
        4   cmp eax, 2h                            bounds check
        7   ja 103DFF2h                            bounds check
        9   mov rax, [rdi*8+10088B8h]
        11  ret                                    epilogue
        12  push rbp                               arguments
        13  mov rbp, rsp                           arguments
        16  mov esi, 3h                            arguments
        1b  call debug.FullPanic((function 'defaultPanic')).outOfBounds call
    "#]]);
}

// int sum(int a, int b) {
//     int c = a + b;
//     for (int i = 0; i < b; i++) c += a * i;
//     return c;
// }
// Without optimisation.
const UNOPTIMISED_CODE_LIVES_IN_ITS_FRAME: Fixture = Fixture {
    addr: 0x1659,
    code: "554889e5897dec8975e88b55ec8b45e801d08945fcc745f800000000eb0e8b45ec0faf45f80145fc8345\
        f8018b45f83b45e87cea8b45fc5dc3",
    ..C
};

#[test]
fn unoptimised_code_lives_in_its_frame() {
    let shape = UNOPTIMISED_CODE_LIVES_IN_ITS_FRAME.read().shape();
    assert_eq!((shape.functions, shape.spilling), (1, 1));
    assert_eq!((shape.instructions, shape.stack, shape.reloads), (20, 13, 2));
    // Zig's ReleaseSafe, which runs short of registers.
    let short = Fixture {
        code: "554889e54157415641554154534883ec58488d87081000004c8d9ffc07000048895580c3",
        ..C
    };
    assert_eq!(short.read().shape().spilling, 0);
    // The same compiler, optimising, with every register in use.
    let other = SAVED_REGISTERS_AND_ARGUMENTS_ARE_CALLING.read().shape();
    assert_eq!(other.spilling, 0);
    assert!(other.stack_share() < 0.1, "{other:?}");
}

// The swap of a heap of values with 304 bytes, as rustc compiles it: r15 holds a number, then the address of memcpy.
const VALUES_MOVED_BY_A_KEPT_POINTER: Fixture = Fixture {
    addr: 0,
    code: "41575341544989ff49c1e7054e8d243e4889d34c8b3d002000004885db742c4869c330010000498d3c04\
        488db73001000048833f0572074881c630010000ba3001000041ffd748ffcb75d4415c5b415fc3",
    names: &[(0x201a, "memcpy")],
    ..C
};

#[test]
fn a_call_through_a_register_that_held_another_value_before() {
    let role = |text: String| text.lines().find(|line| line.contains("call")).unwrap().to_owned();
    expect!["43  call r15                               copy 304, unknown to unknown"]
        .assert_eq(&role(VALUES_MOVED_BY_A_KEPT_POINTER.text()));
    // It is loaded from elsewhere on one of the ways: `mov r15, rdi` in the place of the addition.
    let code = VALUES_MOVED_BY_A_KEPT_POINTER.code.replace("4881c630010000", "4989ff0f1f4000");
    let other = Fixture { code: code.leak(), ..VALUES_MOVED_BY_A_KEPT_POINTER };
    expect!["43  call r15                               call"].assert_eq(&role(other.text()));
}
