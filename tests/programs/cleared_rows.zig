//! Decodes run-length rows into a line on the stack that is cleared completely before each row.
const std = @import("std");

const Run = struct { len: u16, value: u8 };

fn decode(runs: []const Run) u64 {
    var line: [16384]u8 = [_]u8{0} ** 16384; // the line to name
    var at: usize = 0;
    for (runs) |run| {
        @memset(line[at .. at + run.len], run.value);
        at += run.len;
    }
    var sum: u64 = 0;
    var i: usize = 0;
    while (i < at) : (i += 61) sum += line[i];
    return sum;
}

pub fn main() !void {
    var runs: [64]Run = undefined;
    for (&runs, 0..) |*run, i| run.* = .{ .len = @intCast(10 + i % 20), .value = @intCast(i * 3) };
    var sum: u64 = 0;
    var i: usize = 0;
    while (i < 1_500_000) : (i += 1) sum += decode(runs[i % 32 .. i % 32 + 10]);
    std.debug.print("{d}\n", .{sum});
}
