//! Machine code of one function into a role for every instruction: what is work, and what is
//! zeroing, copying, checking, calling or locking on its behalf.
//!
//! [`Function::read`] takes the bytes and a way to name what is called; after that, a sampled
//! address is [charged](Function::charge) to the instruction that was waited for, which has a
//! [`Role`]. Bytes in, values out: which bytes and which names is sealing's business, what follows
//! from roles is that of the cost classes. Any bytes do, in time and memory in step with them.
//!
//! - [`instruction`]: our few words for what an instruction does.
//! - `x86`, `aarch64`: the only places that know an architecture.
//! - [`roles`]: the rules, one file per kind of role.
//! - [`loops`]: what runs with an instruction again and again.
//! - [`listing`]: the hottest run of instructions, for people.
//! - [`removal`]: which bytes to replace so that a cost is not paid, to try what it is worth.

#![forbid(unsafe_code)]

mod aarch64;
mod flow;
pub mod instruction;
pub mod listing;
pub mod loops;
pub mod machine_code;
mod probe_site;
pub mod removal;
pub mod roles;
mod sole;
pub mod symbol_role;
mod x86;

#[cfg(test)]
mod tests;

use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;
use instruction::{Instruction, Kind, Reg, Registers};
pub use listing::Line;
pub use loops::Loop;
pub use probe_site::probe_site;
pub use roles::{Place, Role, Run, Shape};
use sole::Sole;

/// The bytes of one function.
#[derive(Copy, Clone, Debug)]
pub struct Code<'a> {
    /// What machine they are for.
    pub arch: Arch,
    /// Whose calling convention they follow.
    pub abi: Abi,
    /// Address of the first byte.
    pub addr: FileAddr,
    /// From the function's entry to its end. What does not decode is kept as unknown.
    pub bytes: &'a [u8],
}

/// Whose calling convention code follows.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Abi {
    /// The platform's: System V on x86-64, AAPCS64 on aarch64. Rust's and Zig's own differ from
    /// it only in ways that no rule asks about.
    #[default]
    Platform,
    /// Go's internal one.
    Go,
}

impl Abi {
    /// The convention of code in `language`, as [`deadweight_trace::symbols::Image::language`] names it.
    #[must_use]
    pub fn of(language: &str) -> Self {
        if language == "Go" { Self::Go } else { Self::Platform }
    }
}

/// Names the code at an address, or behind a fixed pointer (an entry of the GOT) at it: the
/// function that the address lies in, not only the one that begins there.
pub type Names<'n> = dyn Fn(FileAddr) -> Option<&'n str> + 'n;

/// Whether the routine called `name` copies or zeroes memory, so that its caller's code tells how
/// much: the C library's and the languages' own.
#[must_use]
pub fn moves_blocks(name: &str) -> bool {
    roles::moves_blocks(name)
}

/// What registers are for.
#[derive(Copy, Clone, Debug)]
struct Convention {
    stack: Reg,
    frame: Reg,
    /// Holds the return address after a call.
    link: Option<Reg>,
    /// Where a block instruction writes, where it reads, and how many elements.
    block: Option<[Reg; 3]>,
    result: Reg,
    arguments: &'static [Reg],
    /// Kept across calls.
    saved: Registers,
    /// Is zero between functions.
    zero: Option<Reg>,
    /// Go's current goroutine.
    goroutine: Option<Reg>,
}

/// A function's instructions with a role each.
#[derive(Clone, Debug)]
pub struct Function {
    instructions: Vec<Instruction>,
    roles: Vec<Role>,
    /// Whether a jump or branch of this function comes in here; true for the entry.
    entered: Vec<bool>,
    shape: Shape,
    /// What it calls in rare cases, if it is small.
    small: Option<Vec<Instruction>>,
}

impl Function {
    /// Decodes `code` and finds a role for every instruction.
    #[must_use]
    pub fn read(code: &Code<'_>, names: &Names<'_>) -> Self {
        let (convention, instructions) = match code.arch {
            Arch::X86_64 => (x86::convention(code.abi), x86::decode(code.bytes, code.addr.0)),
            Arch::Aarch64 => {
                (aarch64::convention(code.abi), aarch64::decode(code.bytes, code.addr.0))
            }
        };
        let entered = entered(&instructions);
        let sole = Sole::of(&instructions, convention.saved);
        let body = Body { instructions: &instructions, entered: &entered, convention, names, sole };
        let roles = roles::find(&body);
        let shape = roles::shape(&body);
        let small = roles::calls_of_small(&body);
        Self { instructions, roles, entered, shape, small }
    }

    /// The instructions, in order of address.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// A role for each of [`Function::instructions`].
    #[must_use]
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// How the code looks as a whole: optimised or not.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether calling it costs about as much as running it: a few dozen instructions without a
    /// loop that call nothing but panics. Then what it calls beyond a branch, if anything: it is
    /// small only if that happens rarely, which the code does not tell.
    #[must_use]
    pub fn calls_if_small(&self) -> Option<&[Instruction]> {
        self.small.as_deref()
    }

    /// How many of its instructions are there for anything but being called, and calling.
    #[must_use]
    pub fn work_instructions(&self) -> usize {
        use Role::{Arguments, Call, Epilogue, Prologue};
        let working = |(i, role): &(&Instruction, &Role)| {
            !matches!(role, Prologue | Epilogue | Arguments | Call)
                && !matches!(i.kind, Kind::Nop | Kind::Trap | Kind::Unknown)
        };
        self.instructions.iter().zip(&self.roles).filter(working).count()
    }

