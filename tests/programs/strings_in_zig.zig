//! Costs of text in Zig programs: the first argument selects one, the second says how often.
const std = @import("std");

/// Adds up by a key that is made as text for each item.
noinline fn cells(count: u64) !u64 {
    var sums = std.StringHashMap(u64).init(std.heap.page_allocator);
    var i: u64 = 0;
    while (i < count) : (i += 1) {
        var room: [40]u8 = undefined;
        const key = try std.fmt.bufPrint(&room, "{}:{d:.2}", .{ i % 97, @as(f64, @floatFromInt(i % 31)) / 4 }); // the key to name
        const entry = try sums.getOrPut(key);
        if (!entry.found_existing) {
            entry.key_ptr.* = try std.heap.page_allocator.dupe(u8, key);
            entry.value_ptr.* = 0;
        }
        entry.value_ptr.* += i;
    }
    return sums.get("7:0.25") orelse sums.count();
}

/// Replaces each marker, and searches the next one from the start of the text.
noinline fn markers(text: []u8) u64 {
    var replaced: u64 = 0;
    while (std.mem.indexOfScalar(u8, text, ';')) |at| { // the search to name
        text[at] = ',';
        replaced += 1;
    }
    return replaced;
}

pub fn main() !void {
    const args = try std.process.argsAlloc(std.heap.page_allocator);
    const count = try std.fmt.parseInt(u64, args[2], 10);
    if (std.mem.eql(u8, args[1], "cells")) std.debug.print("{}\n", .{try cells(count)});
    if (std.mem.eql(u8, args[1], "markers")) {
        const text = try std.heap.page_allocator.alloc(u8, count * 40);
        for (text, 0..) |*byte, i| byte.* = if (i % 40 == 39) ';' else 'a';
        std.debug.print("{}\n", .{markers(text)});
    }
}
