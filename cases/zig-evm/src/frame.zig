//! One call while it runs, and the parts of instructions that are too long for the loop.
//!
//! Functions that cost gas take what is left and give back what is left then, so that the loop can
//! keep it in a register. Not for the loop itself, and not for calls between accounts.

const std = @import("std");
const Allocator = std.mem.Allocator;
const Word = @import("word.zig").Word;
const Code = @import("code.zig").Code;
const memory = @import("memory.zig");
const states = @import("state.zig");
const Address = states.Address;
const Trace = @import("trace.zig").Trace;

/// Why a call ended other than by its own will: it keeps no gas, and what it changed is undone.
/// The memory of this process running out, and what is not built, are no fault of the call: they end
/// the whole run.
pub const Error = error{
    OutOfGas,
    StackUnderflow,
    StackOverflow,
    InvalidJump,
    InvalidOpcode,
    WriteProtection,
    ReturnDataOutOfBounds,
    CodeTooLarge,
    CodeForbidden,
    AddressTaken,
    PrecompileFailed,
    PrecompileMissing,
} || Allocator.Error;

pub const Ending = enum { stop, revert };

/// What a transaction and its block tell to all calls.
pub const Context = struct {
    origin: Address = 0,
    gas_price: Word = 0,
    coinbase: Address = 0,
    timestamp: u64 = 0,
    number: u64 = 0,
    prevrandao: Word = 0,
    gas_limit: u64 = 0,
    chain_id: Word = 1,
    base_fee: Word = 1_000_000_000,
    blob_base_fee: Word = 0,
};

/// What all calls of a run share.
pub const Machine = struct {
    allocator: Allocator,
    state: *states.State,
    context: Context,
    trace: ?*Trace = null,
    /// One for each depth that was reached, kept for the next call that goes as deep.
    stacks: std.ArrayListUnmanaged(*Stack) = .empty,

    pub fn deinit(self: *Machine) void {
        for (self.stacks.items) |stack| self.allocator.destroy(stack);
        self.stacks.deinit(self.allocator);
    }

    pub fn stackAt(self: *Machine, depth: usize) Allocator.Error!*Stack {
        while (self.stacks.items.len <= depth) {
            try self.stacks.ensureUnusedCapacity(self.allocator, 1);
            self.stacks.appendAssumeCapacity(try self.allocator.create(Stack));
        }
        return self.stacks.items[depth];
    }
};

pub const Stack = [1024]Word;