    /// Whether it writes single bytes behind a pointer. In C and C++ these may be bytes of anything,
    /// so that whoever inlines it still loads everything else again.
    #[must_use]
    pub fn writes_bytes(&self) -> bool {
        let byte = |m: instruction::Memory| m.size == 1 && m.written && m.base.is_some();
        let at_work = |role: &Role| !matches!(role, Role::Prologue | Role::Arguments);
        let with_roles = self.instructions.iter().zip(&self.roles);
        with_roles.into_iter().any(|(i, role)| at_work(role) && i.memory.is_some_and(byte))
    }

    /// The calls within `reach` instructions of the one at `addr`, nearest first.
    pub fn calls_near(&self, addr: FileAddr, reach: usize) -> impl Iterator<Item = &Instruction> {
        let at = find(&self.instructions, addr.0);
        let range = at.map_or(0..0, |at| {
            at.saturating_sub(reach)..self.instructions.len().min(at.saturating_add(reach + 1))
        });
        let mut calls: Vec<&Instruction> =
            self.instructions[range].iter().filter(|i| matches!(i.kind, Kind::Call(_))).collect();
        calls.sort_by_key(|call| call.addr.abs_diff(addr.0));
        calls.into_iter()
    }

    /// The instruction that a sample at `ip` waited for.
    ///
    /// A sampling interrupt comes between instructions: the one at `ip` has not begun, the one
    /// before it took the time. Where `ip` is also reached by a jump, which came before is not
    /// known, and `ip` itself is charged; the same at the entry, outside the function, and for an
    /// instruction that moves a block, which an interrupt divides.
    #[must_use]
    pub fn charge(&self, ip: FileAddr) -> FileAddr {
        self.charged(ip).map_or(ip, |i| FileAddr(self.instructions[i].addr))
    }

    /// The role of the instruction that a sample at `ip` waited for; none outside the function. Before the
    /// first one that was the call, unless a jump of its own comes back there.
    #[must_use]
    pub fn role_of_sample(&self, ip: FileAddr) -> Option<Role> {
        let charged = self.charged(ip)?;
        let first = self.instructions[charged].addr;
        let was_called = charged == 0
            && ip.0 == first
            && !self.resumes(0)
            && self.instructions.iter().all(|i| i.target() != Some(first));
        Some(if was_called { Role::Prologue } else { self.roles[charged] })
    }

    /// The role of the instruction at `addr` itself: of a call, for those who know the callee.
    #[must_use]
    pub fn role_at(&self, addr: FileAddr) -> Option<Role> {
        find(&self.instructions, addr.0).map(|i| self.roles[i])
    }

    fn charged(&self, ip: FileAddr) -> Option<usize> {
        let i = find(&self.instructions, ip.0)?;
        let stay = self.entered[i]
            || i == 0
            || self.resumes(i)
            || !self.instructions[i - 1].falls_through();
        Some(if stay { i } else { i - 1 })
    }

    /// Whether an interrupt may divide the instruction.
    fn resumes(&self, i: usize) -> bool {
        matches!(self.instructions[i].kind, Kind::CopyBlock | Kind::FillBlock)
    }
}

/// What the rules look at.
struct Body<'a, 'n> {
    instructions: &'a [Instruction],
    entered: &'a [bool],
    convention: Convention,
    names: &'a Names<'n>,
    sole: Sole,
}

impl Body<'_, '_> {
    /// The name of what an instruction calls or jumps to.
    fn callee(&self, instruction: &Instruction) -> Option<&str> {
        let through = || self.sole.pointer(self.instructions, self.at(instruction.addr)?);
        (self.names)(FileAddr(instruction.callee().or_else(through)?))
    }

    /// The instruction that begins at `addr`.
    fn at(&self, addr: u64) -> Option<usize> {
        self.instructions.binary_search_by_key(&addr, |i| i.addr).ok()
    }

    /// Whether straight-line code begins at instruction `i`.
    fn begins_block(&self, i: usize) -> bool {
        self.entered[i] || self.instructions[i - 1].ends_block()
    }

    /// Straight-line stretches as ranges of indexes; calls do not end one.
    fn blocks(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut start = 0;
        std::iter::from_fn(move || {
            let count = self.instructions.len();
            (start < count).then(|| {
                let end = (start + 1..count).find(|i| self.begins_block(*i)).unwrap_or(count);
                std::mem::replace(&mut start, end)..end
            })
        })
    }
}

/// The instruction that `addr` lies in.
fn find(instructions: &[Instruction], addr: u64) -> Option<usize> {
    let i = instructions.partition_point(|i| i.addr <= addr).checked_sub(1)?;
    (addr < instructions[i].end()).then_some(i)
}

fn entered(instructions: &[Instruction]) -> Vec<bool> {
    let mut entered = vec![false; instructions.len()];
    if let Some(first) = entered.first_mut() {
        *first = true;
    }
    for target in instructions.iter().filter_map(Instruction::target) {
        if let Ok(i) = instructions.binary_search_by_key(&target, |i| i.addr) {
            entered[i] = true;
        }
    }
    entered
}

/// Whether an instruction hands control to another function for good.
fn leaves(body: &Body<'_, '_>, instruction: &Instruction) -> bool {
    match instruction.kind {
        Kind::Return => true,
        Kind::Jump(Some(target)) => body.at(target).is_none(),
        _ => false,
    }
}
