//! Code of Go 1.26 for amd64. Not for other languages; see `native`.

use super::{Fixture, GO};
use expect_test::expect;

// func gather(t []uint64, ix []uint32) (s uint64) {
// 	for _, i := range ix { s += t[i] }
// 	return
// }
const AN_INDEX_OUT_OF_A_SLICE_IS_CHECKED: Fixture = Fixture {
    addr: 0x4893a0,
    code: "554889e5488944241048897c242831c931d2eb0c4a0314c048ffc10f1f4400004839ce7e0b448b048f4c\
        39c377e6eb054889d05dc3e8e63fffff90",
    names: &[(0x47d3c0, "runtime.panicBounds")],
    ..GO
};

#[test]
fn an_index_out_of_a_slice_is_checked() {
    AN_INDEX_OUT_OF_A_SLICE_IS_CHECKED.check(&expect![[r#"
        0   push rbp                               prologue
        1   mov rbp, rsp                           prologue
        4   mov [rsp+10h], rax                     prologue
        9   mov [rsp+28h], rdi                     prologue
        e   xor ecx, ecx
        10  xor edx, edx
        12  jmp 4893C0h
        14  add rdx, [rax+r8*8]
        18  inc rcx
        1b  nop dword ptr [rax+rax]
        20  cmp rsi, rcx
        23  jle 4893D0h
        25  mov r8d, [rdi+rcx*4]
        29  cmp rbx, r8                            bounds check of a loaded index
        2c  ja 4893B4h                             bounds check of a loaded index
        2e  jmp 4893D5h
        30  mov rax, rdx
        33  pop rbp                                epilogue
        34  ret                                    epilogue
        35  call runtime.panicBounds               call
        3a  nop
    "#]]);
}

// type Row struct { v [41]int64 }
// func rows(r []Row) (s int64) {
// 	for _, x := range r { s += x.v[3] + x.v[7] }
// 	return
// }
const RANGING_OVER_LARGE_ELEMENTS_COPIES_EACH: Fixture = Fixture {
    addr: 0x4893e0,
    code: "4c8da42430ffffff4d3b66100f868b000000554889e54881ec48010000488984245801000031c931d2eb\
        61488d34244889c741b805000000440f1030440f1136440f107010440f117610440f107020440f117620\
        440f107030440f1176304883c0404883c64041ffc875cd440f1070f8440f1176f8488b74241848037424\
        38488d87480100004801f248ffc14839cb7f9a4889d04881c4480100005dc3488944240848895c241048\
        894c2418e80f22ffff488b442408488b5c2410488b4c2418e93bffffff",
    names: &[(0x47b6a0, "runtime.morestack_noctxt.abi0")],
    ..GO
};

#[test]
fn ranging_over_large_elements_copies_each() {
    RANGING_OVER_LARGE_ELEMENTS_COPIES_EACH.check(&expect![[r#"
        0   lea r12, [rsp-0D0h]                    prologue
        8   cmp r12, [r14+10h]                     prologue
        c   jbe 48947Dh                            prologue
        12  push rbp                               prologue
        13  mov rbp, rsp                           prologue
        16  sub rsp, 148h                          prologue
        1d  mov [rsp+158h], rax                    prologue
        25  xor ecx, ecx
        27  xor edx, edx
        29  jmp 48946Ch
        2b  lea rsi, [rsp]
        2f  mov rdi, rax
        32  mov r8d, 5h
        38  movups xmm14, [rax]                    copy 320, pointer to frame
        3c  movups [rsi], xmm14                    copy 320, pointer to frame
        40  movups xmm14, [rax+10h]                copy 320, pointer to frame
        45  movups [rsi+10h], xmm14                copy 320, pointer to frame
        4a  movups xmm14, [rax+20h]                copy 320, pointer to frame
        4f  movups [rsi+20h], xmm14                copy 320, pointer to frame
        54  movups xmm14, [rax+30h]                copy 320, pointer to frame
        59  movups [rsi+30h], xmm14                copy 320, pointer to frame
        5e  add rax, 40h                           copy 320, pointer to frame
        62  add rsi, 40h                           copy 320, pointer to frame
        66  dec r8d                                copy 320, pointer to frame
        69  jne 489418h                            copy 320, pointer to frame
        6b  movups xmm14, [rax-8h]                 copy 16, pointer to frame
        70  movups [rsi-8h], xmm14                 copy 16, pointer to frame
        75  mov rsi, [rsp+18h]
        7a  add rsi, [rsp+38h]
        7f  lea rax, [rdi+148h]
        86  add rdx, rsi
        89  inc rcx
        8c  cmp rbx, rcx
        8f  jg 48940Bh
        91  mov rax, rdx
        94  add rsp, 148h                          epilogue
        9b  pop rbp                                epilogue
        9c  ret                                    epilogue
        9d  mov [rsp+8h], rax                      prologue
        a2  mov [rsp+10h], rbx                     prologue
        a7  mov [rsp+18h], rcx                     prologue
        ac  call runtime.morestack_noctxt.abi0     prologue
        b1  mov rax, [rsp+8h]                      prologue
        b6  mov rbx, [rsp+10h]                     prologue
        bb  mov rcx, [rsp+18h]                     prologue
        c0  jmp 4893E0h                            prologue
    "#]]);
}

// func clear9(to *[9]int64) { *to = [9]int64{} }
const AN_ARRAY_CLEARED: Fixture =
    Fixture { addr: 0x489500, code: "440f1138440f117810440f117820440f117830440f117838c3", ..GO };

#[test]
fn an_array_zeroed() {
    AN_ARRAY_CLEARED.check(&expect![[r#"
        0   movups [rax], xmm15                    zeroing 72, unknown to pointer
        4   movups [rax+10h], xmm15                zeroing 72, unknown to pointer
        9   movups [rax+20h], xmm15                zeroing 72, unknown to pointer
        e   movups [rax+30h], xmm15                zeroing 72, unknown to pointer
        13  movups [rax+38h], xmm15                zeroing 72, unknown to pointer
        18  ret                                    epilogue
    "#]]);
}

// func link(n *N, m *N) { n.next = m }
const A_POINTER_STORED_HAS_A_WRITE_BARRIER: Fixture = Fixture {
    addr: 0x489520,
    code: "493b66107623554889e58400833dcdcf0e0000740f488b08e8e33affff49891b49894b084889185dc348\
        8944240848895c2410e84821ffff488b442408488b5c2410ebbc",
    names: &[(0x47d020, "runtime.gcWriteBarrier2"), (0x47b6a0, "runtime.morestack_noctxt.abi0")],
    ..GO
};

#[test]
fn a_pointer_stored_has_a_write_barrier() {
    A_POINTER_STORED_HAS_A_WRITE_BARRIER.check(&expect![[r#"
        0   cmp rsp, [r14+10h]                     prologue
        4   jbe 489549h                            prologue
        6   push rbp                               prologue
        7   mov rbp, rsp                           prologue
        a   test [rax], al                         other check
        c   cmp dword ptr [576500h], 0h            write barrier
        13  je 489544h                             write barrier
        15  mov rcx, [rax]
        18  call runtime.gcWriteBarrier2           write barrier
        1d  mov [r11], rbx
        20  mov [r11+8h], rcx
        24  mov [rax], rbx
        27  pop rbp                                epilogue
        28  ret                                    epilogue
        29  mov [rsp+8h], rax                      prologue
        2e  mov [rsp+10h], rbx                     prologue
        33  call runtime.morestack_noctxt.abi0     prologue
        38  mov rax, [rsp+8h]                      prologue
        3d  mov rbx, [rsp+10h]                     prologue
        42  jmp 489520h                            prologue
    "#]]);
}
