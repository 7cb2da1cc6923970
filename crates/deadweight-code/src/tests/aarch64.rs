//! aarch64 code of Clang (Zig 0.14's, `-O2`) and Go 1.26. Not for x86-64; see the files beside this one.

use super::{ARM, Fixture};
use crate::Abi;
use expect_test::expect;

const GO: Fixture = Fixture { abi: Abi::Go, ..ARM };

// struct big { long v[12]; };
// void by_value(struct big *to, const struct big *from) { *to = *from; }
const A_STRUCT_COPIED_IN_PAIRS: Fixture = Fixture {
    addr: 0x1076c,
    code: "210040ad010000ad210042ad220c41ad010002ad020c01adc0035fd6",
    ..ARM
};

#[test]
fn a_struct_copied_in_pairs() {
    A_STRUCT_COPIED_IN_PAIRS.check(&expect![[r#"
        0   ldp q1, q0, [x1]                       copy 96, pointer to pointer
        4   stp q1, q0, [x0]                       copy 96, pointer to pointer
        8   ldp q1, q0, [x1, #0x40]                copy 96, pointer to pointer
        c   ldp q2, q3, [x1, #0x20]                copy 96, pointer to pointer
        10  stp q1, q0, [x0, #0x40]                copy 96, pointer to pointer
        14  stp q2, q3, [x0, #0x20]                copy 96, pointer to pointer
        18  ret                                    epilogue
    "#]]);
}

// struct small { long v[4]; };
// void kept(struct small *to, const struct small *from) { *to = *from; }
const TWO_PAIRS_ARE_NO_COPY_RUN: Fixture =
    Fixture { addr: 0x10788, code: "210040ad010000adc0035fd6", ..ARM };

#[test]
fn two_pairs_are_no_copy_run() {
    assert_eq!(TWO_PAIRS_ARE_NO_COPY_RUN.roles(), ["epilogue"]);
}

// void bytes(char *restrict to, const char *restrict from, long n) {
//     for (long i = 0; i < n; i++) to[i] = from[i];
// }
const LOOPS_THAT_ONLY_COPY: Fixture = Fixture {
    addr: 0x107c4,
    code: "5f0400f1cb0400545f2000f162000054e8031faa1b0000145f4000f1c2010054e8031faaeb0308aa48ec\
        7d9229000b8b0a000b8b6b0108cb208540fc6b2100b1408500fca1ffff541f0102eba101005413000014\
        48e87c92ea0300aaeb0301aae90308aa6005c13c294100f14005813ca1ffff541f0102eb2001005442fd\
        1f37490008cb0a00088b2800088b0b154038290500f14b150038a1ffff54c0035fd6",
    ..ARM
};

#[test]
fn loops_that_only_copy() {
    assert_eq!(
        LOOPS_THAT_ONLY_COPY.roles(),
        [
            "copy 8 a round, pointer to pointer",
            "copy 16 a round, pointer to pointer",
            "copy 1 a round, pointer to pointer",
            "epilogue"
        ]
    );
}

// void scaled(int *restrict to, const int *restrict from, long n) {
//     for (long i = 0; i < n; i++) to[i] = from[i] * 3;
// }
const A_LOOP_THAT_COMPUTES_IS_WORK: Fixture = Fixture {
    addr: 0x10864,
    code: "5f0400f14b0300545f0c00f168000054e8031faa0d0000146004004f48f07e92ea0300aae90308aaeb03\
        01aa6105c13c291100f1219ca04e4105813c81ffff541f0102eb400100540af57ed3480008cb09000a8b\
        2a000a8b4b4540b8080500f16b050b0b2b4500b881ffff54c0035fd6",
    ..ARM
};

#[test]
fn a_loop_that_computes_is_work() {
    assert_eq!(A_LOOP_THAT_COMPUTES_IS_WORK.roles(), ["epilogue"]);
}

// void zeroes(int *to, long n) { for (long i = 0; i < n; i++) to[i] = 0; }
const LOOPS_THAT_ONLY_ZERO: Fixture = Fixture {
    addr: 0x108d4,
    code: "3f0400f14b0200543f0c00f168000054e8031faa0900001428f07e92ea0300aae90308aa291100f15f7d\
        81a8c1ffff541f0101ebc00000540908088b280008cb080500f13f4500b8c1ffff54c0035fd6",
    ..ARM
};

#[test]
fn loops_that_only_zero() {
    LOOPS_THAT_ONLY_ZERO.check(&expect![[r#"
        0   cmp x1, #0x1
        4   b.lt 0x10920
        8   cmp x1, #0x3
        c   b.hi 0x108ec
        10  mov x8, xzr
        14  b 0x1090c
        18  and x8, x1, #0x7ffffffffffffffc
        1c  mov x10, x0
        20  mov x9, x8
        24  subs x9, x9, #0x4                      zeroing 16 a round, unknown to pointer
        28  stp xzr, xzr, [x10], #0x10             zeroing 16 a round, unknown to pointer
        2c  b.ne 0x108f8                           zeroing 16 a round, unknown to pointer
        30  cmp x8, x1
        34  b.eq 0x10920
        38  add x9, x0, x8, lsl #2
        3c  sub x8, x1, x8
        40  subs x8, x8, #0x1                      zeroing 4 a round, unknown to pointer
        44  str wzr, [x9], #0x4                    zeroing 4 a round, unknown to pointer
        48  b.ne 0x10914                           zeroing 4 a round, unknown to pointer
        4c  ret                                    epilogue
    "#]]);
}

// long saves(long a, long b, long c, long d, long e, long f) {
//     long x = g(a, b, c, d, e, f);
//     long y = g(b, c, d, e, f, a);
//     return x * y + a + b + c + d + e + f;
// }
const SAVED_REGISTERS_AND_ARGUMENTS_ARE_CALLING: Fixture = Fixture {
    addr: 0x10a70,
    code: "fd7bbba9f90b00f9f85f02a9f65703a9f44f04a9fd030091f30305aaf40304aaf50303aaf60302aaf703\
        01aaf80300aa38000094f90300aae00317aae10316aae20315aae30314aae40313aae50318aa30000094\
        e802188bc902158b0801098b8902138b0801098b0020199bf44f44a9f90b40f9f65743a9f85f42a9fd7b\
        c5a8c0035fd6",
    ..ARM
};

#[test]
fn saved_registers_and_arguments_are_calling() {
    SAVED_REGISTERS_AND_ARGUMENTS_ARE_CALLING.check(&expect![[r#"
        0   stp x29, x30, [sp, #-0x50]!            prologue
        4   str x25, [sp, #0x10]                   prologue
        8   stp x24, x23, [sp, #0x20]              prologue
        c   stp x22, x21, [sp, #0x30]              prologue
        10  stp x20, x19, [sp, #0x40]              prologue
        14  mov x29, sp                            prologue
        18  mov x19, x5                            prologue
        1c  mov x20, x4                            prologue
        20  mov x21, x3                            prologue
        24  mov x22, x2                            prologue
        28  mov x23, x1                            prologue
        2c  mov x24, x0                            prologue
        30  bl 0x10b80                             call
        34  mov x25, x0                            arguments
        38  mov x0, x23                            arguments
        3c  mov x1, x22                            arguments
        40  mov x2, x21                            arguments
        44  mov x3, x20                            arguments
        48  mov x4, x19                            arguments
        4c  mov x5, x24                            arguments
        50  bl 0x10b80                             call
        54  add x8, x23, x24
        58  add x9, x22, x21
        5c  add x8, x8, x9
        60  add x9, x20, x19
        64  add x8, x8, x9
        68  madd x0, x0, x25, x8
        6c  ldp x20, x19, [sp, #0x40]              epilogue
        70  ldr x25, [sp, #0x10]                   epilogue
        74  ldp x22, x21, [sp, #0x30]              epilogue
        78  ldp x24, x23, [sp, #0x20]              epilogue
        7c  ldp x29, x30, [sp], #0x50              epilogue
        80  ret                                    epilogue
    "#]]);
}

// void count(long *n) { __atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST); }
const EXCLUSIVE_LOADS_AND_STORES_ARE_ATOMIC: Fixture =
    Fixture { addr: 0x10af4, code: "08fc5fc80805009108fc09c8a9ffff35c0035fd6", ..ARM };

#[test]
fn exclusive_loads_and_stores_are_atomic() {
    EXCLUSIVE_LOADS_AND_STORES_ARE_ATOMIC.check(&expect![[r#"
        0   ldaxr x8, [x0]                         atomic
        4   add x8, x8, #0x1
        8   stlxr w9, x8, [x0]                     atomic
        c   cbnz w9, 0x10af4
        10  ret                                    epilogue
    "#]]);
}

// func gather(t []uint64, ix []uint32) (s uint64) {
// 	for _, i := range ix { s += t[i] }
// 	return
// }
const GO_CHECKS_ITS_STACK_AND_AN_INDEX: Fixture = Fixture {
    addr: 0x93240,
    code: "900b40f9ff6330eb09030054fe0f1ff8fd831ff8fd2300d1e00f00f9e31b00f9e2031faae5031faa0400\
        0014067866f8a500068b420400919f0002ebad000054667862b83f0006eb28ffff5405000014e00305aa\
        fd835ff8fe0741f8c0035fd66cd3ff971f2003d5e08700a9e28f01a9e49702a9e3031eaaf2caff97e087\
        40a9e28f41a9e49742a9deffff1700000000",
    names: &[(0x88050, "runtime.panicBounds"), (0x85e80, "runtime.morestack_noctxt.abi0")],
    ..GO
};

#[test]
fn go_checks_its_stack_and_an_index() {
    GO_CHECKS_ITS_STACK_AND_AN_INDEX.check(&expect![[r#"
        0   ldr x16, [x28, #0x10]                  prologue
        4   cmp sp, x16                            prologue
        8   b.ls 0x932a8                           prologue
        c   str x30, [sp, #-0x10]!                 prologue
        10  stur x29, [sp, #-0x8]                  prologue
        14  sub x29, sp, #0x8                      prologue
        18  str x0, [sp, #0x18]                    prologue
        1c  str x3, [sp, #0x30]                    prologue
        20  mov x2, xzr
        24  mov x5, xzr
        28  b 0x93278
        2c  ldr x6, [x0, x6, lsl #3]
        30  add x5, x5, x6
        34  add x2, x2, #0x1
        38  cmp x4, x2
        3c  b.le 0x93290
        40  ldr w6, [x3, x2, lsl #2]
        44  cmp x1, x6                             bounds check of a loaded index
        48  b.hi 0x9326c                           bounds check of a loaded index
        4c  b 0x932a0
        50  mov x0, x5
        54  ldur x29, [sp, #-0x8]                  epilogue
        58  ldr x30, [sp], #0x10                   epilogue
        5c  ret                                    epilogue
        60  bl runtime.panicBounds                 call
        64  nop
        68  stp x0, x1, [sp, #0x8]                 prologue
        6c  stp x2, x3, [sp, #0x18]                prologue
        70  stp x4, x5, [sp, #0x28]                prologue
        74  mov x3, x30                            prologue
        78  bl runtime.morestack_noctxt.abi0       prologue
        7c  ldp x0, x1, [sp, #0x8]                 prologue
        80  ldp x2, x3, [sp, #0x18]                prologue
        84  ldp x4, x5, [sp, #0x28]                prologue
        88  b 0x93240                              prologue
        8c  udf #0x0
    "#]]);
}

// func clear9(to *[9]int64) { *to = [9]int64{} }
const GO_CLEARS_AN_ARRAY: Fixture = Fixture {
    addr: 0x933b0,
    code: "1f7c00a91f7c01a91f7c02a91f7c03a91f2000f9c0035fd60000000000000000",
    ..GO
};

#[test]
fn go_clears_an_array() {
    GO_CLEARS_AN_ARRAY.check(&expect![[r#"
        0   stp xzr, xzr, [x0]                     zeroing 72, unknown to pointer
        4   stp xzr, xzr, [x0, #0x10]              zeroing 72, unknown to pointer
        8   stp xzr, xzr, [x0, #0x20]              zeroing 72, unknown to pointer
        c   stp xzr, xzr, [x0, #0x30]              zeroing 72, unknown to pointer
        10  str xzr, [x0, #0x40]                   zeroing 72, unknown to pointer
        14  ret                                    epilogue
        18  udf #0x0
        1c  udf #0x0
    "#]]);
}
