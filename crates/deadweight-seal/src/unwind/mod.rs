//! Unwinding: from user registers and a copy of the stack to the call chain.
//!
//! - In: registers and stack copy of a task, its mappings (`address_spaces`), call frames of
//!   images.
//! - Out: code addresses, innermost first, stored once each (`interned`).
//! - Must not know: names of functions.
//!
//! Three sources, best first: call frame information over the stack copy; frame pointers over it,
//! for an image without call frame information; the kernel's frame pointer walk, which reaches
//! beyond the copy. A chain ends rather than guesses: every caller must lie in mapped code.

pub(crate) mod address_spaces;
pub(crate) mod interned;

use self::address_spaces::{Range, Space};
use crate::cfi::{CallFrames, Frame, Machine, Rule, Saved};
use crate::images::Images;
use deadweight_trace::raw::UserState;
use gimli::UnwindContext;

/// The deepest stack that is kept, in calls. Deeper ones keep their innermost calls.
const DEEPEST: usize = 512;

/// A code address with what is mapped there.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// The address that executed, or the call: a return address less one.
    pub(crate) address: u64,
    /// The mapping, none if nothing known is mapped there.
    pub(crate) range: Option<Range>,
}

/// How a walk ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum End {
    /// At a function without a caller.
    Root,
    /// At a return address of zero: a function without a caller, or one on a separate stack, as in Go's runtime.
    Bottom,
    /// Somewhere before: no rule, or the stack copy ends.
    Stuck,
}

/// Registers of a frame.
#[derive(Copy, Clone, Debug)]
struct Registers {
    ip: u64,
    sp: u64,
    fp: u64,
    lr: u64,
    /// Whether `ip` was executing (interrupted) rather than being returned to.
    executing: bool,
}

/// One step outwards.
enum Step {
    Caller(Registers),
    End(End),
}

/// Unwinds stacks; reuses its buffers.
#[derive(Debug, Default)]
pub(crate) struct Unwinder {
    context: Box<UnwindContext<usize>>,
    returns: Vec<u64>,
}

impl Unwinder {
    /// Writes the call chain of a task in `space` to `chain`, innermost first. The instruction pointer of a task
    /// `in_syscall` is behind the `syscall` instruction.
    pub(crate) fn walk(
        &mut self,
        state: &UserState<'_>,
        in_syscall: bool,
        space: &Space,
        images: &mut Images,
        chain: &mut Vec<Code>,
    ) {
        chain.clear();
        chain.push(code(space, state.ip, !in_syscall));
        self.returns.clear();
        let (end, registers) = self.follow(state, space, images, chain);
        if end != End::Root {
            let owner = end == End::Stuck
                && registers.fp == state.fp
                && chain.last().is_some_and(|at| self.has_frame_pointer(*at, images));
            self.extend_by_frame_pointers(state.chain, space, chain, (end, owner));
        }
    }

    /// Follows call frame information over the stack copy. Adds return addresses to `self.returns` and calls to
    /// `chain`, beginning with the leaf's caller.
    fn follow(
        &mut self,
        state: &UserState<'_>,
        space: &Space,
        images: &mut Images,
        chain: &mut Vec<Code>,
    ) -> (End, Registers) {
        let dump = Dump { start: state.sp, bytes: state.stack };
        let UserState { ip, sp, fp, lr, .. } = *state;
        let mut registers = Registers { ip, sp, fp, lr, executing: true };
        let mut at = chain[0];
        while chain.len() < DEEPEST {
            let frames = at.range.and_then(|range| images.call_frames(range.image));
            match self.step(&registers, at, frames, &dump, space) {
                Step::End(end) => return (end, registers),
                Step::Caller(caller) => {
                    registers = caller;
                    at = code(space, caller.ip, caller.executing);
                    chain.push(at);
                    self.returns.push(caller.ip);
                }
            }
        }
        // The depth limit: nothing may be added.
        (End::Root, registers)
    }

    /// Whether the function at `at` keeps its frame where the frame pointer points.
    fn has_frame_pointer(&mut self, at: Code, images: &mut Images) -> bool {
        let Some(range) = at.range else { return false };
        let frames = images.call_frames(range.image);
        let address = at.address.wrapping_sub(range.bias);
        let rule = frames.and_then(|frames| frames.rule(address, &mut self.context));
        rule.is_some_and(|rule| matches!(rule.frame, Frame::Pointer(_)))
    }

    fn step(
        &mut self,
        registers: &Registers,
        at: Code,
        frames: Option<&mut CallFrames>,
        dump: &Dump<'_>,
        space: &Space,
    ) -> Step {
        if let (Some(frames), Some(range)) = (frames, at.range) {
            let address = at.address.wrapping_sub(range.bias);
            let machine = frames.machine();
            if let Some(rule) = frames.rule(address, &mut self.context) {
                return by_rule(frames, &rule, registers, dump, space, range.bias);
            }
            // A stub or hand-written code without unwind information: a leaf that has pushed nothing.
            if registers.executing
                && let Some(caller) = from_leaf(machine, registers, dump)
                && space.find(caller.ip.wrapping_sub(1)).is_some()
            {
                return Step::Caller(caller);
            }
        }
        by_frame_pointer(registers, dump, space)
    }

