//! Code: read from a stream as bytes or as hex digits, and made ready to run.

const std = @import("std");
const Allocator = std.mem.Allocator;

pub const Form = enum { either, raw, hex };

/// More than any transaction can carry; a stream without an end is not read for ever.
pub const max_bytes = 1 << 24;

/// Room for most contracts: a list that grows from nothing is moved a dozen times on the way.
const usual_bytes = 8 << 10;

/// Everything that `reader` has left. The caller frees it.
pub fn read(allocator: Allocator, reader: anytype) !std.ArrayListUnmanaged(u8) {
    var bytes: std.ArrayListUnmanaged(u8) = .empty;
    errdefer bytes.deinit(allocator);
    try bytes.ensureTotalCapacity(allocator, usual_bytes);
    while (true) {
        const byte = reader.readByte() catch |err| switch (err) {
            error.EndOfStream => return bytes,
            else => return err,
        };
        if (bytes.items.len == max_bytes) return error.CodeTooLong;
        try bytes.append(allocator, byte);
    }
}

/// The bytes that a text stands for, decoded in its own place. White space at its ends and `0x`
/// before it are allowed. Text that could be either is hex: two digits a byte is what people write.
pub fn decode(text: []u8, form: Form) ![]u8 {
    if (form == .raw) return text;
    const trimmed = std.mem.trim(u8, text, " \t\r\n");
    const digits = if (std.mem.startsWith(u8, trimmed, "0x")) trimmed[2..] else trimmed;
    const is_hex = for (digits) |c| {
        if (!std.ascii.isHex(c)) break false;
    } else true;
    if (!is_hex) return if (form == .hex) error.NotHex else text;
    if (digits.len % 2 != 0) return error.HalfAByte;
    for (0..digits.len / 2) |i| {
        text[i] = std.fmt.parseInt(u8, digits[2 * i ..][0..2], 16) catch unreachable;
    }
    return text[0 .. digits.len / 2];
}

/// Code with room behind it, so that neither an instruction nor its operand is read past the end.
pub const Code = struct {
    /// The code, then `padding` zeroes: what lies behind the end stops.
    padded: []const u8,
    /// One bit for each byte: whether it may be jumped to. Made at the first jump.
    targets: ?[]const u64 = null,

    const padding = 33;

    pub const none: Code = .{ .padded = &([_]u8{0} ** padding) };

    pub fn init(allocator: Allocator, code: []const u8) !Code {
        const padded = try allocator.alloc(u8, code.len + padding);
        @memcpy(padded[0..code.len], code);
        @memset(padded[code.len..], 0);
        return .{ .padded = padded };
    }

    pub fn deinit(self: *Code, allocator: Allocator) void {
        if (self.targets) |targets| allocator.free(targets);
        if (self.padded.ptr != none.padded.ptr) allocator.free(self.padded);
        self.* = none;
    }

    pub fn bytes(self: *const Code) []const u8 {
        return self.padded[0 .. self.padded.len - padding];
    }

    /// Marks every `JUMPDEST` that is not the operand of a `PUSH`.
    pub fn analyse(self: *Code, allocator: Allocator) ![]const u64 {
        if (self.targets) |targets| return targets;
        const code = self.bytes();
        const targets = try allocator.alloc(u64, code.len / 64 + 1);
        @memset(targets, 0);
        var pc: usize = 0;
        while (pc < code.len) : (pc += 1) switch (code[pc]) {
            0x5b => targets[pc / 64] |= @as(u64, 1) << @intCast(pc % 64),
            0x60...0x7f => |push| pc += push - 0x5f,
            else => {},
        };
        self.targets = targets;
        return targets;
    }
};

const testing = std.testing;

fn expectDecoded(expected: []const u8, text: []const u8, form: Form) !void {
    var buffer: [64]u8 = undefined;
    @memcpy(buffer[0..text.len], text);
    try testing.expectEqualSlices(u8, expected, try decode(buffer[0..text.len], form));
}

test "hex is told from raw bytes" {
    try expectDecoded(&.{ 0x60, 0x01 }, "0x6001\n", .either);
    try expectDecoded(&.{ 0x60, 0x01 }, " 6001", .either);
    try expectDecoded(&.{ 0x60, 0x01 }, &.{ 0x60, 0x01 }, .either);
    try expectDecoded("6001", "6001", .raw);
    try expectDecoded("", "", .either);
    try testing.expectError(error.HalfAByte, expectDecoded("", "600", .either));
    try testing.expectError(error.NotHex, expectDecoded("", "60x1", .hex));
}

test "a target inside an operand is none" {
    var code = try Code.init(testing.allocator, &.{ 0x60, 0x5b, 0x5b, 0x7f });
    defer code.deinit(testing.allocator);
    const targets = try code.analyse(testing.allocator);
    try testing.expectEqual(0b100, targets[0]);
}

test "a stream is read to its end" {
    var stream = std.io.fixedBufferStream("\x60\x01\x00");
    var bytes = try read(testing.allocator, stream.reader());
    defer bytes.deinit(testing.allocator);
    try testing.expectEqualSlices(u8, "\x60\x01\x00", bytes.items);
}
