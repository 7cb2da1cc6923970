//! x86-64 code in which a register holds the target of a call, its size, or its value. Not for other code; see `native`.

use super::{C, Fixture};
use expect_test::expect;

// memcpy(here, from, 816) in a loop; rustc and LLVM keep the pointer and the length in registers.
const A_COPY_THROUGH_REGISTERS: Fixture = Fixture {
    addr: 0x1000,
    code: "415641575341be300300004c8b3d001000004889fb4889de4889e74c89f241ffd7ffcd75f05b415f415ec3",
    names: &[(0x2012, "memcpy")],
    ..C
};

#[test]
fn a_copy_through_registers() {
    A_COPY_THROUGH_REGISTERS.check(&expect![[r#"
        0   push r14                               prologue
        2   push r15                               prologue
        4   push rbx                               prologue
        5   mov r14d, 330h
        b   mov r15, [2012h]
        12  mov rbx, rdi                           prologue
        15  mov rsi, rbx                           arguments
        18  mov rdi, rsp                           arguments
        1b  mov rdx, r14                           arguments
        1e  call r15                               copy 816, unknown to frame
        21  dec ebp
        23  jne 1015h
        25  pop rbx                                epilogue
        26  pop r15                                epilogue
        28  pop r14                                epilogue
        2a  ret                                    epilogue
    "#]]);
}

// memset(a, runs[i].value, n); memset(a, 0, n);
const A_BLOCK_SET_TO_WHAT_WAS_LOADED: Fixture = Fixture {
    addr: 0x102b,
    code: "0fb673084c89e74c89eae8c6f0ffff31f64c89e74c89eae8b9f0ffffc3",
    names: &[(0x100, "memset")],
    ..C
};

#[test]
fn a_block_set_to_a_loaded_value_is_not_zeroed() {
    A_BLOCK_SET_TO_WHAT_WAS_LOADED.check(&expect![[r#"
        0   movzx esi, byte ptr [rbx+8h]
        4   mov rdi, r12                           arguments
        7   mov rdx, r13                           arguments
        a   call memset                            filling
        f   xor esi, esi                           arguments
        11  mov rdi, r12                           arguments
        14  mov rdx, r13                           arguments
        17  call memset                            zeroing 0, unknown to unknown
        1c  ret                                    epilogue
    "#]]);
}

// for (i...) sum += cells[i] = m->scatter(cells[i], i & 15);
const A_VIRTUAL_CALL: Fixture = Fixture {
    addr: 0x1048,
    code: "4883ec18498b042489def30f10449d004c89e783e60fff5010f30f11449d00f30f58442408\
        4883c301f30f114424084881fb204e000075cc4883c418c3",
    ..C
};

#[test]
fn a_virtual_call_takes_its_table_and_what_it_would_lose() {
    A_VIRTUAL_CALL.check(&expect![[r#"
        0   sub rsp, 18h                           prologue
        4   mov rax, [r12]                         arguments
        8   mov esi, ebx
        a   movss xmm0, [rbp+rbx*4]
        10  mov rdi, r12
        13  and esi, 0Fh
        16  call qword ptr [rax+10h]               call
        19  movss [rbp+rbx*4], xmm0
        1f  addss xmm0, [rsp+8h]                   arguments
        25  add rbx, 1h
        29  movss [rsp+8h], xmm0                   arguments
        2f  cmp rbx, 4E20h
        36  jne 104Ch
        38  add rsp, 18h                           epilogue
        3c  ret                                    epilogue
    "#]]);
}

// v = new char[24000]; memcpy(v, from, 24000);
const A_COPY_INTO_FRESH_MEMORY: Fixture = Fixture {
    addr: 0x1085,
    code: "bfc05d0000e871f0ffff4889c7bac05d00004889dee861f1ffffc3",
    names: &[(0x100, "operator new(unsigned long)"), (0x200, "memcpy")],
    ..C
};

#[test]
fn a_copy_into_fresh_memory() {
    A_COPY_INTO_FRESH_MEMORY.check(&expect![[r#"
        0   mov edi, 5DC0h                         arguments
        5   call operator new(unsigned long)       call
        a   mov rdi, rax                           arguments
        d   mov edx, 5DC0h                         arguments
        12  mov rsi, rbx                           arguments
        15  call memcpy                            copy 24000, unknown to returned
        1a  ret                                    epilogue
    "#]]);
}
