//! Checks: a compare, and a branch to code that only panics.
//!
//! Recognised by the name of the routine that the cold side calls, never by shape alone. Not for the cost of a check: its
//! samples include the wait for the operands of the compare, which [`Role::BoundsCheck`] notes.

use super::routine::{self, Routine};
use super::{Role, claim};
use crate::body::Body;
use crate::instruction::{Instruction, Kind, Reg, Registers};

/// The most instructions of a cold block before it panics: it loads an index, a length and the source location, and may
/// create the error value first.
const COLD: usize = 16;
/// How many instructions may lie between a compare and its branch.
const APART: usize = 4;
/// How far back the load of a compared value is searched.
const LOOK_BACK: usize = 8;
/// How far after a compare at a loop's head the backward jump is searched.
const LOOP: usize = 64;
/// How far other uses of a loaded length are searched.
const LOOK_AHEAD: usize = 12;

/// How many instructions before and behind the branch of a check the rules look at, and how many behind it where a jump leads
/// to one of those before; but for [`ROUND`].
pub(crate) const AROUND: (usize, usize, usize) =
    (2 * APART + LOOK_BACK, LOOK_AHEAD + 2, LOOP + LOOK_AHEAD);
/// How far the backward jump of the loop around a load may be.
pub(crate) const ROUND: usize = 512;

/// Whether the index of the check at branch `at`, which goes on at `hot`, was just loaded.
pub(super) fn is_after_load(body: &Body<'_, '_>, at: usize, hot: usize) -> bool {
    compare(body, at).is_some_and(|compare| fed_by_load(body, compare, hot))
}

/// Marks all of `body`.
pub(super) fn mark(body: &Body<'_, '_>, roles: &mut [Role]) {
    for (at, instruction) in body.instructions.iter().enumerate() {
        if is_nil_check(body, at) {
            claim(roles, at, Role::OtherCheck);
        }
        let Kind::Branch(target) = instruction.kind else { continue };
        let taken = outcome(body, target);
        let Some(end) = taken.or_else(|| outcome(body, instruction.end())) else { continue };
        let hot = if taken.is_some() { Some(at + 1) } else { body.at(target) };
        let compare = compare(body, at);
        let role = match end {
            Routine::BoundsPanic => {
                let after_load = hot.is_some_and(|hot| is_after_load(body, at, hot));
                Role::BoundsCheck { after_load }
            }
            Routine::WriteBarrier => Role::WriteBarrier,
            Routine::OtherPanic => Role::OtherCheck,
            _ => continue,
        };
        claim(roles, at, role);
        if let Some(compare) = compare {
            claim(roles, compare, role);
            if let Some(length) = length(body, compare) {
                claim(roles, length, role);
            }
        }
    }
}

/// Go's nil check reads a pointer's target: a compare whose flags are not used.
fn is_nil_check(body: &Body<'_, '_>, at: usize) -> bool {
    let instruction = &body.instructions[at];
    let next = body.instructions.get(at + 1);
    body.convention.goroutine.is_some()
        && instruction.kind == Kind::Compare
        && instruction.memory.is_some_and(|m| m.base.is_some() && m.offset == 0 && m.size == 1)
        && next.is_some_and(|i| !matches!(i.kind, Kind::Branch(_) | Kind::Compute))
}

/// The routine that the code at `addr` reaches without a branch, if it is the cold side of a check.
fn outcome(body: &Body<'_, '_>, addr: u64) -> Option<Routine> {
    let Some(mut at) = body.at(addr) else {
        return ends((body.names)(deadweight_trace::units::FileAddr(addr))?);
    };
    let mut jumped = false;
    for _ in 0..COLD {
        let instruction = body.instructions.get(at)?;
        match instruction.kind {
            Kind::Call(_) | Kind::Jump(_) if body.callee(instruction).and_then(ends).is_some() => {
                return body.callee(instruction).and_then(ends);
            }
            // A call that creates the error value is allowed; any other is work.
            Kind::Call(_) => match body.callee(instruction).map(routine::named) {
                Some(Some(Routine::PanicValue)) => at += 1,
                _ => return None,
            },
            Kind::Jump(Some(target)) if !jumped => {
                jumped = true;
                at = body.at(target)?;
            }
            Kind::Jump(_) | Kind::Branch(_) | Kind::Return | Kind::Trap | Kind::Unknown => {
                return None;
            }
            _ => at += 1,
        }
    }
    None
}

/// The routine called `name`, if it is one that checks lead to.
fn ends(name: &str) -> Option<Routine> {
    routine::named(name).filter(|routine| {
        matches!(routine, Routine::BoundsPanic | Routine::OtherPanic | Routine::WriteBarrier)
    })
}

/// Whether bounds check `at`, a branch, panics if it is taken; none if it is no such branch.
pub(crate) fn panics_if_taken(body: &Body<'_, '_>, at: usize) -> Option<bool> {
    let instruction = &body.instructions[at];
    let Kind::Branch(target) = instruction.kind else { return None };
    let panics = |addr| outcome(body, addr) == Some(Routine::BoundsPanic);
    if panics(target) { Some(true) } else { panics(instruction.end()).then_some(false) }
}

