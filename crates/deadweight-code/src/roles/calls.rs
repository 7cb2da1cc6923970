//! The cost of calls: the call, argument moves around it, prologue and epilogue.
//!
//! Found by position: from the entry, a call or a return outwards, up to the first other instruction. Not for whether a
//! call could be inlined.

use super::routine::{self, Routine};
use super::{Role, claim};
use crate::body::{Body, leaves};
use crate::instruction::{Instruction, Kind, Registers};
use std::collections::BTreeSet;

/// The longest prologue: pushes of all saved registers, as many spilled arguments, and the frame.
const PROLOGUE: usize = 32;
/// How far before a call arguments are set up, and after it results are moved.
const AROUND: usize = 12;

/// Marks all of `body`.
pub(super) fn mark(body: &Body<'_, '_>, roles: &mut [Role]) {
    prologue(body, roles);
    let with = || body.instructions.iter().enumerate();
    with().filter(|(_, i)| leaves(body, i)).for_each(|(at, _)| epilogue(body, roles, at));
    for (at, instruction) in with().filter(|(_, i)| matches!(i.kind, Kind::Call(_))) {
        if grows_stack(body, instruction) {
            stack_growth(body, roles, at);
        } else {
            call(body, roles, at);
        }
    }
    reloads(body, roles);
}

/// Marks values that are spilled to the frame because a call would overwrite them, and their reloads.
fn reloads(body: &Body<'_, '_>, roles: &mut [Role]) {
    let c = &body.convention;
    let place = |i: &Instruction| i.memory.filter(|m| m.is_at(c.stack)).map(|m| m.offset);
    let reads = |i: &Instruction| i.memory.is_some_and(|m| m.read && !m.written);
    let read: BTreeSet<i64> =
        body.instructions.iter().filter(|i| reads(i)).filter_map(place).collect();
    let mut spilled = BTreeSet::new();
    for (at, instruction) in body.instructions.iter().enumerate() {
        let Some(offset) = place(instruction).filter(|_| instruction.kind == Kind::Store) else {
            continue;
        };
        if read.contains(&offset) && (roles[at] == Role::Arguments || before_call(body, at)) {
            claim(roles, at, Role::Arguments);
            spilled.insert(offset);
        }
    }
    for (at, instruction) in body.instructions.iter().enumerate().filter(|(_, i)| reads(i)) {
        if place(instruction).is_some_and(|offset| spilled.contains(&offset)) {
            claim(roles, at, Role::Arguments);
        }
    }
}

/// Whether the code from `at` on soon reaches a call without a branch.
fn before_call(body: &Body<'_, '_>, at: usize) -> bool {
    let straight = |from: usize| {
        let end = |i: &&Instruction| i.ends_block() || matches!(i.kind, Kind::Call(_));
        body.instructions.iter().skip(from).take(AROUND).find(end)
    };
    let Some(end) = straight(at + 1) else { return false };
    // The next iteration of a loop begins at its head.
    let head = end.target().filter(|to| *to < end.addr).and_then(|to| body.at(to));
    let end = head.map_or(Some(end), straight);
    end.is_some_and(|end| matches!(end.kind, Kind::Call(_)) && !grows_stack(body, end))
}

fn prologue(body: &Body<'_, '_>, roles: &mut [Role]) {
    let c = &body.convention;
    // Registers that still hold the caller's values: callee-saved registers and arguments.
    let mut kept = c.saved.and(c.arguments.iter().chain(&c.link).copied().collect());
    for (at, instruction) in body.instructions.iter().take(PROLOGUE).enumerate() {
        let checks_stack = is_stack_check(body, at);
        if at > 0 && body.entered[at] {
            return;
        }
        if sets_frame(body, instruction) || checks_stack || saves_register(body, instruction, kept)
        {
            claim(roles, at, Role::Prologue);
        } else if instruction.ends_block() || matches!(instruction.kind, Kind::Call(_)) {
            return;
        }
        kept = kept.without(instruction.writes);
    }
}

/// Whether a value of the caller is saved from a register, or moved to another one.
fn saves_register(body: &Body<'_, '_>, instruction: &Instruction, kept: Registers) -> bool {
    let c = &body.convention;
    match (instruction.kind, instruction.data) {
        (Kind::Store, data) => {
            instruction.memory.is_some_and(|m| m.is_at(c.stack) || m.is_at(c.frame))
                && data.iter().flatten().all(|r| kept.has(*r))
        }
        (Kind::Move, [Some(to), Some(from)]) => {
            c.saved.has(to) && kept.has(from) && c.arguments.contains(&from)
        }
        _ => false,
    }
}

/// Whether this sets up the frame.
fn sets_frame(body: &Body<'_, '_>, instruction: &Instruction) -> bool {
    let c = &body.convention;
    let writes_stack = instruction.writes.has(c.stack);
    let on_stack = instruction.memory.is_some_and(|m| m.is_at(c.stack) || m.is_at(c.frame));
    let data = instruction.data;
    match instruction.kind {
        Kind::Push => instruction.memory.is_none(),
        Kind::Advance(_) | Kind::Compute => writes_stack,
        Kind::Move | Kind::Address => {
            instruction.writes.has(c.frame) && (on_stack || data[1] == Some(c.stack))
        }
        _ => false,
    }
}

