//! Looks up values in a table; the function that does it copies the table.
const std = @import("std");

const Table = struct { values: [256]u64 };

noinline fn lookUp(table: *const Table, at: usize) u64 {
    var copy = table.*; // the line to name
    copy.values[at & 255] +%= 1;
    return copy.values[(at >> 8) & 255];
}

pub fn main() !void {
    var table: Table = undefined;
    for (&table.values, 0..) |*value, i| value.* = i;
    var sum: u64 = 0;
    var n: usize = 0;
    while (n < 8_000_000) : (n += 1) sum +%= lookUp(&table, n *% 2654435761);
    std.debug.print("{}\n", .{sum});
}
