//! From account to account: the five kinds of call, the two of creating, and destruction.
//!
//! A call that fails gives back no gas and undoes its changes; one that reverts keeps what is left.

const std = @import("std");
const words = @import("word.zig");
const Word = words.Word;
const Op = @import("opcode.zig").Op;
const Code = @import("code.zig").Code;
const frames = @import("frame.zig");
const Frame = frames.Frame;
const Machine = frames.Machine;
const Error = frames.Error;
const charge = frames.charge;
const states = @import("state.zig");
const Address = states.Address;
const interpreter = @import("interpreter.zig");
const precompiles = @import("precompiles.zig");

const max_depth = 1024;
const max_code = 24_576;
const max_init_code = 2 * max_code;

/// How a call ended. `failure` says why, if it did.
pub const Outcome = struct {
    ending: frames.Ending,
    failure: ?Error = null,
    gas: u64,
    /// Owned by who asked for it.
    output: []u8,

    pub fn succeeded(self: Outcome) bool {
        return self.failure == null and self.ending == .stop;
    }

    fn failed(why: Error) Outcome {
        return .{ .ending = .revert, .failure = why, .gas = 0, .output = &.{} };
    }
};

/// What is called, for whom, with what.
pub const Request = struct {
    /// Whose code runs.
    target: Address,
    /// On whose storage and balance.
    address: Address,
    caller: Address,
    /// What the called code sees as its value.
    value: Word,
    /// What really moves from caller to address.
    moves: Word,
    input: []const u8,
    gas: u64,
    depth: u16,
    static: bool,
};

/// Calls an account or a precompile. The caller's balance has been looked at.
pub fn call(machine: *Machine, request: Request) Error!Outcome {
    const state = machine.state;
    const mark = state.mark();
    try transfer(state, request.caller, request.address, request.moves);
    const outcome = if (precompiles.at(request.target)) |which|
        try callPrecompile(machine, which, request)
    else if (state.account(request.target).code) |code|
        try execute(machine, code, request)
    else
        Outcome{ .ending = .stop, .gas = request.gas, .output = &.{} };
    if (!outcome.succeeded()) state.revert(mark);
    return outcome;
}

fn callPrecompile(machine: *Machine, which: precompiles.Precompile, request: Request) Error!Outcome {
    const result = precompiles.run(machine.allocator, which, request.input, request.gas) catch |why|
        return fatalOr(why);
    return .{ .ending = .stop, .gas = result.gas, .output = result.output };
}

/// Runs code in a frame of its own.
fn execute(machine: *Machine, code: *Code, request: Request) Error!Outcome {
    const allocator = machine.allocator;
    var frame: Frame = .{
        .machine = machine,
        .address = request.address,
        .caller = request.caller,
        .value = request.value,
        .input = request.input,
        .code = code,
        .gas = request.gas,
        .depth = request.depth,
        .static = request.static,
        .stack = try machine.stackAt(request.depth),
    };
    defer frame.deinit();
    const ending = interpreter.run(&frame) catch |why| return fatalOr(why);
    const output = try allocator.dupe(u8, frame.output);
    return .{ .ending = ending, .gas = frame.gas, .output = output };
}

/// What ends only a call becomes its outcome; what ends the run goes on up.
fn fatalOr(why: Error) Error!Outcome {
    return switch (why) {
        error.OutOfMemory, error.PrecompileMissing => why,
        else => Outcome.failed(why),
    };
}

/// A call or creation that code asks for: gas left, and the word that it leaves on the stack.
pub fn fromCode(comptime op: Op, frame: *Frame, gas: u64, operands: []const Word) Error!struct { u64, Word } {
    return switch (op) {
        .CREATE, .CREATE2 => createFromCode(op, frame, gas, operands),
        else => callFromCode(op, frame, gas, operands),
    };
}

