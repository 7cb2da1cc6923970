//! Accounts and block from JSON, in the form of a genesis file: `alloc` with `balance`, `nonce`,
//! `code` and `storage` for each address, and beside it `coinbase`, `timestamp`, `number`,
//! `gasLimit`, `baseFeePerGas`, `difficulty`, `config.chainId`. Other keys are passed over.

const std = @import("std");
const Allocator = std.mem.Allocator;
const Value = std.json.Value;
const frames = @import("frame.zig");
const states = @import("state.zig");

pub const Error = error{ NotJson, NotAnObject, NotANumber, NotHex } || Allocator.Error;

/// Reads `text` into the machine's state and context.
pub fn load(machine: *frames.Machine, text: []const u8) Error!void {
    const parsed = std.json.parseFromSlice(Value, machine.allocator, text, .{}) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => error.NotJson,
    };
    defer parsed.deinit();
    const top = try object(parsed.value);
    const context = &machine.context;
    context.coinbase = try field(u160, top, "coinbase", context.coinbase);
    context.timestamp = try field(u64, top, "timestamp", context.timestamp);
    context.number = try field(u64, top, "number", context.number);
    context.gas_limit = try field(u64, top, "gasLimit", context.gas_limit);
    context.base_fee = try field(u256, top, "baseFeePerGas", context.base_fee);
    if (top.get("config")) |config| {
        context.chain_id = try field(u256, try object(config), "chainId", context.chain_id);
    }
    const alloc = top.get("alloc") orelse return;
    var accounts = (try object(alloc)).iterator();
    while (accounts.next()) |entry| {
        try loadAccount(machine, try digits(u160, entry.key_ptr.*), try object(entry.value_ptr.*));
    }
}

fn loadAccount(machine: *frames.Machine, address: states.Address, account: std.json.ObjectMap) Error!void {
    const state = machine.state;
    try state.setAccount(address, .{
        .balance = try field(u256, account, "balance", 0),
        .nonce = try field(u64, account, "nonce", 0),
    });
    if (account.get("code")) |code| {
        const text = switch (code) {
            .string => |string| bare(string),
            else => return error.NotHex,
        };
        const bytes = try machine.allocator.alloc(u8, text.len / 2);
        defer machine.allocator.free(bytes);
        _ = std.fmt.hexToBytes(bytes, text) catch return error.NotHex;
        try state.setCode(address, bytes);
    }
    const storage = account.get("storage") orelse return;
    var slots = (try object(storage)).iterator();
    while (slots.next()) |slot| {
        const key = try digits(u256, slot.key_ptr.*);
        try state.setSlot(.{ .address = address, .key = key }, .{ .now = try number(u256, slot.value_ptr.*) });
    }
}

fn object(value: Value) Error!std.json.ObjectMap {
    return switch (value) {
        .object => |map| map,
        else => error.NotAnObject,
    };
}

fn field(comptime T: type, map: std.json.ObjectMap, name: []const u8, default: T) Error!T {
    return number(T, map.get(name) orelse return default);
}

/// A number as JSON's own, or as text: hex behind `0x`, else decimal.
fn number(comptime T: type, value: Value) Error!T {
    const text = switch (value) {
        .integer => |integer| return std.math.cast(T, integer) orelse error.NotANumber,
        .string, .number_string => |string| string,
        else => return error.NotANumber,
    };
    if (std.mem.startsWith(u8, text, "0x")) return if (text.len == 2) 0 else digits(T, text);
    return std.fmt.parseInt(T, text, 10) catch error.NotANumber;
}

/// Hex digits, with or without `0x`.
fn digits(comptime T: type, text: []const u8) Error!T {
    return std.fmt.parseInt(T, bare(text), 16) catch error.NotANumber;
}

fn bare(text: []const u8) []const u8 {
    return if (std.mem.startsWith(u8, text, "0x")) text[2..] else text;
}

const testing = std.testing;

test "accounts, storage and block are read" {
    var state: states.State = .{ .allocator = testing.allocator };
    defer state.deinit();
    var machine: frames.Machine = .{ .allocator = testing.allocator, .state = &state, .context = .{} };
    try load(&machine,
        \\{"number": "0x10", "config": {"chainId": 5}, "alloc": {
        \\  "0x00000000000000000000000000000000000000aa":
        \\    {"balance": "0x0a", "nonce": 3, "code": "0x6001", "storage": {"0x01": "0x02"}}}}
    );
    const account = state.account(0xaa);
    try testing.expectEqual(10, account.balance);
    try testing.expectEqual(3, account.nonce);
    try testing.expectEqualSlices(u8, &.{ 0x60, 0x01 }, account.codeBytes());
    try testing.expectEqual(2, state.slot(.{ .address = 0xaa, .key = 1 }).now);
    try testing.expectEqual(16, machine.context.number);
    try testing.expectEqual(5, machine.context.chain_id);
}

test "what is no prestate is refused" {
    var state: states.State = .{ .allocator = testing.allocator };
    defer state.deinit();
    var machine: frames.Machine = .{ .allocator = testing.allocator, .state = &state, .context = .{} };
    try testing.expectError(error.NotJson, load(&machine, "{"));
    try testing.expectError(error.NotAnObject, load(&machine, "[]"));
    try testing.expectError(error.NotANumber, load(&machine, "{\"number\": \"x\"}"));
    try testing.expectError(error.NotHex, load(&machine, "{\"alloc\": {\"01\": {\"code\": \"0x6\"}}}"));
}