    /// Continues a chain that got stuck with the kernel's frame pointer walk: from the last return address that both
    /// have; without a common one, the longer chain is kept. If the frame of the last function reaches beyond the
    /// stack copy and this function set the frame pointer (`owner`), the kernel's walk begins there.
    fn extend_by_frame_pointers(
        &mut self,
        kernel: &[u64],
        space: &Space,
        chain: &mut Vec<Code>,
        (end, owner): (End, bool),
    ) {
        let callers = kernel.get(1..).unwrap_or(&[]);
        let mapped = callers.iter().take_while(|ret| space.find(ret.wrapping_sub(1)).is_some());
        let callers = &callers[..mapped.count()];
        let meeting = self.returns.iter().enumerate().rev().find_map(|(ours, ret)| {
            callers.iter().rposition(|theirs| theirs == ret).map(|theirs| (ours, theirs))
        });
        let outermost = |ours| ours + 1 == self.returns.len();
        let (keep, rest) = match meeting {
            // A walk that reached a bottom is right: only the callers beyond it are missing.
            Some((ours, _)) if end == End::Bottom && !outermost(ours) => return,
            None if end == End::Bottom => return,
            Some((ours, theirs)) => (ours + 2, &callers[theirs + 1..]),
            None if owner && !callers.is_empty() => (chain.len(), callers),
            None if callers.len() > self.returns.len() => (1, callers),
            None => return,
        };
        // Beyond the common address the longer walk is better.
        if keep + rest.len() > chain.len() {
            chain.truncate(keep);
            let left = DEEPEST.saturating_sub(chain.len());
            chain.extend(rest.iter().take(left).map(|ret| code(space, *ret, false)));
        }
    }
}

/// The code at an address that executes, or the call before a return address. Only this function subtracts one.
fn code(space: &Space, ip: u64, executing: bool) -> Code {
    let address = if executing { ip } else { ip.wrapping_sub(1) };
    Code { address, range: space.find(address).copied() }
}

/// The copied part of a stack.
struct Dump<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl Dump<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(8)?)?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    }
}

fn by_rule(
    frames: &CallFrames,
    rule: &Rule,
    registers: &Registers,
    dump: &Dump<'_>,
    space: &Space,
    bias: u64,
) -> Step {
    let register = |number: gimli::Register| match (frames.machine(), number.0) {
        (Machine::X86_64, 6) | (Machine::Aarch64, 29) => Some(registers.fp),
        (Machine::X86_64, 7) | (Machine::Aarch64, 31) => Some(registers.sp),
        // Expressions of PLT stubs use the low bits of the file address.
        (Machine::X86_64, 16) => Some(registers.ip.wrapping_sub(bias)),
        (Machine::Aarch64, 30) => Some(registers.lr),
        _ => None,
    };
    let value = |expression, start| {
        frames.evaluate(rule, expression, start, register, |address| dump.word(address))
    };
    let frame = match rule.frame {
        Frame::Stack(offset) => registers.sp.checked_add_signed(offset),
        Frame::Pointer(offset) => registers.fp.checked_add_signed(offset),
        Frame::Expression(expression) => value(expression, None),
    };
    let Some(frame) = frame else { return Step::End(End::Stuck) };
    let address = |saved| match saved {
        Saved::At(offset) => frame.checked_add_signed(offset),
        Saved::AtExpression(expression) => value(expression, Some(frame)),
        Saved::Same | Saved::Undefined => None,
    };
    let caller = match rule.caller {
        Saved::Undefined => return Step::End(End::Root),
        // The link register holds it: only in the innermost function.
        Saved::Same if registers.executing => Some(registers.lr),
        saved => address(saved).and_then(|address| dump.word(address)),
    };
    let fp = match rule.frame_pointer {
        Saved::Same | Saved::Undefined => registers.fp,
        // In epilogues the rule stays after the register was popped: then the slot is below the stack pointer, and
        // the register is already right.
        saved => address(saved).and_then(|at| dump.word(at)).unwrap_or(registers.fp),
    };
    let moved = frame > registers.sp || (registers.executing && frame == registers.sp);
    match caller {
        Some(0) => Step::End(End::Bottom),
        Some(ip) if moved || rule.signal => {
            let ip = plain(frames.machine(), ip);
            let executing = rule.signal;
            if space.find(if executing { ip } else { ip.wrapping_sub(1) }).is_none() {
                return Step::End(End::Stuck);
            }
            Step::Caller(Registers { ip, sp: frame, fp, lr: registers.lr, executing })
        }
        _ => Step::End(End::Stuck),
    }
}

/// A return address without Arm's pointer authentication code in the upper bits.
fn plain(machine: Machine, address: u64) -> u64 {
    match machine {
        Machine::X86_64 => address,
        Machine::Aarch64 => address & ((1 << 48) - 1),
    }
}

fn from_leaf(machine: Machine, registers: &Registers, dump: &Dump<'_>) -> Option<Registers> {
    let (ip, sp) = match machine {
        Machine::X86_64 => (dump.word(registers.sp)?, registers.sp.checked_add(8)?),
        Machine::Aarch64 => (plain(machine, registers.lr), registers.sp),
    };
    Some(Registers { ip, sp, executing: false, ..*registers })
}

/// The frame pointer points to the saved frame pointer, followed by the return address.
fn by_frame_pointer(registers: &Registers, dump: &Dump<'_>, space: &Space) -> Step {
    let (Some(fp), Some(ip), Some(sp)) = (
        dump.word(registers.fp),
        registers.fp.checked_add(8).and_then(|at| dump.word(at)),
        registers.fp.checked_add(16),
    ) else {
        return Step::End(End::Stuck);
    };
    match ip {
        0 => Step::End(End::Bottom),
        _ if sp <= registers.sp || space.find(ip.wrapping_sub(1)).is_none() => {
            Step::End(End::Stuck)
        }
        _ => Step::Caller(Registers { ip, sp, fp, lr: registers.lr, executing: false }),
    }
}