fn callFromCode(comptime op: Op, frame: *Frame, gas: u64, operands: []const Word) Error!struct { u64, Word } {
    // The operands lie as they were pushed: the first is the last.
    const has_value = op == .CALL or op == .CALLCODE;
    const n = operands.len;
    const target: Address = @truncate(operands[n - 2]);
    const value = if (has_value) operands[n - 3] else 0;
    const in_at, const in_size, const out_at, const out_size = .{ operands[3], operands[2], operands[1], operands[0] };

    const state = frame.state();
    var left, const account = try frame.look(gas, target);
    if (op == .CALL and frame.static and value != 0) return error.WriteProtection;
    const input_end = try end(in_at, in_size);
    const output_end = try end(out_at, out_size);
    const reach = @max(input_end, output_end);
    if (reach > frame.memory.bytes.len) left = try frame.expand(left, reach);
    if (value != 0) left = try charge(left, 9000);
    if (op == .CALL and value != 0 and account.isEmpty()) left = try charge(left, 25_000);

    // One part in 64 stays, so that the caller can go on.
    const given: u64 = @intCast(@min(operands[n - 1], left - left / 64));
    left -= given;
    const child_gas = given + if (value != 0) @as(u64, frames.stipend) else 0;
    frame.setReturned(&.{});
    if (frame.depth == max_depth or value > state.account(frame.address).balance) {
        return .{ left + child_gas, 0 };
    }
    const outcome = try call(frame.machine, .{
        .target = target,
        .address = if (op == .CALL or op == .STATICCALL) target else frame.address,
        .caller = if (op == .DELEGATECALL) frame.caller else frame.address,
        .value = if (op == .DELEGATECALL) frame.value else value,
        .moves = if (op == .CALL) value else 0,
        .input = frame.memory.bytes[slice(in_at, in_size)..][0..@intCast(in_size)],
        .gas = child_gas,
        .depth = frame.depth + 1,
        .static = frame.static or op == .STATICCALL,
    });
    frame.setReturned(outcome.output);
    const copied = @min(outcome.output.len, @as(usize, @intCast(out_size)));
    @memcpy(frame.memory.bytes[slice(out_at, out_size)..][0..copied], outcome.output[0..copied]);
    return .{ left + outcome.gas, @intFromBool(outcome.succeeded()) };
}

fn createFromCode(comptime op: Op, frame: *Frame, gas: u64, operands: []const Word) Error!struct { u64, Word } {
    if (frame.static) return error.WriteProtection;
    const n = operands.len;
    const value = operands[n - 1];
    const at, const size = .{ operands[n - 2], operands[n - 3] };
    const reach = try end(at, size);
    if (size > max_init_code) return error.OutOfGas;
    var left = gas;
    if (reach > frame.memory.bytes.len) left = try frame.expand(left, reach);
    const init_words = (@as(u64, @intCast(size)) + 31) / 32;
    left = try charge(left, init_words * (if (op == .CREATE2) 8 else 2));

    const given = left - left / 64;
    frame.setReturned(&.{});
    const own = frame.state().account(frame.address);
    if (frame.depth == max_depth or value > own.balance or own.nonce == std.math.maxInt(u64)) {
        return .{ left, 0 };
    }
    const init = frame.memory.bytes[slice(at, size)..][0..@intCast(size)];
    const address = if (op == .CREATE2) saltedAddress(frame.address, operands[0], init) else nextAddress(frame.address, own.nonce);
    const outcome = try create(frame.machine, frame.address, address, init, .{
        .value = value,
        .gas = given,
        .depth = frame.depth + 1,
    });
    // Code that was made is in the account; only the reasons of a revert are given back.
    const reverted = outcome.failure == null and outcome.ending == .revert;
    if (reverted) frame.setReturned(outcome.output) else frame.allocator().free(outcome.output);
    return .{ left - given + outcome.gas, if (outcome.succeeded()) address else 0 };
}

const Creation = struct { value: Word, gas: u64, depth: u16 };

