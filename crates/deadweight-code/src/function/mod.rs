//! A function: its instructions, each with a role, and what a sampled address is charged to.
//!
//! - In: the bytes of a function and names for what it calls.
//! - Out: roles, loops ([`loops`](self::loops)), listings ([`listing`](self::listing)), sizes.
//! - Must not know: traces or samples as such; `machine_code` joins both.

mod chain;
mod decided;
pub(crate) mod graph;
pub(crate) mod listing;
pub(crate) mod loops;
mod nest;
pub(crate) mod search;
pub(crate) mod steps;
pub(crate) mod turns;
mod ways;

use crate::body::{Body, entered, find};
use crate::code::{Code, Names};
use crate::decode;
use crate::instruction::{Instruction, Kind, Memory};
use crate::roles::{self, Role, RolesFor, Shape};
use crate::single_assignment::SingleAssignment;
use deadweight_trace::units::FileAddr;
use nest::NaturalLoop;
use std::sync::OnceLock;

/// A function's instructions with a role each.
#[derive(Clone, Debug)]
pub struct Function {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) roles: Vec<Role>,
    /// Whether each instruction is the target of a jump or branch of this function; true for the entry.
    pub(crate) entered: Vec<bool>,
    shape: Shape,
    /// Whether its first instruction is also where it starts again, once its stack has grown.
    resumes: bool,
    /// Its calls in rare cases, if it is small.
    small: Option<Vec<Instruction>>,
    /// Its natural loops, once they are asked for.
    natural_loops: OnceLock<Vec<NaturalLoop>>,
}

impl Function {
    /// Decodes `code` and finds a role for every instruction.
    #[must_use]
    pub fn read(code: &Code<'_>, names: &Names<'_>) -> Self {
        Self::with(code, names, |body, function| {
            function.roles = roles::find(body);
            function.shape = roles::shape(body);
            function.small = roles::calls_of_small(body);
        })
    }

    /// The same with these roles only, without its shape, and without knowing whether it is small.
    pub(crate) fn read_for(code: &Code<'_>, names: &Names<'_>, wanted: RolesFor) -> Self {
        Self::with(code, names, |body, function| {
            function.roles = roles::find_for(body, wanted);
        })
    }

    /// Its shape only.
    pub(crate) fn read_shape(code: &Code<'_>) -> Shape {
        Self::with(code, &|_| None, |body, function| function.shape = roles::shape(body)).shape
    }

    /// Whether it may spill its arguments at entry: false where [`Shape::is_spilling`] would say so.
    pub(crate) fn may_spill(code: &Code<'_>) -> bool {
        let mut entry = Vec::with_capacity(roles::ENTRY);
        decode::search(code, |instruction| {
            entry.push(instruction);
            (entry.len() == roles::ENTRY).then_some(())
        });
        roles::spills_arguments(&entry, &decode::convention(code))
    }

    /// Whether it is small only: see [`Function::calls_if_small`].
    pub(crate) fn read_small(code: &Code<'_>, names: &Names<'_>) -> Self {
        Self::with(code, names, |body, function| function.small = roles::calls_of_small(body))
    }

