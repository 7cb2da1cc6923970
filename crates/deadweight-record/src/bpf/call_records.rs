//! Records of single calls, as the kernel's tracepoints give them, and user registers and stacks of
//! some.
//!
//! Not for calls of tasks that are counted; see `calls`.

use super::assembler::{Cond, Label, Op, Program, R};
use super::current_task::TID;
use super::layout::call_record;
use super::pt_regs;
use super::{CONTEXT, KTIME_GET_NS, Maps, REGISTERS, STACK, VALUE, at, imm, lookup, output_from};

/// A task that often makes calls gives a stack in this interval, in ns, ...
const STACK_INTERVAL: i32 = 250_000;
/// ... and one that did not lately gives this many at once.
const STACK_BURST: i32 = 16;
/// The record on the BPF stack. The keys of lookups are behind it.
const RECORD: i16 = -8 - at(call_record::ENTRY_SIZE);

/// Records an entry, and the user registers and stack if due. The task is [`TID`].
pub(super) fn record_entry(p: &mut Program, maps: Maps) {
    let (compat, output, end) = (p.label(), p.label(), p.label());
    let field = |offset| RECORD + at(offset);
    let regs = R(8);
    p.store_imm(STACK, RECORD, 0);
    p.load(R(1), CONTEXT, VALUE);
    p.store(STACK, field(call_record::NR), R(1));
    p.load(regs, CONTEXT, REGISTERS);
    let copy = |p: &mut Program, from: [i16; 6]| {
        for (i, register) in from.into_iter().enumerate() {
            p.load(R(1), regs, register);
            p.store(STACK, field(call_record::ARGS + 8 * i), R(1));
        }
    };
    pt_regs::jump_if_compat(p, regs, compat);
    copy(p, pt_regs::ARGS);
    p.jump(output);
    p.bind(compat);
    copy(p, pt_regs::COMPAT_ARGS);
    p.bind(output);
    output_from(p, maps.enters, (STACK, RECORD), call_record::ENTRY_SIZE);
    require_stack_due(p, maps, end);
    output_from(p, maps.sites, (STACK, RECORD), 8);
    p.bind(end);
}

/// Jumps to `not` unless a stack of [`TID`] is due. A leaky bucket: each slot has the time until
/// which its tasks have given stacks, and may be ahead of the clock by a burst.
fn require_stack_due(p: &mut Program, maps: Maps, not: Label) {
    let (now, slot, after) = (R(8), R(9), p.label());
    p.call(KTIME_GET_NS);
    p.op_reg(Op::Mov, now, R(0));
    p.op_reg(Op::Mov, R(1), TID);
    p.op_imm(Op::And, R(1), imm(call_record::STACK_SLOTS) - 1);
    p.store_32(STACK, -4, R(1));
    lookup(p, maps.stack_times);
    p.jump_if(R(0), Cond::Equal, 0, not);
    p.op_reg(Op::Mov, slot, R(0));
    p.load(R(1), slot, 0);
    p.op_reg(Op::Mov, R(2), now);
    p.op_imm(Op::Add, R(2), STACK_BURST * STACK_INTERVAL);
    p.jump_if_both(R(1), Cond::Greater, R(2), not);
    p.jump_if_both(R(1), Cond::Greater, now, after);
    p.op_reg(Op::Mov, R(1), now);
    p.bind(after);
    p.op_imm(Op::Add, R(1), STACK_INTERVAL);
    p.store(slot, 0, R(1));
}

/// Records a return, with its result.
pub(super) fn record_return(p: &mut Program, maps: Maps) {
    p.store_imm(STACK, RECORD, 0);
    p.store_imm(STACK, RECORD + 8, 0);
    p.load(R(1), CONTEXT, VALUE);
    p.store(STACK, RECORD + at(call_record::RESULT), R(1));
    output_from(p, maps.leaves, (STACK, RECORD), call_record::EXIT_SIZE);
}
