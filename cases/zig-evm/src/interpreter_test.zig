//! Programs of a few instructions, and what must come of them.

const std = @import("std");
const testing = std.testing;
const calls = @import("calls.zig");
const frames = @import("frame.zig");
const states = @import("state.zig");
const transaction = @import("transaction.zig");

/// A machine with accounts of its own.
const World = struct {
    state: states.State = .{ .allocator = testing.allocator },

    fn run(self: *World, comptime hex: []const u8, gas: u64) !calls.Outcome {
        var machine: frames.Machine = .{ .allocator = testing.allocator, .state = &self.state, .context = .{} };
        defer machine.deinit();
        const request: transaction.Transaction = .{ .gas = gas };
        try self.state.setCode(request.receiver, &bytes(hex));
        return transaction.run(&machine, request);
    }

    fn account(self: *World, address: states.Address, comptime hex: []const u8, balance: u256) !void {
        try self.state.setAccount(address, .{ .balance = balance });
        try self.state.setCode(address, &bytes(hex));
    }
};

fn bytes(comptime hex: []const u8) [hex.len / 2]u8 {
    @setEvalBranchQuota(20_000);
    var result: [hex.len / 2]u8 = undefined;
    _ = std.fmt.hexToBytes(&result, hex) catch unreachable;
    return result;
}

/// Runs `hex`; the word that it returns, and the gas that it used.
fn expectWord(comptime hex: []const u8, word: u256, gas: u64) !void {
    var world: World = .{};
    defer world.state.deinit();
    const outcome = try world.run(hex ++ return_top, 1_000_000);
    defer testing.allocator.free(outcome.output);
    try testing.expect(outcome.succeeded());
    try testing.expectEqual(word, std.mem.readInt(u256, outcome.output[0..32], .big));
    try testing.expectEqual(gas, 1_000_000 - outcome.gas - return_gas);
}

fn expectFailure(comptime hex: []const u8, gas: u64, why: frames.Error) !void {
    var world: World = .{};
    defer world.state.deinit();
    const outcome = try world.run(hex, gas);
    defer testing.allocator.free(outcome.output);
    try testing.expectEqual(why, outcome.failure.?);
    try testing.expectEqual(0, outcome.gas);
}

/// PUSH0 MSTORE PUSH1 32 PUSH0 RETURN, and its gas with one word of memory.
const return_top = "5f5260205ff3";
const return_gas = 2 + 3 + 3 + 3 + 2;

test "arithmetic, and what it costs" {
    try expectWord("6002600101", 3, 9);
    try expectWord("6001600203", 1, 9);
    try expectWord("600a600302", 30, 11);
    try expectWord("6003600a04", 3, 11);
    try expectWord("60ff6000" ++ "0b", (1 << 256) - 1, 11);
    try expectWord("6101006002" ++ "0a", 0, 6 + 10 + 100);
    try expectWord("600160021b", 4, 9);
}

test "memory grows by words, and says how far" {
    try expectWord("60016110005259", 0x1020, 3 + 3 + 3 + 2 + 3 * 129 + 129 * 129 / 512 - 3);
}

test "keccak of nothing" {
    try expectWord("5f5f20", 0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470, 34);
}

test "a jump goes to its mark and nowhere else" {
    try expectWord("600456fe5b6007", 7, 3 + 8 + 1 + 3);
    try expectFailure("600356005b", 100, error.InvalidJump);
    try expectFailure("6003566000" ++ "5b", 100, error.InvalidJump);
    try expectFailure("60015660" ++ "5b", 100, error.InvalidJump);
}

test "what may not go on keeps no gas" {
    try expectFailure("01", 100, error.StackUnderflow);
    try expectFailure("5b5f600056", 100, error.OutOfGas);
    try expectFailure("5b5f600056", 10_000_000, error.StackOverflow);
    try expectFailure("0c", 100, error.InvalidOpcode);
    try expectFailure("fe", 100, error.InvalidOpcode);
    try expectFailure("60015f5f3e", 1000, error.ReturnDataOutOfBounds);
    try expectFailure("60017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff52", 1 << 60, error.OutOfGas);
}

