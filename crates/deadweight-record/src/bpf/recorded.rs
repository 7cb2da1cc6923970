//! Records of single calls: what the kernel's own tracepoints would tell, and the user half of some.
//!
//! Not for the calls of tasks that are counted: see `calls`.

use super::assembler::{If, Label, Op, Program, R};
use super::layout::recorded;
use super::registers;
use super::who::WHO;
use super::{CLOCK, CONTEXT, REGISTERS, STACK, Tables, VALUE, at, look_up, tell_from, whole};

/// Who makes calls often gives a stack every so many ns, ...
const APART: i32 = 250_000;
/// ... and who did not lately, gives them at its next so many.
const AT_FIRST: i32 = 16;
/// Where a record is made, on the program's stack. Behind it are the keys of tables.
const RECORD: i16 = -8 - at(recorded::ENTERED_SIZE);

/// Records that a call begins, and its user half, if this task gave none for a while. [`WHO`] makes it.
pub(super) fn record_entry(p: &mut Program, tables: Tables) {
    let (narrow, told, end) = (p.label(), p.label(), p.label());
    let field = |offset| RECORD + at(offset);
    let saved = R(8);
    p.put(STACK, RECORD, 0);
    p.load(R(1), CONTEXT, VALUE);
    p.store(STACK, field(recorded::NR), R(1));
    p.load(saved, CONTEXT, REGISTERS);
    let copy = |p: &mut Program, from: [i16; 6]| {
        for (i, register) in from.into_iter().enumerate() {
            p.load(R(1), saved, register);
            p.store(STACK, field(recorded::ARGS + 8 * i), R(1));
        }
    };
    registers::if_narrow(p, saved, narrow);
    copy(p, registers::ARGS);
    p.jump(told);
    p.here(narrow);
    copy(p, registers::NARROW_ARGS);
    p.here(told);
    tell_from(p, tables.enters, (STACK, RECORD), recorded::ENTERED_SIZE);
    is_due(p, tables, end);
    tell_from(p, tables.sites, (STACK, RECORD), 8);
    p.here(end);
}

/// Goes on at `not` unless a stack of [`WHO`] is due. Each place in the table of stacks has the time until which its
/// tasks have given enough, and they may be ahead of that by some: a leaky bucket.
fn is_due(p: &mut Program, tables: Tables, not: Label) {
    let (now, place, later) = (R(8), R(9), p.label());
    p.call(CLOCK);
    p.with(Op::Set, now, R(0));
    p.with(Op::Set, R(1), WHO);
    p.by(Op::And, R(1), whole(recorded::SITED) - 1);
    p.store_32(STACK, -4, R(1));
    look_up(p, tables.sited);
    p.jump_if(R(0), If::Equal, 0, not);
    p.with(Op::Set, place, R(0));
    p.load(R(1), place, 0);
    p.with(Op::Set, R(2), now);
    p.by(Op::Add, R(2), AT_FIRST * APART);
    p.jump_if_both(R(1), If::Greater, R(2), not);
    p.jump_if_both(R(1), If::Greater, now, later);
    p.with(Op::Set, R(1), now);
    p.here(later);
    p.by(Op::Add, R(1), APART);
    p.store(place, 0, R(1));
}

/// Records that a call returned, with this result.
pub(super) fn record_return(p: &mut Program, tables: Tables) {
    p.put(STACK, RECORD, 0);
    p.put(STACK, RECORD + 8, 0);
    p.load(R(1), CONTEXT, VALUE);
    p.store(STACK, RECORD + at(recorded::RESULT), R(1));
    tell_from(p, tables.leaves, (STACK, RECORD), recorded::LEFT_SIZE);
}