/// Runs `init` as the code of a new account, which keeps what it gives back as its code.
pub fn create(machine: *Machine, creator: Address, address: Address, init: []const u8, creation: Creation) Error!Outcome {
    const state = machine.state;
    var own = state.account(creator);
    own.nonce += 1;
    try state.setAccount(creator, own);
    _ = try state.warmAccount(address);
    var new = state.account(address);
    if (new.nonce != 0 or new.codeBytes().len != 0) return Outcome.failed(error.AddressTaken);

    const mark = state.mark();
    new.nonce = 1;
    new.created = true;
    try state.setAccount(address, new);
    try transfer(state, creator, address, creation.value);
    var code = try Code.init(machine.allocator, init);
    defer code.deinit(machine.allocator);
    var outcome = try execute(machine, &code, .{
        .target = address,
        .address = address,
        .caller = creator,
        .value = creation.value,
        .moves = 0,
        .input = &.{},
        .gas = creation.gas,
        .depth = creation.depth,
        .static = false,
    });
    if (outcome.succeeded()) {
        if (keep(state, address, outcome)) |left| {
            outcome.gas = left;
        } else |why| {
            machine.allocator.free(outcome.output);
            outcome = try fatalOr(why);
        }
    }
    if (!outcome.succeeded()) state.revert(mark);
    return outcome;
}

fn keep(state: *states.State, address: Address, outcome: Outcome) Error!u64 {
    const made = outcome.output;
    if (made.len > max_code) return error.CodeTooLarge;
    if (made.len > 0 and made[0] == 0xef) return error.CodeForbidden;
    const left = try charge(outcome.gas, 200 * @as(u64, made.len));
    if (made.len > 0) try state.setCode(address, made);
    return left;
}

/// Moves the whole balance. The account itself goes only if this transaction made it.
pub fn selfDestruct(frame: *Frame, gas: u64, heir: Address) Error!u64 {
    if (frame.static) return error.WriteProtection;
    const state = frame.state();
    var left = gas;
    if (try state.warmAccount(heir)) left = try charge(left, frames.cold_account);
    var own = state.account(frame.address);
    if (own.balance != 0 and state.account(heir).isEmpty()) left = try charge(left, 25_000);
    if (heir != frame.address) {
        try transfer(state, frame.address, heir, own.balance);
        own.balance = 0;
    }
    if (own.created) {
        own.balance = 0;
        own.destructed = true;
    }
    try state.setAccount(frame.address, own);
    return left;
}

fn transfer(state: *states.State, from: Address, to: Address, value: Word) Error!void {
    if (value == 0 or from == to) return;
    var payer = state.account(from);
    payer.balance -= value;
    try state.setAccount(from, payer);
    var payee = state.account(to);
    payee.balance +%= value;
    try state.setAccount(to, payee);
}

/// One past the last byte; nothing has no end.
fn end(at: Word, size: Word) Error!u64 {
    if (size == 0) return 0;
    const far = 1 << 40;
    if (at > far or size > far) return error.OutOfGas;
    return @as(u64, @intCast(at)) + @as(u64, @intCast(size));
}

/// Where a range begins; one of no bytes may be anywhere, and begins at 0.
fn slice(at: Word, size: Word) usize {
    return if (size == 0) 0 else @intCast(at);
}

/// Where the account goes that `creator` makes with this nonce.
pub fn nextAddress(creator: Address, nonce: u64) Address {
    // The list of both in recursive length prefix form: short strings and numbers only.
    var list: [32]u8 = undefined;
    list[1] = 0x80 + 20;
    std.mem.writeInt(Address, list[2..22], creator, .big);
    const number_bytes: usize = (64 - @as(usize, @clz(nonce)) + 7) / 8;
    var length: usize = 22;
    if (nonce == 0 or nonce >= 0x80) {
        list[length] = 0x80 + @as(u8, @intCast(number_bytes));
        length += 1;
    }
    for (0..number_bytes) |i| {
        list[length] = @truncate(nonce >> @intCast(8 * (number_bytes - 1 - i)));
        length += 1;
    }
    list[0] = 0xc0 + @as(u8, @intCast(length - 1));
    return @truncate(frames.keccak(list[0..length]));
}

fn saltedAddress(creator: Address, salt: Word, init: []const u8) Address {
    var bytes: [85]u8 = undefined;
    bytes[0] = 0xff;
    std.mem.writeInt(Address, bytes[1..21], creator, .big);
    std.mem.writeInt(Word, bytes[21..53], salt, .big);
    std.mem.writeInt(Word, bytes[53..85], frames.keccak(init), .big);
    return @truncate(frames.keccak(&bytes));
}
