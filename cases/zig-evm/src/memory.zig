//! A call's memory: bytes that are zero until written, in whole words, paid for by their number.

const std = @import("std");
const Allocator = std.mem.Allocator;
const Word = @import("word.zig").Word;

pub const Memory = struct {
    /// What has been touched so far, a multiple of 32 bytes.
    bytes: []u8 = &.{},
    capacity: usize = 0,

    pub fn deinit(self: *Memory, allocator: Allocator) void {
        allocator.free(self.bytes.ptr[0..self.capacity]);
        self.* = .{};
    }

    /// Grows to `size` bytes, rounded up to words.
    pub fn grow(self: *Memory, allocator: Allocator, size: usize) Allocator.Error!void {
        const wanted = std.mem.alignForward(usize, size, 32);
        const old = self.bytes.len;
        if (wanted > self.capacity) {
            // Doubling: a program that grows word by word is not copied at each.
            const capacity = @max(wanted, 2 * self.capacity, 4096);
            const block = try allocator.realloc(self.bytes.ptr[0..self.capacity], capacity);
            self.bytes.ptr = block.ptr;
            self.capacity = capacity;
        }
        self.bytes.len = wanted;
        @memset(self.bytes[old..], 0);
    }

    pub inline fn load(self: *const Memory, offset: usize) Word {
        return std.mem.readInt(Word, self.bytes[offset..][0..32], .big);
    }

    pub inline fn store(self: *Memory, offset: usize, word: Word) void {
        std.mem.writeInt(Word, self.bytes[offset..][0..32], word, .big);
    }

    /// Copies `source` from `from` on; what lies behind its end is zero.
    pub fn copyIn(self: *Memory, to: usize, size: usize, source: []const u8, from: Word) void {
        const target = self.bytes[to..][0..size];
        const rest = if (from >= source.len) &.{} else source[@intCast(from)..];
        const n = @min(rest.len, size);
        @memcpy(target[0..n], rest[0..n]);
        @memset(target[n..], 0);
    }
};

/// Gas for memory of so many bytes in all: linear, then quadratic. Nothing past the limit can be
/// paid for, and its price would not fit.
pub fn price(size: u64) ?u64 {
    if (size > 0x1f_ffff_ffe0) return null;
    const words = (size + 31) / 32;
    return 3 * words + words * words / 512;
}

test "memory grows in words, zeroed, and its price is quadratic" {
    const testing = std.testing;
    var memory: Memory = .{};
    defer memory.deinit(testing.allocator);
    try memory.grow(testing.allocator, 33);
    try testing.expectEqual(64, memory.bytes.len);
    memory.store(32, 0x1234);
    try testing.expectEqual(0x1234, memory.load(32));
    try memory.grow(testing.allocator, 10_000);
    try testing.expectEqual(0x1234, memory.load(32));
    try testing.expectEqual(0, memory.load(9_000));
    memory.copyIn(0, 8, "abc", 1);
    try testing.expectEqualSlices(u8, "bc\x00\x00\x00\x00\x00\x00", memory.bytes[0..8]);
    try testing.expectEqual(3, price(1).?);
    try testing.expectEqual(3 * 1024 + 1024 * 1024 / 512, price(32 * 1024).?);
    try testing.expectEqual(null, price(1 << 40));
}
