//! Functions of real compilers as bytes, with their source, and the roles of their instructions; random bytes, which must
//! do no harm. Not for samples of a whole trace; see `machine_code`.

mod aarch64;
mod accumulators;
mod blocks;
mod go;
mod laws;
mod native;
mod registers;

use super::{Abi, Code, Function, Names, Role, Run};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;
use expect_test::Expect;

/// A function taken from a binary.
struct Fixture {
    arch: Arch,
    abi: Abi,
    addr: u64,
    /// Its bytes in hexadecimal.
    code: &'static str,
    /// Names of the addresses that it calls.
    names: &'static [(u64, &'static str)],
}

const C: Fixture =
    Fixture { arch: Arch::X86_64, abi: Abi::Platform, addr: 0, code: "", names: &[] };
const GO: Fixture = Fixture { abi: Abi::Go, ..C };
const ARM: Fixture = Fixture { arch: Arch::Aarch64, ..C };

impl Fixture {
    fn bytes(&self) -> Vec<u8> {
        hex(self.code)
    }

    fn name(&self, addr: FileAddr) -> Option<&'static str> {
        self.names.iter().find(|(at, _)| *at == addr.0).map(|(_, name)| *name)
    }

    fn read(&self) -> Function {
        let bytes = self.bytes();
        Function::read(&self.of(&bytes), &|addr| self.name(addr))
    }

    fn of<'a>(&self, bytes: &'a [u8]) -> Code<'a> {
        let addr = FileAddr(self.addr);
        Code { arch: self.arch, abi: self.abi, addr, bytes }
    }

    /// One line per instruction: its address, its text, and its role unless that is work.
    fn text(&self) -> String {
        let bytes = self.bytes();
        let (code, function) = (self.of(&bytes), self.read());
        let names: &Names<'_> = &|addr| self.name(addr);
        let mut out = String::new();
        for (i, role) in function.instructions.iter().zip(&function.roles) {
            let at = FileAddr(i.addr);
            let text = function.line(&code, names, i);
            let offset = at.0 - self.addr;
            out.push_str(format!("{offset:<3x} {text:38} {}", word(*role)).trim_end());
            out.push('\n');
        }
        out
    }

    fn check(&self, expected: &Expect) {
        expected.assert_eq(&self.text());
    }

    /// Every role but work, once, in order of first appearance.
    fn roles(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for role in self.read().roles.iter().map(|r| word(*r)).filter(|w| !w.is_empty()) {
            if !out.contains(&role) {
                out.push(role);
            }
        }
        out
    }
}

/// Bytes in hexadecimal, with or without blanks between them.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn word(role: Role) -> String {
    let run = |what: &str, run: Run| {
        let looped = if run.looped { " a round" } else { "" };
        format!("{what} {}{looped}, {:?} to {:?}", run.bytes, run.from, run.to).to_lowercase()
    };
    match role {
        Role::Work => String::new(),
        Role::Zeroing(r) => run("zeroing", r),
        Role::Copy(r) => run("copy", r),
        Role::BoundsCheck { after_load: true } => String::from("bounds check of a loaded index"),
        Role::BoundsCheck { after_load: false } => String::from("bounds check"),
        Role::OtherCheck => String::from("other check"),
        Role::WriteBarrier => String::from("write barrier"),
        Role::AccumulatorZeroing => String::from("accumulator zeroing"),
        role => format!("{role:?}").to_lowercase(),
    }
}
