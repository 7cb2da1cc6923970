//! Functions of real compilers with a cost removed: the text before and after. Not for running them.

use super::*;
use crate::tests::hex;
use expect_test::{Expect, expect};

/// A function from a binary, with names of the addresses that it calls.
struct Case {
    abi: Abi,
    addr: u64,
    code: &'static str,
    names: &'static [(u64, &'static str)],
}

impl Case {
    fn name(&self, addr: FileAddr) -> Option<&'static str> {
        self.names.iter().find(|(at, _)| *at == addr.0).map(|(_, name)| *name)
    }

    fn bytes(&self) -> Vec<u8> {
        hex(self.code)
    }

    /// Removes something, and shows each patch: the instructions before and after.
    fn check(
        &self,
        remove: impl Fn(&Code<'_>, &Names<'_>) -> Result<Vec<Patch>, Obstacle>,
        expected: &Expect,
    ) {
        let bytes = self.bytes();
        let addr = FileAddr(self.addr);
        let code = Code { arch: Arch::X86_64, abi: self.abi, addr, bytes: &bytes };
        let mut out = String::new();
        match remove(&code, &|addr| self.name(addr)) {
            Ok(patches) => {
                for patch in patches {
                    let at = usize::try_from(patch.addr.0 - self.addr).unwrap();
                    assert_eq!(bytes[at..at + patch.becomes.len()], patch.was);
                    let [was, becomes] = [&patch.was, &patch.becomes].map(|b| text(b, patch.addr));
                    out.push_str(&format!("{:x}  {was:28}  {becomes}\n", patch.addr.0));
                }
            }
            Err(obstacle) => out = format!("{obstacle}\n"),
        }
        expected.assert_eq(&out);
    }
}

/// Instructions in one line.
fn text(bytes: &[u8], addr: FileAddr) -> String {
    let code = Code { arch: Arch::X86_64, abi: Abi::Platform, addr, bytes };
    let one = |i: &Instruction| decode::text(&code, i.addr).unwrap();
    decode::instructions(&code).iter().map(one).collect::<Vec<_>>().join("; ")
}

const C: Case = Case { abi: Abi::Platform, addr: 0, code: "", names: &[(0x100, "memset")] };

