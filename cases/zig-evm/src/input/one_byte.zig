//! The slow way in: each byte is asked of the kernel by itself.

const std = @import("std");

pub const Input = struct {
    file: std.fs.File,

    pub fn init(file: std.fs.File) Input {
        return .{ .file = file };
    }

    pub fn reader(self: *Input) std.fs.File.Reader {
        return self.file.reader();
    }
};
