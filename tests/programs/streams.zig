// Adds up a large array from its first to its last word, and a small one at random: neither waits without need.
const std = @import("std");

fn sum(words: []const u64) u64 {
    var all: u64 = 0;
    for (words) |word| all = all *% 3 +% word;
    return all;
}

fn jump(words: []const u64, turns: usize) u64 {
    var at: usize = 0;
    var all: u64 = 0;
    for (0..turns) |turn| {
        at = (at *% 2862933555777941757 +% words[at & 4095] +% turn) >> 7;
        all +%= at;
    }
    return all;
}

pub fn main() !void {
    const words = try std.heap.page_allocator.alloc(u64, 4 << 20);
    for (words, 0..) |*word, i| word.* = i;
    var all: u64 = 0;
    for (0..40) |_| all +%= sum(words);
    all +%= jump(words, 40_000_000);
    std.debug.print("{}\n", .{all});
}