/// Go's comparison of the stack pointer with the goroutine's limit, and the branch on it.
fn is_stack_check(body: &Body<'_, '_>, at: usize) -> bool {
    let Some(goroutine) = body.convention.goroutine else { return false };
    let limit = |i: &Instruction| {
        matches!(i.kind, Kind::Compare | Kind::Load)
            && i.memory.is_some_and(|m| m.is_at(goroutine) && matches!(m.offset, 16 | 24))
    };
    let from_stack = |i: &Instruction| {
        matches!(i.kind, Kind::Address | Kind::Compute | Kind::Advance(_) | Kind::Compare)
            && i.reads.has(body.convention.stack)
    };
    let instruction = &body.instructions[at];
    let earlier = &body.instructions[at.saturating_sub(3)..at];
    let later = &body.instructions[at + 1..(at + 3).min(body.instructions.len())];
    match instruction.kind {
        Kind::Branch(_) | Kind::Compare if earlier.iter().any(limit) => true,
        Kind::Address | Kind::Compute => {
            from_stack(instruction) && (later.iter().any(limit) || earlier.iter().any(limit))
        }
        _ => limit(instruction),
    }
}

fn grows_stack(body: &Body<'_, '_>, instruction: &Instruction) -> bool {
    body.callee(instruction).and_then(routine::named) == Some(Routine::StackGrowth)
}

/// The block that grows the stack: it spills the arguments, and reloads them for the second try.
fn stack_growth(body: &Body<'_, '_>, roles: &mut [Role], at: usize) {
    let mut first = at;
    while first > 0 && !body.begins_block(first) {
        first -= 1;
    }
    for (i, instruction) in body.instructions.iter().enumerate().skip(first) {
        claim(roles, i, Role::Prologue);
        if i > at && instruction.ends_block() {
            return;
        }
    }
}

fn epilogue(body: &Body<'_, '_>, roles: &mut [Role], at: usize) {
    claim(roles, at, Role::Epilogue);
    let c = &body.convention;
    let mut i = at;
    while i > 0 && !body.begins_block(i) {
        i -= 1;
        let instruction = &body.instructions[i];
        let restores = match instruction.kind {
            Kind::Pop | Kind::Nop => true,
            Kind::Advance(_) | Kind::Compute | Kind::Move | Kind::Address => {
                instruction.writes.has(c.stack)
            }
            Kind::Load => {
                instruction.memory.is_some_and(|m| m.is_at(c.stack) || m.is_at(c.frame))
                    && instruction
                        .data
                        .iter()
                        .flatten()
                        .all(|r| c.saved.has(*r) || c.link == Some(*r) || *r == c.frame)
            }
            _ => false,
        };
        if !restores {
            return;
        }
        claim(roles, i, Role::Epilogue);
    }
}

fn call(body: &Body<'_, '_>, roles: &mut [Role], at: usize) {
    claim(roles, at, Role::Call);
    let c = &body.convention;
    let near = |i: &Instruction| i.memory.is_none_or(|m| m.is_at(c.stack) || m.is_at(c.frame));
    let mut i = at;
    while i > at.saturating_sub(AROUND) && !body.begins_block(i) {
        i -= 1;
        let instruction = &body.instructions[i];
        let for_callee =
            instruction.data[0].is_some_and(|r| c.arguments.contains(&r) || r.is_vector());
        let shuffles = match instruction.kind {
            Kind::Move | Kind::Constant(_) => true,
            Kind::Load | Kind::Address => for_callee && near(instruction),
            Kind::Store | Kind::StoreZero | Kind::StoreConstant => {
                instruction.memory.is_some_and(|m| m.is_at(c.stack))
            }
            Kind::Push => true,
            Kind::Nop => true,
            _ => false,
        };
        if !shuffles {
            break;
        }
        claim(roles, i, Role::Arguments);
    }
    call_target(body, roles, at);
    let after = body.instructions.iter().enumerate().skip(at + 1).take(AROUND);
    for (i, instruction) in after {
        let spilled = match instruction.kind {
            Kind::Move => instruction.data[1] == Some(c.result),
            Kind::Load => body.convention.goroutine.is_some() && near(instruction),
            Kind::Advance(_) | Kind::Pop => instruction.writes.has(c.stack),
            _ => false,
        };
        if body.entered[i] || !spilled {
            return;
        }
        claim(roles, i, Role::Arguments);
    }
}

/// Marks the loads of a vtable or function pointer that serve only the indirect call.
fn call_target(body: &Body<'_, '_>, roles: &mut [Role], at: usize) {
    let call = &body.instructions[at];
    if call.kind != Kind::Call(None) {
        return;
    }
    let mut wanted = call.reads.without(Registers::of(&[body.convention.stack]));
    for i in (at.saturating_sub(AROUND)..at).rev() {
        let instruction = &body.instructions[i];
        if instruction.writes.meets(wanted) {
            if instruction.kind != Kind::Load {
                return;
            }
            claim(roles, i, Role::Arguments);
            wanted = wanted.without(instruction.writes);
        }
        if body.begins_block(i.max(1)) || matches!(instruction.kind, Kind::Call(_)) {
            return;
        }
    }
}
