//! The quick way in: bytes are taken from a block that is asked of the kernel at once.

const std = @import("std");

pub const Input = struct {
    blocks: std.io.BufferedReader(1 << 16, std.fs.File.Reader),

    pub fn init(file: std.fs.File) Input {
        return .{ .blocks = .{ .unbuffered_reader = file.reader() } };
    }

    pub fn reader(self: *Input) @TypeOf(self.blocks).Reader {
        return self.blocks.reader();
    }
};