#[test]
fn a_removed_call_of_memset_keeps_its_result() {
    // char *clear(char *p, unsigned long n) { char *q = memset(p, 0, n); q[1] = 2; return q + 1; }
    let code = "4883ec08 4889f2 31f6 e8f2000000 c6400102 4883c001 4883c408 c3";
    let case = Case { code, ..C };
    case.check(
        |code, names| without_fill(code, names, FileAddr(0xd)),
        &expect![[r#"
            9  call 100h                     mov rax, rdi; nop
        "#]],
    );
    let secret = Case { names: &[(0x100, "explicit_bzero")], ..case };
    secret.check(
        |code, names| without_fill(code, names, FileAddr(9)),
        &expect![[r#"
            it is not a call of a routine that only fills memory
        "#]],
    );
}

#[test]
fn a_removed_tail_call_of_memset_returns() {
    // void *clear(void *p, unsigned long n) { return memset(p, 0, n); }
    let case = Case { code: "4889f2 31f6 e9f6000000", ..C };
    case.check(
        |code, names| without_fill(code, names, FileAddr(5)),
        &expect![[r#"
            5  jmp 100h                      mov rax, rdi; ret; nop
        "#]],
    );
}

#[test]
fn a_block_fill_is_removed_if_its_registers_are_unused() {
    // `struct msg m = {0};` of 8 KiB by gcc 12 -O2, in a function that reads a message.
    let parse = Case {
        addr: 0x1000,
        code: "4881ec082000004889fe31c0b9000400004889e7f348ab4889e7e80000\
         00008b142489d0c1e81f01d0d1f848980fbe4404044881c408200000c3",
        ..C
    };
    parse.check(
        |code, names| without_fill(code, names, FileAddr(0x1014)),
        &expect![[r#"
            1014  rep stosq [rdi], rax          xor ecx, ecx; nop
        "#]],
    );
    // The same, but the end is stored to: mov [rdi], al.
    let used = Case { code: "31c0 b940000000 4889e7 f348ab 8807 8b4c2408 c3", ..C };
    used.check(
        |code, names| without_fill(code, names, FileAddr(0xb)),
        &expect![[r#"
            later instructions use the address that it leaves in a register
        "#]],
    );
}

#[test]
fn gos_routine_has_no_result() {
    // call runtime.memclrNoHeapPointers; mov rax, [rsp]; ret
    let case = Case {
        abi: Abi::Go,
        code: "e8fb000000 488b0424 c3",
        names: &[(0x100, "runtime.memclrNoHeapPointers")],
        ..C
    };
    case.check(
        |code, names| without_fill(code, names, FileAddr(0)),
        &expect![[r#"
            0  call 100h                     nop dword ptr [rax+rax]
        "#]],
    );
}

#[test]
fn the_checks_of_a_loop_are_removed_with_their_compares() {
    // main.step of tests/programs/stencil.go.
    let case = Case {
        abi: Abi::Go,
        addr: 0x49e1a0,
        code: "
        554889e5488944241048897c2428b901000000eb0348ffc1498d52ff0f1f40004839d17d75ba01000000eb0a46
        891caf48ffc24c89c14d8d41ff4c39c27dd64989c8490fafc94c8d1c0a4d8d5bff4c8d24114c39db765d488d0c
        0a488d4901468b1c984839cb76474d89e54d29cc44031c884c39e376334b8d0c2946031ca0904839cb76204403
        1c88428b0ca8c1e1024129cb4c39ee7794eb025dc30f1f4000e8fb13feffe8f613feffe8f113feffe8ec13feff
        e8e713feff90",
        names: &[(0x47f640, "runtime.panicBounds")],
    };
    case.check(
        |code, names| {
            let function = Function::read(code, names);
            without_checks(code, names, &function.loop_around(FileAddr(0x49e206)).unwrap())
        },
        &expect![[r#"
            49e1f2  cmp rbx, r11                  nop dword ptr [rax]
            49e1f5  jbe 49E254h                   nop
            49e203  cmp rbx, rcx                  nop dword ptr [rax]
            49e206  jbe 49E24Fh                   nop
            49e212  cmp rbx, r12                  nop dword ptr [rax]
            49e215  jbe 49E24Ah                   nop
            49e220  cmp rbx, rcx                  nop dword ptr [rax]
            49e223  jbe 49E245h                   nop
            49e233  cmp rsi, r13                  nop dword ptr [rax]
            49e236  ja 49E1CCh                    jmp 49E1CCh
        "#]],
    );
    case.check(
        without_locks,
        &expect![[r#"
        its instructions cannot be replaced by others of the same length
    "#]],
    );
}

#[test]
fn a_check_that_jumps_over_its_panic_always_does() {
    // 0: cmp rax, rsi; 3: jb 0ch; 5: call panic; a: ud2; c: add rdx, [rdi+rax*8]; 10: inc rax;
    // 13: cmp rax, rcx; 16: jb 0; 18: ret
    let case = Case {
        code: "4839f0 7207 e8f6000000 0f0b 480314c7 48ffc0 4839c8 72e8 c3",
        names: &[(0x100, "core::panicking::panic_bounds_check")],
        ..C
    };
    case.check(
        |code, names| {
            let function = Function::read(code, names);
            without_checks(code, names, &function.loop_around(FileAddr(0)).unwrap())
        },
        &expect![[r#"
            0  cmp rax, rsi                  nop dword ptr [rax]
            3  jb 0Ch                        jmp 0Ch
        "#]],
    );
}

#[test]
fn locks_go_and_nothing_else_does() {
    // lock add qword [rdi], 1; lock xadd [rdi+8], eax; xchg [rdi], eax; ret
    let case = Case { code: "f048830701 f00fc14708 8707 c3", ..C };
    case.check(
        without_locks,
        &expect![[r#"
        0  lock add qword ptr [rdi], 1h  add qword ptr ds:[rdi], 1h
        5  lock xadd [rdi+8h], eax       xadd ds:[rdi+8h], eax
    "#]],
    );
}

#[test]
fn other_machines_are_not_written_for() {
    let code = Code {
        arch: Arch::Aarch64,
        abi: Abi::Platform,
        addr: FileAddr(0),
        bytes: &[0xc0, 0x03, 0x5f, 0xd6],
    };
    assert_eq!(without_locks(&code, &|_| None), Err(Obstacle::Architecture));
    assert_eq!(without_fill(&code, &|_| None, FileAddr(0)), Err(Obstacle::Architecture));
}
