//! One line for each instruction before it is executed: where, what, gas left, and the stack.

const std = @import("std");
const Word = @import("word.zig").Word;
const opcode = @import("opcode.zig");

pub const Trace = struct {
    out: std.io.AnyWriter,
    failed: bool = false,

    /// How many words of the stack are shown, from its top.
    const shown = 8;

    pub fn line(self: *Trace, depth: u16, pc: usize, byte: u8, gas: u64, stack: []const Word) void {
        if (self.failed) return;
        // A reader that went away must not change what the program does.
        self.write(depth, pc, byte, gas, stack) catch {
            self.failed = true;
        };
    }

    fn write(self: *Trace, depth: u16, pc: usize, byte: u8, gas: u64, stack: []const Word) !void {
        const name = opcode.name(@enumFromInt(byte));
        try self.out.print("{d:>2} {d:>6} {s:<14} gas {d:<12}", .{ depth, pc, name, gas });
        for (0..@min(stack.len, shown)) |i| {
            try self.out.print(" {x}", .{stack[stack.len - 1 - i]});
        }
        if (stack.len > shown) try self.out.print(" and {d} more", .{stack.len - shown});
        try self.out.writeByte('\n');
    }
};
