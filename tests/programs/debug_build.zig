//! Mixes words. Built in Zig's default mode, which keeps every variable in memory.
const std = @import("std");

fn mix(state: *u64, word: u64) void {
    state.* = (state.* ^ word) *% 0x9e3779b97f4a7c15; // the line to name
    state.* ^= state.* >> 29;
}

pub fn main() !void {
    var state: u64 = 1;
    var word: u64 = 0;
    while (word < 20_000_000) : (word += 1) {
        mix(&state, word);
    }
    const out = std.io.getStdOut().writer();
    try out.print("{d}\n", .{state});
}
