// Recursion, sorting and a large stack frame, for unwinding.
const std = @import("std");

noinline fn work(n: u64, values: []u64) u64 {
    for (values, 0..) |*value, i| value.* = (i *% 7919) % n;
    std.mem.sort(u64, values, {}, std.sort.asc(u64));
    return values[values.len / 2];
}

noinline fn deep(depth: u32, n: u64, values: []u64) u64 {
    var scratch: [8]u64 = undefined;
    for (&scratch, 0..) |*word, i| word.* = n + i;
    std.mem.doNotOptimizeAway(&scratch);
    if (depth == 0) return work(n, values);
    return deep(depth - 1, n, values) +% scratch[depth % 8];
}

pub fn main() !void {
    var values: [2000]u64 = undefined;
    var sum: u64 = 0;
    var i: u64 = 0;
    while (i < 6000) : (i += 1) sum +%= deep(@intCast(5 + i % 7), 1000 + i, &values);
    try std.io.getStdOut().writer().print("{d}\n", .{sum});
}
