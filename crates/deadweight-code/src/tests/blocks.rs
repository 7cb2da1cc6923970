//! Block instructions that copy structs, and loops that store zero here and there.

use super::{C, Fixture};
use expect_test::expect;

// struct huge { char v[2048]; };
// void pass(struct huge *h) { eat(*h); }
const A_STRUCT_PASSED_BY_VALUE: Fixture = Fixture {
    addr: 0x1280,
    code: "4881ec080800004889feb9000100004889e7f348a5e896fdffff4881c408080000c3",
    names: &[(0x1030, "eat@plt")],
    ..C
};

#[test]
fn a_struct_passed_by_value() {
    A_STRUCT_PASSED_BY_VALUE.check(&expect![[r#"
        0   sub rsp, 808h                          prologue
        7   mov rsi, rdi
        a   mov ecx, 100h
        f   mov rdi, rsp
        12  rep movsq [rdi], [rsi]                 copy 2048, unknown to frame
        15  call eat@plt                           call
        1a  add rsp, 808h                          epilogue
        21  ret                                    epilogue
    "#]]);
}

// struct big { char v[512]; }; void taken(struct big *b) { *where = *b; }
const A_STRUCT_COPIED_FROM_AN_ALIGNED_START: Fixture = Fixture {
    code: "488b0d00000000488b074889fe488901488b87f8010000488d79084883e7f8488981f80100004829f94829ce81c100020000c1e903f348a5c3",
    ..C
};

#[test]
fn a_struct_copied_from_an_aligned_start() {
    A_STRUCT_COPIED_FROM_AN_ALIGNED_START.check(&expect![[r#"
        0   mov rcx, [7h]
        7   mov rax, [rdi]
        a   mov rsi, rdi
        d   mov [rcx], rax
        10  mov rax, [rdi+1F8h]
        17  lea rdi, [rcx+8h]
        1b  and rdi, 0FFFFFFFFFFFFFFF8h
        1f  mov [rcx+1F8h], rax
        26  sub rcx, rdi
        29  sub rsi, rcx
        2c  add ecx, 200h
        32  shr ecx, 3h
        35  rep movsq [rdi], [rsi]                 copy 512, unknown to unknown
        38  ret                                    epilogue
    "#]]);
}

#[test]
fn stores_of_zero_that_leave_most_out_clear_no_memory() {
    // for (; i <= n; i += step) a[i] = 0; the step is in rdx, or is this constant.
    let roles = |step: &str, back: &str| {
        let code = format!("c6040100 {step} 4839f0 7e{back} c3");
        Fixture { code: code.leak(), ..C }.roles()
    };
    let clears = ["zeroing 1 a round, unknown to element"];
    assert_eq!(roles("4883c001", "f3")[..1], clears);
    assert_eq!(roles("4883c038", "f3")[..1], clears);
    // The multiples of a number; a column.
    assert_eq!(roles("4801d0", "f4"), ["epilogue"]);
    assert_eq!(roles("480500400000", "f1"), ["epilogue"]);
}