pub const Frame = struct {
    machine: *Machine,
    /// Whose storage and balance it works on.
    address: Address,
    caller: Address,
    value: Word,
    input: []const u8,
    code: *Code,
    gas: u64,
    depth: u16 = 0,
    /// Changes of the state are refused.
    static: bool = false,

    stack: *Stack,
    memory: memory.Memory = .{},
    memory_price: u64 = 0,
    /// What the last call that it made gave back. Owned.
    returned: []u8 = &.{},
    /// What it gives back, in its memory.
    output: []const u8 = &.{},

    pub fn allocator(self: *const Frame) Allocator {
        return self.machine.allocator;
    }

    pub fn state(self: *const Frame) *states.State {
        return self.machine.state;
    }

    pub fn deinit(self: *Frame) void {
        self.allocator().free(self.returned);
        self.memory.deinit(self.allocator());
    }

    /// Grows the memory so that it has `end` bytes.
    pub fn expand(self: *Frame, gas: u64, end: u64) Error!u64 {
        const price = memory.price(end) orelse return error.OutOfGas;
        const left = try charge(gas, price - self.memory_price);
        try self.memory.grow(self.allocator(), end);
        self.memory_price = price;
        return left;
    }

    pub fn setReturned(self: *Frame, data: []u8) void {
        self.allocator().free(self.returned);
        self.returned = data;
    }

    /// The word of the input at `offset`, zero where it has ended.
    pub fn inputWord(self: *const Frame, offset: Word) Word {
        if (offset >= self.input.len) return 0;
        const rest = self.input[@intCast(offset)..];
        var bytes = [_]u8{0} ** 32;
        const n = @min(rest.len, 32);
        @memcpy(bytes[0..n], rest[0..n]);
        return std.mem.readInt(Word, &bytes, .big);
    }

    pub fn sload(self: *Frame, gas: u64, key: Word) Error!struct { u64, Word } {
        const place: states.Place = .{ .address = self.address, .key = key };
        const slot = self.state().slot(place);
        if (slot.warm) return .{ try charge(gas, warm), slot.now };
        const left = try charge(gas, cold_slot);
        try self.state().setSlot(place, .{ .now = slot.now, .before = slot.before, .warm = true });
        return .{ left, slot.now };
    }

    pub fn sstore(self: *Frame, gas: u64, key: Word, value: Word) Error!u64 {
        if (self.static) return error.WriteProtection;
        // Less than a plain transfer leaves: such a call may not write.
        if (gas <= stipend) return error.OutOfGas;
        const place: states.Place = .{ .address = self.address, .key = key };
        const slot = self.state().slot(place);
        var left = try charge(gas, if (slot.warm) 0 else cold_slot);
        left = try charge(left, storePrice(slot, value));
        try self.countRefund(slot, value);
        try self.state().setSlot(place, .{ .now = value, .before = slot.before, .warm = true });
        return left;
    }

    fn countRefund(self: *Frame, slot: states.Slot, value: Word) Error!void {
        if (slot.now == value) return;
        var refund = self.state().refund;
        if (slot.before != 0) {
            // What was given for clearing it is taken back if it is filled again.
            if (slot.now == 0) refund -%= clearing;
            if (value == 0) refund +%= clearing;
        }
        if (slot.before == value and slot.now != slot.before) {
            refund +%= if (slot.before == 0) 20_000 - warm else 5000 - cold_slot - warm;
        }
        if (refund != self.state().refund) try self.state().setRefund(refund);
    }

    pub fn tload(self: *const Frame, key: Word) Word {
        return self.state().loadTransient(.{ .address = self.address, .key = key });
    }

    pub fn tstore(self: *Frame, key: Word, value: Word) Error!void {
        if (self.static) return error.WriteProtection;
        try self.state().storeTransient(.{ .address = self.address, .key = key }, value);
    }

    /// Another account, paid for by whether it is warm.
    pub fn look(self: *Frame, gas: u64, word: Word) Error!struct { u64, states.Account } {
        const address: Address = @truncate(word);
        const first = try self.state().warmAccount(address);
        const left = try charge(gas, if (first) cold_account else warm);
        return .{ left, self.state().account(address) };
    }

    pub fn log(self: *Frame, topics: []const Word, data: []const u8) Error!void {
        if (self.static) return error.WriteProtection;
        try self.state().append(.{ .address = self.address, .topics = topics, .data = data });
    }

    /// There is no chain here. As other tools for single programs have it, a block's hash is that of
    /// its number in decimal.
    pub fn blockHash(self: *const Frame, word: Word) Word {
        const number = self.machine.context.number;
        if (word >= number or number - word > 256) return 0;
        var digits: [20]u8 = undefined;
        return keccak(std.fmt.bufPrint(&digits, "{d}", .{word}) catch unreachable);
    }
};

pub const warm = 100;
pub const cold_account = 2600;
pub const stipend = 2300;
const cold_slot = 2100;
const clearing = 4800;

pub inline fn charge(gas: u64, price: u64) error{OutOfGas}!u64 {
    if (gas < price) return error.OutOfGas;
    return gas - price;
}

fn storePrice(slot: states.Slot, value: Word) u64 {
    if (slot.now == value or slot.now != slot.before) return warm;
    return if (slot.before == 0) 20_000 else 5000 - cold_slot;
}

pub fn keccak(bytes: []const u8) Word {
    var digest: [32]u8 = undefined;
    std.crypto.hash.sha3.Keccak256.hash(bytes, &digest, .{});
    return std.mem.readInt(Word, &digest, .big);
}