test "storage: first access, set, change and clear, with the refund" {
    // SSTORE(1, 5); SLOAD(1)
    try expectWord("6005600155600154", 5, 3 + 3 + 22_100 + 3 + 100);
    var world: World = .{};
    defer world.state.deinit();
    // Set, then clear again in the same transaction: all but a warm access comes back.
    const outcome = try world.run("6005600155" ++ "5f600155", 100_000);
    try testing.expect(outcome.succeeded());
    try testing.expectEqual(19_900, world.state.refund);
    try testing.expectEqual(0, world.state.slot(.{ .address = (transaction.Transaction{}).receiver, .key = 1 }).now);
}

test "a call that leaves too little gas may not store" {
    try expectFailure("6005600155", 2306, error.OutOfGas);
}

test "transient storage is kept within the transaction" {
    try expectWord("600960015d60015c", 9, 3 + 3 + 100 + 3 + 100);
}

test "copies may overlap" {
    // MSTORE(0, 1..32) as bytes, then MCOPY(1, 0, 32), MLOAD(1)
    const word = 0x0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20;
    try expectWord("7f0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f205f52" ++ "60205f60015e" ++ "600151", word, 3 + 2 + 6 + 3 + 2 + 3 + 3 + 3 + 3 + 3 + 3 - 3);
}

test "a revert gives back its data and the gas that is left" {
    var world: World = .{};
    defer world.state.deinit();
    const outcome = try world.run("6007600155" ++ "60015ffd", 100_000);
    defer testing.allocator.free(outcome.output);
    try testing.expectEqual(null, outcome.failure);
    try testing.expect(!outcome.succeeded());
    try testing.expectEqualSlices(u8, &.{0}, outcome.output);
    try testing.expectEqual(0, world.state.slot(.{ .address = (transaction.Transaction{}).receiver, .key = 1 }).now);
    try testing.expect(outcome.gas > 70_000);
}

/// PUSH0 five times (value and both ranges), the target, all gas, CALL.
const call_aa = "5f5f5f5f5f60aa5af1";

test "a call runs the other's code on the other's storage" {
    var world: World = .{};
    defer world.state.deinit();
    try world.account(0xaa, "6005600155", 0);
    const outcome = try world.run(call_aa ++ return_top, 100_000);
    defer testing.allocator.free(outcome.output);
    try testing.expectEqual(1, outcome.output[31]);
    try testing.expectEqual(5, world.state.slot(.{ .address = 0xaa, .key = 1 }).now);
}

test "a static call refuses writes, with all its gas, and the caller goes on" {
    var world: World = .{};
    defer world.state.deinit();
    try world.account(0xaa, "6005600155", 0);
    const outcome = try world.run("5f5f5f5f60aa612710fa" ++ return_top, 100_000);
    defer testing.allocator.free(outcome.output);
    try testing.expectEqual(0, outcome.output[31]);
    try testing.expectEqual(0, world.state.slot(.{ .address = 0xaa, .key = 1 }).now);
    try testing.expectEqual(100_000 - 4 * 2 - 3 - 3 - 2600 - 10_000 - return_gas, outcome.gas);
}

test "calls nest 1024 deep and no deeper" {
    var world: World = .{};
    defer world.state.deinit();
    // Adds one to its own slot 0, then calls itself with all its gas.
    const outcome = try world.run("60015f54015f55" ++ "5f5f5f5f5f305af1", 1 << 60);
    try testing.expect(outcome.succeeded());
    const receiver = (transaction.Transaction{}).receiver;
    try testing.expectEqual(1025, world.state.slot(.{ .address = receiver, .key = 0 }).now);
}

test "created accounts have the address that creator and nonce give" {
    const creator = 0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0;
    try testing.expectEqual(0xcd234a471b72ba2f1ccf0a70fcaba648a5eecd8d, calls.nextAddress(creator, 0));
    try testing.expectEqual(0x343c43a37d37dff08ae8c4a11544c718abb4fcf8, calls.nextAddress(creator, 1));
}

test "creating keeps the code that is returned" {
    var world: World = .{};
    defer world.state.deinit();
    // Init code 60015ff3: returns one zero byte. MSTORE puts it at the word's end.
    const outcome = try world.run("6360015ff35f526004601c5ff0" ++ "3b" ++ return_top, 200_000);
    defer testing.allocator.free(outcome.output);
    try testing.expectEqual(1, outcome.output[31]);
}
