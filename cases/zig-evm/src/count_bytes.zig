//! Counts the bytes of its input, and says how long that took: the smallest program that shows what
//! a timer inside a program really measures.

const std = @import("std");
const Input = @import("input").Input;

pub fn main() !void {
    var timer = try std.time.Timer.start();
    var input = Input.init(std.io.getStdIn());
    const bytes = try count(input.reader());
    const micros = @as(f64, @floatFromInt(timer.read())) / std.time.ns_per_us;
    try std.io.getStdOut().writer().print("{d} bytes\n", .{bytes});
    try std.io.getStdErr().writer().print("{d:.1} µs\n", .{micros});
}

fn count(reader: anytype) !u64 {
    var bytes: u64 = 0;
    while (true) : (bytes += 1) {
        _ = reader.readByte() catch |err| switch (err) {
            error.EndOfStream => return bytes,
            else => return err,
        };
    }
}

test "bytes are counted to the end" {
    var stream = std.io.fixedBufferStream("ten bytes.");
    try std.testing.expectEqual(10, try count(stream.reader()));
}
