//! One program run from outside: who calls what, and what must be warm before.

const std = @import("std");
const Word = @import("word.zig").Word;
const calls = @import("calls.zig");
const frames = @import("frame.zig");
const states = @import("state.zig");
const precompiles = @import("precompiles.zig");

pub const Transaction = struct {
    /// Short words as addresses, as other tools for single programs have them.
    sender: states.Address = tag("sender"),
    receiver: states.Address = tag("receiver"),
    value: Word = 0,
    input: []const u8 = &.{},
    gas: u64 = 10_000_000_000,
};

/// Calls the receiver. What it changed stays in the state, unless it failed.
pub fn run(machine: *frames.Machine, transaction: Transaction) (frames.Error || error{Poor})!calls.Outcome {
    const state = machine.state;
    state.begin();
    machine.context.origin = transaction.sender;
    for ([_]states.Address{ transaction.sender, transaction.receiver, machine.context.coinbase }) |address| {
        _ = try state.warmAccount(address);
    }
    for (1..precompiles.count + 1) |address| _ = try state.warmAccount(@intCast(address));
    if (state.account(transaction.sender).balance < transaction.value) return error.Poor;
    return calls.call(machine, .{
        .target = transaction.receiver,
        .address = transaction.receiver,
        .caller = transaction.sender,
        .value = transaction.value,
        .moves = transaction.value,
        .input = transaction.input,
        .gas = transaction.gas,
        .depth = 0,
        .static = false,
    });
}

fn tag(comptime text: []const u8) states.Address {
    return std.mem.readInt(std.meta.Int(.unsigned, 8 * text.len), text[0..text.len], .big);
}