/// The compare whose flags branch `at` reads. None for a branch that compares by itself (Arm's `cbz`).
pub(crate) fn compare(body: &Body<'_, '_>, at: usize) -> Option<usize> {
    if !body.instructions[at].reads.is_empty() {
        return None;
    }
    for back in 1..=APART.min(at) {
        let instruction = &body.instructions[at - back];
        match instruction.kind {
            Kind::Compare => return Some(at - back),
            // Moves keep the flags; others may have set them.
            Kind::Load | Kind::Store | Kind::Move | Kind::Address | Kind::Nop => {}
            _ => return None,
        }
        if body.entered[at - back] {
            return None;
        }
    }
    None
}

/// The load just before `compare` of a value that only the compare uses: the length.
pub(crate) fn length(body: &Body<'_, '_>, compare: usize) -> Option<usize> {
    let before = compare.checked_sub(1).filter(|_| !body.entered[compare])?;
    let load = &body.instructions[before];
    let register = load.data[0].filter(|_| load.kind == Kind::Load)?;
    let wanted = body.instructions[compare].reads.has(register);
    (wanted && dies(body, compare, register)).then_some(before)
}

/// Whether `register` is written before it is read again, without a branch after `at`.
fn dies(body: &Body<'_, '_>, at: usize, register: Reg) -> bool {
    next_use(body, at + 1, register) == Some(false)
}

/// Whether the code from `start` on reads `register` before writing it, without a branch; none if it does neither. Compares
/// don't count.
fn next_use(body: &Body<'_, '_>, start: usize, register: Reg) -> Option<bool> {
    body.instructions
        .iter()
        .skip(start)
        .take(LOOK_AHEAD)
        .filter(|i| i.kind != Kind::Compare || i.memory.is_some())
        .find(|i| i.reads.has(register) || i.writes.has(register) || !i.falls_through())
        .filter(|i| i.reads.has(register) || i.writes.has(register))
        .map(|i| i.reads.has(register))
}

/// The instructions that run just before `at`, latest first. At the head of a short loop these are the last ones of the
/// previous iteration.
fn before(body: &Body<'_, '_>, at: usize) -> impl Iterator<Item = usize> {
    let mut next = at;
    let mut wrapped = false;
    let step = move || {
        if !body.entered[next] {
            next = next.checked_sub(1)?;
            return Some(next);
        }
        let head = Some(body.instructions[next].addr);
        let behind = body.instructions.iter().enumerate().skip(at).take(LOOP);
        let last = { behind }.find(|(_, i)| i.target() == head).map(|(last, _)| last);
        next = last.filter(|_| !wrapped)?;
        wrapped = true;
        Some(next)
    };
    std::iter::from_fn(step).take(LOOK_BACK)
}

/// Whether the code from `hot` on uses the value of `register`, or a copy made just before `compare`.
fn is_used(body: &Body<'_, '_>, compare: usize, hot: usize, register: Reg) -> bool {
    let used = |register| next_use(body, hot, register) == Some(true);
    let copied = body.instructions[compare.saturating_sub(APART)..compare].iter().any(|i| {
        i.kind == Kind::Move && i.data[1] == Some(register) && i.data[0].is_some_and(used)
    });
    used(register) || copied
}

/// Whether instruction `at` reads the same address in each iteration of the loop around it, which nothing there writes: a
/// width, a spilled variable. Such a load is not waited for.
fn is_fixed(body: &Body<'_, '_>, at: usize) -> bool {
    let memory = body.instructions[at].memory.filter(|m| m.index.is_none() && !m.thread_local);
    let Some((memory, base)) = memory.and_then(|m| Some((m, m.base?))) else { return false };
    let head = |i: &Instruction| i.target().filter(|to| *to <= body.instructions[at].addr);
    let mut behind = body.instructions.iter().enumerate().skip(at).take(ROUND);
    let round = behind.find_map(|(last, i)| Some((body.at(head(i)?)?, last)));
    let Some((first, last)) = round else { return false };
    let writes = |i: &Instruction| {
        let same = |m: crate::instruction::Memory| {
            m.written && m.index.is_none() && (m.base, m.offset) == (Some(base), memory.offset)
        };
        i.writes.has(base) || i.memory.is_some_and(same)
    };
    !body.instructions[first..=last].iter().any(writes)
}

/// Whether the index that `compare` reads was just loaded. The index is the compared value that the code from `hot` on
/// uses.
fn fed_by_load(body: &Body<'_, '_>, compare: usize, hot: usize) -> bool {
    let mut wanted: Registers = body.instructions[compare].reads;
    if let Some(memory) = body.instructions[compare].memory {
        // The registers of an address lead to the length, not to the index.
        let address = memory.base.into_iter().chain(memory.index);
        wanted = wanted.without(address.collect());
    }
    if wanted.iter().count() > 1 {
        wanted = wanted.iter().filter(|r| is_used(body, compare, hot, *r)).collect();
    }
    for at in before(body, compare) {
        let instruction = &body.instructions[at];
        if !instruction.writes.meets(wanted) {
            continue;
        }
        let reads_memory = instruction.memory.is_some_and(|m| m.read);
        match instruction.kind {
            Kind::Load if is_fixed(body, at) => wanted = wanted.without(instruction.writes),
            Kind::Load => return true,
            Kind::Call(_) => return false,
            Kind::Compute if reads_memory && !is_fixed(body, at) => return true,
            _ => {
                wanted = wanted.without(instruction.writes).and(instruction.reads);
            }
        }
    }
    false
}
