//! What is fixed about each instruction: its name, what it takes and leaves on the stack, and the
//! gas it costs before its operands are looked at. As of the Cancun rules.

const std = @import("std");

pub const Op = enum(u8) {
    // zig fmt: off
    STOP = 0x00, ADD, MUL, SUB, DIV, SDIV, MOD, SMOD, ADDMOD, MULMOD, EXP, SIGNEXTEND,
    LT = 0x10, GT, SLT, SGT, EQ, ISZERO, AND, OR, XOR, NOT, BYTE, SHL, SHR, SAR,
    KECCAK256 = 0x20,
    ADDRESS = 0x30, BALANCE, ORIGIN, CALLER, CALLVALUE, CALLDATALOAD, CALLDATASIZE, CALLDATACOPY,
    CODESIZE, CODECOPY, GASPRICE, EXTCODESIZE, EXTCODECOPY, RETURNDATASIZE, RETURNDATACOPY,
    EXTCODEHASH,
    BLOCKHASH = 0x40, COINBASE, TIMESTAMP, NUMBER, PREVRANDAO, GASLIMIT, CHAINID, SELFBALANCE,
    BASEFEE, BLOBHASH, BLOBBASEFEE,
    POP = 0x50, MLOAD, MSTORE, MSTORE8, SLOAD, SSTORE, JUMP, JUMPI, PC, MSIZE, GAS, JUMPDEST,
    TLOAD, TSTORE, MCOPY, PUSH0,
    PUSH1 = 0x60, PUSH2, PUSH3, PUSH4, PUSH5, PUSH6, PUSH7, PUSH8, PUSH9, PUSH10, PUSH11, PUSH12,
    PUSH13, PUSH14, PUSH15, PUSH16, PUSH17, PUSH18, PUSH19, PUSH20, PUSH21, PUSH22, PUSH23, PUSH24,
    PUSH25, PUSH26, PUSH27, PUSH28, PUSH29, PUSH30, PUSH31, PUSH32,
    DUP1 = 0x80, DUP2, DUP3, DUP4, DUP5, DUP6, DUP7, DUP8, DUP9, DUP10, DUP11, DUP12, DUP13, DUP14,
    DUP15, DUP16,
    SWAP1 = 0x90, SWAP2, SWAP3, SWAP4, SWAP5, SWAP6, SWAP7, SWAP8, SWAP9, SWAP10, SWAP11, SWAP12,
    SWAP13, SWAP14, SWAP15, SWAP16,
    LOG0 = 0xa0, LOG1, LOG2, LOG3, LOG4,
    CREATE = 0xf0, CALL, CALLCODE, RETURN, DELEGATECALL, CREATE2,
    STATICCALL = 0xfa,
    REVERT = 0xfd, INVALID, SELFDESTRUCT,
    // zig fmt: on
    _,
};

pub const Shape = struct {
    /// Words taken off the stack, and put there.
    takes: u8,
    leaves: u8,
    gas: u16,
};

/// The shape of `op`. Bytes that are no instruction have none.
pub fn shape(op: Op) ?Shape {
    return switch (@intFromEnum(op)) {
        0x60...0x7f => s(0, 1, 3),
        0x80...0x8f => |byte| s(byte - 0x7f, byte - 0x7e, 3),
        0x90...0x9f => |byte| s(byte - 0x8e, byte - 0x8e, 3),
        0xa0...0xa4 => |byte| s(byte - 0xa0 + 2, 0, 375 + 375 * @as(u16, byte - 0xa0)),
        else => named(op),
    };
}

fn named(op: Op) ?Shape {
    return switch (op) {
        .STOP, .INVALID => s(0, 0, 0),
        .ADD, .SUB, .LT, .GT, .SLT, .SGT, .EQ, .AND, .OR, .XOR, .BYTE, .SHL, .SHR, .SAR => s(2, 1, 3),
        .MUL, .DIV, .SDIV, .MOD, .SMOD, .SIGNEXTEND => s(2, 1, 5),
        .ADDMOD, .MULMOD => s(3, 1, 8),
        .EXP => s(2, 1, 10),
        .ISZERO, .NOT, .CALLDATALOAD, .MLOAD, .BLOBHASH => s(1, 1, 3),
        .KECCAK256 => s(2, 1, 30),
        .ADDRESS, .ORIGIN, .CALLER, .CALLVALUE, .CALLDATASIZE, .CODESIZE, .GASPRICE => s(0, 1, 2),
        .RETURNDATASIZE, .COINBASE, .TIMESTAMP, .NUMBER, .PREVRANDAO, .GASLIMIT => s(0, 1, 2),
        .CHAINID, .BASEFEE, .BLOBBASEFEE, .PC, .MSIZE, .GAS, .PUSH0 => s(0, 1, 2),
        .SELFBALANCE => s(0, 1, 5),
        // What these cost beyond a warm access depends on whether it is the first.
        .BALANCE, .EXTCODESIZE, .EXTCODEHASH => s(1, 1, 0),
        .SLOAD => s(1, 1, 0),
        .SSTORE => s(2, 0, 0),
        .EXTCODECOPY => s(4, 0, 0),
        .CALLDATACOPY, .CODECOPY, .RETURNDATACOPY, .MCOPY => s(3, 0, 3),
        .BLOCKHASH => s(1, 1, 20),
        .POP => s(1, 0, 2),
        .MSTORE, .MSTORE8 => s(2, 0, 3),
        .JUMP => s(1, 0, 8),
        .JUMPI => s(2, 0, 10),
        .JUMPDEST => s(0, 0, 1),
        .TLOAD => s(1, 1, 100),
        .TSTORE => s(2, 0, 100),
        .CREATE => s(3, 1, 32_000),
        .CREATE2 => s(4, 1, 32_000),
        .CALL, .CALLCODE => s(7, 1, 0),
        .DELEGATECALL, .STATICCALL => s(6, 1, 0),
        .RETURN, .REVERT => s(2, 0, 0),
        .SELFDESTRUCT => s(1, 0, 5000),
        else => null,
    };
}

fn s(takes: u8, leaves: u8, gas: u16) Shape {
    return .{ .takes = takes, .leaves = leaves, .gas = gas };
}

/// How an instruction is called in a trace.
pub fn name(op: Op) []const u8 {
    return std.enums.tagName(Op, op) orelse "(none)";
}

test "the numbered families line up with their first member" {
    const testing = std.testing;
    try testing.expectEqual(0x7f, @intFromEnum(Op.PUSH32));
    try testing.expectEqual(0x8f, @intFromEnum(Op.DUP16));
    try testing.expectEqual(0x9f, @intFromEnum(Op.SWAP16));
    try testing.expectEqual(s(16, 17, 3), shape(.DUP16).?);
    try testing.expectEqual(s(17, 17, 3), shape(.SWAP16).?);
    try testing.expectEqual(s(6, 0, 1875), shape(.LOG4).?);
    try testing.expectEqual(0x5f, @intFromEnum(Op.PUSH0));
    try testing.expectEqual(null, shape(@enumFromInt(0x0c)));
    for (std.enums.values(Op)) |op| try testing.expect(shape(op) != null);
}