    fn with(
        code: &Code<'_>,
        names: &Names<'_>,
        find: impl FnOnce(&Body<'_, '_>, &mut Self),
    ) -> Self {
        let convention = decode::convention(code);
        let instructions = decode::instructions(code);
        let entered = entered(&instructions);
        let single = SingleAssignment::of(&instructions, convention.saved);
        let mut function = Self {
            instructions: Vec::new(),
            roles: Vec::new(),
            entered: Vec::new(),
            shape: Shape::default(),
            resumes: convention.goroutine.is_some(),
            small: None,
            natural_loops: OnceLock::new(),
        };
        let body =
            Body { instructions: &instructions, entered: &entered, convention, names, single };
        find(&body, &mut function);
        Self { instructions, entered, ..function }
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

    /// For each of [`Function::instructions`] how many natural loops are around it.
    #[must_use]
    pub fn loop_depths(&self) -> Vec<u32> {
        nest::depths(&self.instructions, &self.entered, self.resumes)
    }

    /// Its natural loops.
    pub(crate) fn natural_loops(&self) -> &[NaturalLoop] {
        let find = || nest::loops(&self.instructions, &self.entered, self.resumes);
        self.natural_loops.get_or_init(find)
    }

    /// Properties of the code as a whole, which show whether it is optimised.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// None if it is not small. Small: a call costs about as much as the function's own instructions, which are a few
    /// dozen, without a loop, and call nothing but panics. Then the result is its calls behind a branch: it is small
    /// only if these are rare, which the code does not show.
    #[must_use]
    pub fn calls_if_small(&self) -> Option<&[Instruction]> {
        self.small.as_deref()
    }

    /// The number of instructions that serve neither its own call nor other calls.
    #[must_use]
    pub fn work_instructions(&self) -> usize {
        use Role::{Arguments, Call, Epilogue, Prologue};
        let working = |(i, role): &(&Instruction, &Role)| {
            !matches!(role, Prologue | Epilogue | Arguments | Call)
                && !matches!(i.kind, Kind::Nop | Kind::Trap | Kind::Unknown)
        };
        self.instructions.iter().zip(&self.roles).filter(working).count()
    }

    /// Whether it writes single bytes through a pointer. In C and C++ these may alias anything: even inlined, everything
    /// else must be loaded again.
    #[must_use]
    pub fn writes_bytes(&self) -> bool {
        let byte = |m: Memory| m.size == 1 && m.written && m.base.is_some();
        let at_work = |role: &Role| !matches!(role, Role::Prologue | Role::Arguments);
        let with_roles = self.instructions.iter().zip(&self.roles);
        with_roles.into_iter().any(|(i, role)| at_work(role) && i.memory.is_some_and(byte))
    }

    /// Whether it changes a value at a place in memory that its next call may read, such as a sum: then a call may have to
    /// wait for the store of the one before, and so does the inlined code unless the compiler keeps the value in a register.
    #[must_use]
    pub fn changes_memory(&self) -> bool {
        let at_work =
            |role: &Role| !matches!(role, Role::Prologue | Role::Epilogue | Role::Arguments);
        let place = |m: &Memory| (m.base, m.index, m.scale, m.offset, m.size, m.thread_local);
        let with_roles = self.instructions.iter().zip(&self.roles);
        let memory = with_roles.filter(|(_, role)| at_work(role)).filter_map(|(i, _)| i.memory);
        let mut read = Vec::new();
        for used in memory {
            if used.read {
                read.push(place(&used));
            }
            if used.written && read.contains(&place(&used)) {
                return true;
            }
        }
        false
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
    /// A sampling interrupt comes between instructions: the one at `ip` has not begun, so the one before it took the
    /// time. If `ip` is also the target of a jump, the previous instruction is not known, and `ip` itself is charged,
    /// unless the one before it is atomic and only skipped: that takes far longer than a jump. The same at the entry, outside the function, and for block instructions, which an interrupt may divide.
    #[must_use]
    pub fn charge(&self, ip: FileAddr) -> FileAddr {
        self.charged(ip).map_or(ip, |i| FileAddr(self.instructions[i].addr))
    }

    /// The role of the instruction that a sample at `ip` waited for; none outside the function. A sample at the entry
    /// waited for the call, unless the function itself jumps back there.
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

    /// The role of the instruction at `addr` itself: for a caller's frame, the role of the call.
    #[must_use]
    pub fn role_at(&self, addr: FileAddr) -> Option<Role> {
        find(&self.instructions, addr.0).map(|i| self.roles[i])
    }

    fn charged(&self, ip: FileAddr) -> Option<usize> {
        let i = find(&self.instructions, ip.0)?;
        if i == 0 || self.resumes(i) {
            return Some(i);
        }
        let before = &self.instructions[i - 1];
        let here = Some(self.instructions[i].addr);
        let is_loop = || self.instructions[i..].iter().any(|later| later.target() == here);
        let is_known = !self.entered[i] || before.kind == Kind::Atomic && !is_loop();
        Some(if is_known && before.falls_through() { i - 1 } else { i })
    }

    /// Whether an interrupt may divide the instruction.
    fn resumes(&self, i: usize) -> bool {
        matches!(self.instructions[i].kind, Kind::CopyBlock | Kind::FillBlock)
    }
}
