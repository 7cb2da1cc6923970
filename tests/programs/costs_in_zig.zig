//! Typical costs of Zig programs: the first argument selects one, the second says how often.
const std = @import("std");

const Node = struct { next: ?*Node, value: u64 };

/// Allocates and frees a node per value, with the allocator that threads share.
noinline fn list(allocator: std.mem.Allocator, count: u64) !u64 {
    var first: ?*Node = null;
    for (0..count) |i| {
        const node = try allocator.create(Node); // the node to name
        node.* = .{ .next = first, .value = i };
        first = node;
    }
    var sum: u64 = 0;
    while (first) |node| {
        sum +%= node.value;
        first = node.next;
        allocator.destroy(node);
    }
    return sum;
}

/// Sums the neighbours of every cell of a flat field by index.
noinline fn step(from: []const i32, to: []i32, width: usize, height: usize) void {
    for (1..height - 1) |y| {
        for (1..width - 1) |x| {
            const at = y * width + x;
            to[at] = from[at - 1] +% from[at + 1] +% from[at - width] +% from[at + width]; // the cell to name
        }
    }
}

/// Takes each word from the front of a text, and moves the rest down.
noinline fn words(text: []u8) usize {
    var rest = text;
    var found: usize = 0;
    while (std.mem.indexOfScalar(u8, rest, ' ')) |end| {
        found += @intFromBool(end > 2);
        const left = rest.len - end - 1;
        std.mem.copyForwards(u8, rest[0..left], rest[end + 1 ..]); // the rest to move
        rest = rest[0..left];
    }
    return found;
}

/// Calls a small function for every pixel.
noinline fn shade(value: u32, by: u32) u32 {
    return (value *% by) >> 8;
}

noinline fn pixels(row: []u32) void {
    for (row) |*pixel| pixel.* = shade(pixel.*, 250) +% 17; // the pixel to name
}

/// Counts with atomic additions, in one thread.
noinline fn marks(counts: []std.atomic.Value(u32), seed: usize) void {
    for (0..4096) |i| {
        _ = counts[(i *% 31 +% seed) & 255].fetchAdd(1, .seq_cst); // the mark to name
    }
}

pub fn main() !void {
    const arguments = try std.process.argsAlloc(std.heap.page_allocator);
    const cost = arguments[1];
    const count = try std.fmt.parseInt(usize, arguments[2], 10);
    var sum: u64 = 0;
    if (std.mem.eql(u8, cost, "lists")) {
        for (0..count) |_| sum +%= try list(std.heap.smp_allocator, 50);
    } else if (std.mem.eql(u8, cost, "cells")) {
        const fields = try std.heap.page_allocator.alloc(i32, 2 * 512 * 512);
        for (fields, 0..) |*cell, i| cell.* = @intCast(i % 13);
        // The compiler must not know this value: it would check each row only once.
        const side = 512 + (count >> 40);
        var from: []i32 = fields[0 .. 512 * 512];
        var to: []i32 = fields[512 * 512 ..];
        for (0..count) |_| {
            step(from, to, side, side);
            std.mem.swap([]i32, &from, &to);
        }
        sum = @intCast(@as(u32, @bitCast(from[512 * 256 + 256])));
    } else if (std.mem.eql(u8, cost, "words")) {
        const text = try std.heap.page_allocator.alloc(u8, 60_000);
        for (0..count) |_| {
            for (text, 0..) |*letter, i| letter.* = if (i % 5 == 4) ' ' else 'a';
            sum += words(text);
        }
    } else if (std.mem.eql(u8, cost, "pixels")) {
        var row: [4096]u32 = undefined;
        for (&row, 0..) |*pixel, i| pixel.* = @intCast(i);
        for (0..count) |_| pixels(&row);
        sum = row[77];
    } else {
        var counts = [_]std.atomic.Value(u32){.init(0)} ** 256;
        for (0..count) |i| marks(&counts, i);
        sum = counts[7].load(.seq_cst);
    }
    std.debug.print("{}\n", .{sum});
}
